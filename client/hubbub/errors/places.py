"""What is said where a development installation and a production one would meet."""

from typing import Final

PROTECTS_NOBODY: Final = (
    "DEVELOPMENT: this installation protects nobody; an estimate may rest on a single report."
)
"""What every face of a development installation says first."""


def notice(*, development: bool) -> str:
    """What an answer of an installation says before all else; "" of production."""
    return PROTECTS_NOBODY if development else ""


def wrong_place(*, development: bool) -> str:
    """Of a file that a service is refused; development: what the service is of."""
    if development:
        return (
            "of production, which a service started with --dev refuses; give a file that was "
            "made with keys for development, or leave --dev out"
        )
    return (
        "of a development installation, whose numbers protect nobody; build it with keys of "
        "production, or start the service with --dev"
    )
