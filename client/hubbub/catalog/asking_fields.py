"""Fields of a metric that say what is asked, who asks it, and until when."""

from typing import Final

from hubbub.catalog.fields import kinds
from hubbub.catalog.fields.field import entry

__all__ = ["DESCRIPTION", "EXPIRES", "OWNER"]

DESCRIPTION: Final = entry(
    kinds.text("says what is asked"),
    "What is asked, as people read it: on pages, on the privacy card, on their device.",
    '"Colour theme in use at the end of the day"',
    write="write one",
)
OWNER: Final = entry(
    kinds.text("says who answers for it"),
    "Who asks, and answers questions about it.",
    '"desktop@example.org"',
    write="write one",
    label="asked by",
)
EXPIRES: Final = entry(
    kinds.day("after which clients stop reporting"),
    "The last day on which devices report.",
    "2027-06-30",
    write="write YYYY-MM-DD",
    label="until",
)
