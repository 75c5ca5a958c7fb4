"""How a person adds an optional part of hubbub to an installation."""

from importlib.util import find_spec
from typing import Final

OF_DEVICES: Final = ("relay", "tokens")
"""The extras of hubbub-client; all others are of hubbub, which is installed beside it."""


def install_with(extra: str) -> str:
    """The command that installs this extra, or hubbub without one, for error messages.

    It names wheels or a checkout: package indexes have no hubbub of ours, and whoever registers
    a name there would have their program run on our users' machines. Both wheels are named, since
    an installer asks an index for what hubbub depends on and nobody gives it.
    """
    client = "hubbub-client's wheel, or client/ of a checkout"
    if extra in OF_DEVICES:
        return f"pip install 'CLIENT[{extra}]', where CLIENT is {client}"
    path = f"'PATH[{extra}]'" if extra else "PATH"
    return (
        f"pip install CLIENT {path}, where CLIENT is {client}, and PATH is hubbub's wheel "
        "or checkout"
    )


def is_installed(module: str) -> bool:
    """Whether a module of an optional part is installed; it is not imported."""
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False
