"""Fields of a metric that say what its values are, beside listing them."""

from typing import Final

from hubbub.catalog.fields import kinds
from hubbub.catalog.fields.field import entry
from hubbub.catalog.values.value_kinds import KINDS

__all__ = ["CANDIDATES", "EDGES", "KIND", "OTHERS", "OUTSIDE", "UNIT"]

KIND: Final = entry(
    kinds.one_of(lambda: KINDS),
    "What the app reports: `true` and `false`, a whole number, a number, a timedelta, a size with "
    "its unit, or a number of `unit`, instead of `values` and `domain`; or a set of the `values`.",
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
OUTSIDE: Final = entry(
    kinds.one_of(lambda: ("clamp", "refuse")),
    "What becomes of a number outside its range: it counts at the nearest end, as it does with a "
    "`kind` that does not say, or it is refused on the device and never sent.",
    '"refuse"',
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
