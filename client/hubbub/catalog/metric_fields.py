"""Fields of a metric that stand alone: what is asked, of which values, how sealed, how kept."""

from typing import Final

from hubbub.catalog.alerts import Alert
from hubbub.catalog.values.value_kinds import KINDS
from hubbub.fields import kinds
from hubbub.fields.field import entry
from hubbub.fields.tables import table_of
from hubbub.sealing import KEMS

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
KIND: Final = entry(
    kinds.one_of(KINDS.keys),
    "What the app reports: `true` and `false`, a whole number, a number, a timedelta, a size with "
    "its unit, or a number of `unit`, instead of `values` and `domain`; a set of the `values`; or "
    "a vector, by its `coordinates`.",
    '"duration"',
    defines=True,
)
EDGES: Final = entry(
    kinds.edges(),
    "Where a number's range is cut, to see how it is spread: at these, or at `parts` steps that "
    "grow by one factor. Without, its mean is asked for.",
    "[0, 10, 100, 1000]",
    defines=True,
)
OTHERS: Final = entry(
    kinds.flag(),
    'Whether a text that is not listed counts as "other", which is then one of the values.',
    "true",
    defines=True,
)
UNIT: Final = entry(
    kinds.text("says what numbers are measured in"),
    "What numbers are measured in, beside every mean and range that is shown.",
    '"ms"',
    label="in",
)
CANDIDATES: Final = entry(
    kinds.strings(),
    "The strings to look for where none are named, for a mechanism over strings; they stay "
    "with the operator.",
    '"domains.txt"',
    operator=True,
)
KEM: Final = entry(
    kinds.one_of(lambda: KEMS),
    "What reports are sealed with: `x-wing` stays shut for who records them today and has a "
    "quantum computer one day; each is 1,088 bytes longer.",
    '"x-wing"',
    write='write kem = "x-wing", or leave it out',
    label="sealed by",
    defines=True,
)
# What follows only the operator has use for.
ALERT: Final = entry(
    table_of(Alert),
    "When somebody is called: judged of every epoch that is over, with its errors.",
    '{ when = "change", confidence = 0.99 }',
    write='write alert = { when = "change", confidence = 0.99 }',
    operator=True,
)
KEEP: Final = entry(
    kinds.days(),
    "How long totals are kept after their epoch is over; then they are deleted.",
    '"400d"',
    label="kept for",
    operator=True,
)
SUPERSEDES: Final = entry(
    kinds.text("names the metric that this one goes on from"),
    "The metric of this catalog that this one goes on from under a new name; trends join them.",
    '"theme"',
    write="write the name of the metric that asked before",
    label="goes on from",
    operator=True,
)
