"""Identifies the caller of a request by our token, a provider's token, or a session."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hubbub.aggregator.access.access_file import AccessFile
from hubbub.aggregator.access.rights import EVERYONE, Caller, Grant
from hubbub.aggregator.access.sessions import EndedSessions
from hubbub.aggregator.access.tokens import PREFIX, Tokens
from hubbub.errors import MissingDependency
from hubbub.errors.installing import install_with
from hubbub.runtime.redis.command_lists import MemoryServer

if TYPE_CHECKING:
    from hubbub.aggregator.access.login import Login

SESSION: Final = "__Host-hubbub"
"""The session's cookie: by its name browsers keep it to this host, and to HTTPS."""


@dataclass(eq=False)
class Access:
    """Access rules. Without tokens and login, everyone on this machine has access.

    Args:
        tokens: our own token file; None for none.
        rights: grants by group.
        login: login at a provider; None for none.
        ended: ended sessions.
    """

    tokens: Tokens | None = None
    rights: Mapping[str, Grant] = field(default_factory=dict)
    login: "Login | None" = None
    ended: EndedSessions | None = None

    @property
    def asks(self) -> bool:
        """Whether callers must identify themselves."""
        return self.tokens is not None or self.login is not None

    def use(self, access_file: AccessFile, login: "Login | None") -> None:
        """Replaces the rights and the login."""
        self.rights, self.login = access_file.groups, login

    async def caller(self, authorization: str, cookie: str) -> Caller | None:
        """The caller, from two headers of a request; None if unknown.

        Raises:
            AccessRefused: a provider's token without access; the message states why.
            ServiceUnavailable: the provider is needed, and does not answer.
            StoreUnavailable: Redis is needed to check whether a session has ended.
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


def access_of(
    tokens: Path | None, access: AccessFile | None, ended: EndedSessions | None = None
) -> Access:
    """Access rules from two files; `ended` has ended sessions, None means only this process's.

    Raises:
        KeysUnusable: the token file is invalid.
        MissingDependency: a provider is named, but its client library is not installed.
    """
    access = access or AccessFile({}, None)
    login = login_of(access, ended=ended)
    return Access(Tokens(tokens) if tokens else None, access.groups, login, ended)


def login_of(
    access: AccessFile,
    former: "Login | None" = None,
    clock: Callable[[], float] = time.time,
    ended: EndedSessions | None = None,
) -> "Login | None":
    """Login at the file's provider, continuing the former one; None without a provider."""
    if access.oidc is None:
        return None
    try:
        from hubbub.aggregator.access.login import Login  # noqa: PLC0415 of an extra
    except ImportError as error:
        raise MissingDependency(
            "Logging in by a provider needs Authlib, joserfc and httpx2, which are not installed "
            f"here: {install_with('oidc')}"
        ) from error
    if former:
        return former.renewed(access)
    return Login(access.oidc, access.groups, clock, ended or EndedSessions(MemoryServer(), clock))


def cookies_of(header: str) -> dict[str, str]:
    """The cookies of a request, by name.

    Python's own readers are no use here: SimpleCookie drops all cookies for one of another site of
    the domain that it cannot read, and Starlette's strips U+00A0 and U+0085, so that such a site
    may name a cookie `__Host-` after one of them, which browsers keep to this host only without.
    """
    pairs = (part.strip(" \t").partition("=") for part in header.split(";"))
    return {name: value for name, _, value in pairs}
