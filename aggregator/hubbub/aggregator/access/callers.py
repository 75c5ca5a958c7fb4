"""Identifies the caller of a request by our token, a provider's token, or a session."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hubbub.aggregator.access.access_file import AccessFile
from hubbub.aggregator.access.sessions import EndedSessions
from hubbub.aggregator.access.tokens import PREFIX, Caller, Grant, Tokens
from hubbub.errors.message_words import needs
from hubbub.runtime.redis.command_sender import MemoryServer

if TYPE_CHECKING:
    from hubbub.aggregator.access.login import Login

SESSION: Final = "__Host-hubbub"
"""The session's cookie: by its name browsers keep it to this host, and to HTTPS."""


@dataclass(eq=False)
class Access:
    """Access rules. Without tokens and login, everyone on this machine has access.

    Args:
        tokens: our own token file; None for none.
        ended: ended sessions, by default only this process's.
        clock: seconds since 1970.

    Attributes:
        rights: grants by group.
        login: login at a provider; None for none.
        asks: whether callers must identify themselves.
    """

    tokens: Tokens | None = None
    ended: EndedSessions = field(default_factory=lambda: EndedSessions(MemoryServer()))
    clock: Callable[[], float] = time.time
    rights: Mapping[str, Grant] = field(default_factory=dict, init=False)
    login: "Login | None" = field(default=None, init=False)
    asks: bool = field(init=False)

    def __post_init__(self) -> None:
        """Without an access file, callers identify themselves by our tokens alone."""
        self.asks = self.tokens is not None

    def use(self, file: AccessFile) -> None:
        """Applies an access file; sessions at the same provider continue.

        Raises MissingDependency if it names a provider whose client library is not installed.
        """
        self.rights = file.groups
        if file.oidc is None:
            self.login = None
        elif self.login and self.login.oidc == file.oidc:
            self.login.rights = file.groups
        else:
            with needs("logging in by a provider needs Authlib, joserfc and httpx2", "oidc"):
                from hubbub.aggregator.access.login import Login  # noqa: PLC0415 of an extra
            self.login = Login(file.oidc, file.groups, self.clock, self.ended)
        self.asks = self.tokens is not None or self.login is not None

    async def caller(self, authorization: str, cookie: str) -> Caller | None:
        """The caller, from two headers of a request to a service that `asks`; None if unknown.

        Raises:
            AccessRefused: a provider's token without access; the message states why.
            ServiceUnavailable: the provider is needed, and does not answer.
            StoreUnavailable: Redis is needed to check whether a session has ended.
        """
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
    tokens: Path | None, file: AccessFile | None, ended: EndedSessions | None = None
) -> Access:
    """Access rules from two files; `ended` has ended sessions, None means only this process's.

    Raises:
        KeysUnusable: the token file is invalid.
        MissingDependency: as `Access.use`.
    """
    access = Access(Tokens(tokens) if tokens else None, ended or EndedSessions(MemoryServer()))
    if file:
        access.use(file)
    return access


def cookies_of(header: str) -> dict[str, str]:
    """The cookies of a request, by name.

    Python's own readers are no use here: SimpleCookie drops all cookies for one of another site of
    the domain that it cannot read, and Starlette's strips U+00A0 and U+0085, so that such a site
    may name a cookie `__Host-` after one of them, which browsers keep to this host only without.
    """
    pairs = (part.strip(" \t").partition("=") for part in header.split(";"))
    return {name: value for name, _, value in pairs}
