"""Messages for files and answers of development installations among production ones."""

from typing import Final

PROTECTS_NOBODY: Final = (
    "DEVELOPMENT: this installation protects nobody; an estimate may rest on a single report."
)
"""What every face of a development installation says first."""
NOTICES: Final = {True: PROTECTS_NOBODY, False: ""}
"""The notice in front of an installation's answers, by whether it is a development one."""


def wrong_place(*, development: bool) -> str:
    """The error for a file of the other kind of installation; `development` is the service's."""
    if development:
        return (
            "is of production; a service with --dev refuses it: give a file made with keys for "
            "development, or leave --dev out"
        )
    return (
        "is of a development installation, whose numbers protect nobody; build it with keys of "
        "production, or start the service with --dev"
    )
