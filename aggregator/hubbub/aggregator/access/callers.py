"""Callers: who asks, by a token, a provider's token or a session."""

from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Final

from hubbub.aggregator.access.rights import EVERYONE, Caller, Grant
from hubbub.aggregator.access.tokens import PREFIX, Tokens

if TYPE_CHECKING:
    from hubbub.aggregator.access.access_file import AccessFile
    from hubbub.aggregator.access.ended_sessions import EndedSessions
    from hubbub.aggregator.access.login import Login

SESSION: Final = "__Host-hubbub"
"""The session's cookie: by its name browsers keep it to this host, and to HTTPS."""


class Access:
    """Who may ask.

    tokens: the file of our own; None for none. rights: what groups may. login: the way in by a
    provider; None for none. ended: what people logged out of. With neither of tokens and login,
    everyone on this machine may ask.
    """

    def __init__(
        self,
        tokens: Tokens | None = None,
        rights: Mapping[str, Grant] | None = None,
        login: "Login | None" = None,
        ended: "EndedSessions | None" = None,
    ) -> None:
        self.tokens = tokens
        self.rights: Mapping[str, Grant] = rights or {}
        self.login = login
        self.ended = ended

    @property
    def asks(self) -> bool:
        """Whether anybody is asked who they are."""
        return self.tokens is not None or self.login is not None

    def use(self, access_file: "AccessFile", login: "Login | None") -> None:
        """From now on by these."""
        self.rights, self.login = access_file.groups, login

    async def caller(self, authorization: str, cookie: str) -> Caller | None:
        """Who asks, by two headers of a request; None of somebody unknown.

        Raises:
            AccessRefused: a provider's token that does not let in; the message says why.
            ServiceUnavailable: the provider has to be asked, and does not answer.
            StoreUnavailable: Redis has to be asked whether a session was ended.
        """
        if not self.asks:
            return EVERYONE
        scheme, _, secret = authorization.partition(" ")
        if authorization:
            if scheme.lower() != "bearer":
                return None
            if self.login is None or secret.startswith(PREFIX):
                token = self.tokens.find(secret) if self.tokens else None
                return token.caller(self.rights) if token else None
            return await self.login.script(secret)
        session_cookie = cookies_of(cookie).get(SESSION, "") if self.login else ""
        return await self.login.session(session_cookie) if self.login and session_cookie else None


def cookies_of(header: str) -> dict[str, str]:
    """A request's cookies by name."""
    try:
        return {name: morsel.value for name, morsel in SimpleCookie(header).items()}
    except CookieError:
        return {}
