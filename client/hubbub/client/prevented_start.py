"""A start that the environment prevents: the client then reports nothing, unless it is strict."""

import contextlib
import errno
import os
from typing import Any, Final, NoReturn

from hubbub.bundles import Bundle, read_bundle
from hubbub.client.settings import BUNDLE_VARIABLE, Settings, variables
from hubbub.errors import BadParameter, BundleRefused, HubbubError, StateUnusable

NO_BUNDLE: Final = Bundle(metrics={}, keys=(), shuffler="localhost:1", roots=None, history={})
_WRONG_PATH: Final = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG)


def is_prevented(error: Exception, path: str | os.PathLike[str] | None) -> bool:
    """Returns whether the system or the installation caused a start's error, not app or bundle.

    A bundle that is missing at the path that the app gives is a mistake of the app. For a refused
    bundle that a variable names, the refusal is the cause of the error.
    """
    if not isinstance(error, BadParameter | BundleRefused):
        return True
    cause = error.__cause__
    if isinstance(cause, OSError):
        return path is None or cause.errno not in _WRONG_PATH
    return isinstance(cause, StateUnusable | BundleRefused)


def reason_of(error: Exception) -> str:
    """Returns why a start failed. PRIVACY: other texts may contain a value."""
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return str(error) if isinstance(error, HubbubError | ImportError) else type(error).__name__


def no_state(reason: str) -> NoReturn:
    """Raises StateUnusable: a client that did not start has no state to open."""
    raise StateUnusable(f"no state of this device: {reason}")


def is_strict(path: str | os.PathLike[str] | None, strict: Any) -> bool:
    """Returns whether a start with this bundle and setting raises its errors."""
    development = False
    with contextlib.suppress(Exception):  # the bundle, or its path, may be what made the start fail
        environment = {BUNDLE_VARIABLE: variables().get(BUNDLE_VARIABLE, "")}
        development = read_bundle(Settings.read(environment, bundle=path).bundle).development
    return Settings.read_strict(strict=strict, development=development)
