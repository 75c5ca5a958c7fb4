"""Fields of a metric that only its operator has use for: alert, retention, what it goes on from."""

from typing import Final

from hubbub.catalog.alerts import Alert
from hubbub.catalog.fields.field import entry
from hubbub.catalog.fields.kinds import days, text
from hubbub.catalog.fields.tables import table_of

__all__ = ["ALERT", "KEEP", "SUPERSEDES", "days_of"]

ALERT: Final = entry(
    table_of(Alert),
    "When somebody is called: judged of every epoch that is over, with its errors.",
    '{ when = "change", confidence = 0.99 }',
    write='write alert = { when = "change", confidence = 0.99 }',
    operator=True,
)
KEEP: Final = entry(
    days(),
    "How long totals are kept after their epoch is over; then they are deleted.",
    '"400d"',
    label="kept for",
    operator=True,
)
SUPERSEDES: Final = entry(
    text("names the metric that this one goes on from"),
    "The metric of this catalog that this one goes on from under a new name; trends join them.",
    '"theme"',
    write="write the name of the metric that asked before",
    label="goes on from",
    operator=True,
)


def days_of(keep: str) -> int:
    """How many days "400d" or "57w" is; 0 for what is kept for ever."""
    return int(keep[:-1]) * (7 if keep.endswith("w") else 1) if keep else 0
