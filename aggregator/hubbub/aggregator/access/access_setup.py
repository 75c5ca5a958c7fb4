"""Creates the access rules from the token file and the access file in the settings."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from hubbub.aggregator.access.access_file import AccessFile
from hubbub.aggregator.access.callers import Access
from hubbub.aggregator.access.ended_sessions import EndedSessions
from hubbub.aggregator.access.tokens import Tokens
from hubbub.errors import MissingDependency
from hubbub.errors.installing import install_with
from hubbub.runtime.redis.server import MemoryServer

if TYPE_CHECKING:
    from hubbub.aggregator.access.login import Login


def access_of(
    tokens: Path | None, access: AccessFile | None, ended: EndedSessions | None = None
) -> Access:
    """Access rules from two files; `ended` has ended sessions, None means only this process's.

    Raises:
        KeysUnusable: the token file is invalid.
        MissingDependency: a provider is named, but its client library is not installed.
    """
    access_file = access or AccessFile({}, None)
    login = login_of(access_file, ended=ended)
    token_table = Tokens(tokens) if tokens else None
    return Access(token_table, access_file.groups, login, ended)


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
