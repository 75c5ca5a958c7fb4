"""Fields of a metric: question, values, sealing, retention."""

from typing import Final

from hubbub.catalog.alerts import Alert
from hubbub.catalog.values.value_kinds import KINDS
from hubbub.fields import kinds
from hubbub.fields.field import entry
from hubbub.fields.tables import table_of
from hubbub.sealing import KEMS

DESCRIPTION: Final = entry(
    kinds.text("describes the question"),
    "The question in words, for pages, the privacy card and the person's device.",
    '"Colour theme in use at the end of the day"',
    write="write one",
)
OWNER: Final = entry(
    kinds.text("names the responsible person or team"),
    "The person or team that is responsible for the metric.",
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
    "What the app reports, instead of `values` and `domain`: a boolean, a whole number, a "
    "number, a timedelta, or a size with its unit; a set of the `values`; a vector with "
    "`coordinates`; or events, of which the device computes a funnel (`steps`), its activity (days "
    "of use) or retention (`weeks`), or a `rate`.",
    '"duration"',
    defines=True,
)
EDGES: Final = entry(
    kinds.edges(),
    "Edges that cut a number's range, for its distribution: these, or `parts` steps that grow by "
    "one factor. Without edges the metric estimates the mean.",
    "[0, 10, 100, 1000]",
    defines=True,
)
OTHERS: Final = entry(
    kinds.flag(),
    'Whether an unlisted text counts as "other", which is then one of the values.',
    "true",
    defines=True,
)
UNIT: Final = entry(
    kinds.text("gives the unit of the numbers"),
    "Unit of the numbers, shown with every mean and range.",
    '"ms"',
    label="in",
)
CANDIDATES: Final = entry(
    kinds.strings(),
    "Strings that a query without a list looks for; only the operator's bundle contains them.",
    '"domains.txt"',
    operator=True,
)
KEM: Final = entry(
    kinds.one_of(lambda: KEMS),
    "Encryption of reports: `x-wing` also protects reports that are recorded today from a future "
    "quantum computer; each is 1,088 bytes longer.",
    '"x-wing"',
    write='write kem = "x-wing", or leave it out',
    label="sealed by",
    defines=True,
)
# The following fields are only for the operator.
ALERT: Final = entry(
    table_of(Alert),
    "When an alert is sent: judged after every epoch, with its errors.",
    '{ when = "change", confidence = 0.99 }',
    write='write alert = { when = "change", confidence = 0.99 }',
    operator=True,
)
KEEP: Final = entry(
    kinds.days(),
    "How long totals are kept after their epoch; then they are deleted.",
    '"400d"',
    label="kept for",
    operator=True,
)
SUPERSEDES: Final = entry(
    kinds.text("names the metric that this one goes on from"),
    "The metric of this catalog that this metric continues under a new name; trends join both.",
    '"theme"',
    write="write the name of the former metric",
    label="goes on from",
    operator=True,
)
