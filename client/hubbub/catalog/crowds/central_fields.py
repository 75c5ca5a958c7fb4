"""Fields of a metric that make its central promise."""

from typing import Any, Final

from hubbub.catalog.auto_choice import AUTO
from hubbub.catalog.periods import PERIOD_KIND
from hubbub.errors.grammar import did_you_mean
from hubbub.fields import kinds
from hubbub.fields.field import entry
from hubbub.mechanisms.probability import MAX_EPSILON, MIN_EPSILON

EPSILON: Final = kinds.number("a number of nats", MIN_EPSILON, MAX_EPSILON)
"""The kind of every epsilon that a person is promised."""

CENTRAL_EPSILON: Final = entry(
    EPSILON,
    "Largest privacy loss of one person from a whole shuffled epoch, in nats; with "
    "`central_period`, from all epochs of the period.",
    "1.0",
    label="central epsilon",
    in_definition=True,
)
CENTRAL_PERIOD: Final = entry(
    PERIOD_KIND,
    "Number of consecutive days over which `central_epsilon` holds for all epochs together.",
    '"30d"',
    label="central epsilon of any",
    in_definition=True,
)
CROWD: Final = entry(
    kinds.whole(10, 1_000_000),
    "Smallest number of reports of an epoch that leave the shuffler; with fewer, none leave.",
    "30000",
    label="crowd",
    in_definition=True,
)
DELTA: Final = entry(
    kinds.number("a chance", 1e-15, 0.1),
    "Probability with which `central_epsilon` may be exceeded.",
    "1e-8",
    in_definition=True,
)
HONEST: Final = entry(
    kinds.number("a share", 0, 1, "(]"),
    "Share of a crowd's reports that is assumed to be randomized correctly.",
    "0.9",
    in_definition=True,
)
USUAL_MAX_LOCAL: Final = 8.0
"""The most that a report may say by itself unless more is written, in nats."""
MAX_LOCAL_EPSILON: Final = entry(
    EPSILON,
    "Largest local epsilon of a report, even if the crowd would allow more.",
    "8.0",
)
ROLLING: Final = entry(
    kinds.flag(),
    "Whether a crowd leaves as soon as it is complete, instead of after its epoch.",
    "true",
    in_definition=True,
)

CROWD_LISTED: Final = "grr"
CROWD_MEANS: Final = ("mean.one_bit", "mean.piecewise")
"""The mechanisms of listed values, and of means, whose whole epochs are accounted for."""
CROWD_PARTS: Final = "pairs"
"""The mechanism over parts whose whole epochs are accounted for."""
DEVICES: Final = "devices"
"""For `dummies`: devices make them, as many as serve best."""
NOISE: Final = "noise"
"""For `dummies`: the shuffler draws a number of them for each value, by the best law."""
WORDS: Final = (AUTO, DEVICES, NOISE)
_IN_WORDS: Final = f'"{AUTO}", "{DEVICES}" or "{NOISE}"'
_DUMMIES: Final = kinds.whole(0, 1_000_000)


def _problem(value: Any) -> str:
    problem = "" if value in WORDS else _DUMMIES.problem(value)
    return f"{problem}, {_IN_WORDS}{did_you_mean(value, WORDS)}" if problem else ""


DUMMIES: Final = entry(
    kinds.Kind(
        words=lambda: f"{_DUMMIES.words()}, {_IN_WORDS}",
        problem=_problem,
        schema=lambda: {"anyOf": [_DUMMIES.schema(), {"enum": list(WORDS)}]},
        load=_DUMMIES.load,
    ),
    "Number of dummies with evenly spread values that the shuffler adds to every crowd. "
    '`"devices"`: devices make them, and `dummies_each` follows. `"noise"`: the shuffler '
    "draws a secret number for each value, and `dummies_scale`, `dummies_shift` and "
    "`dummies_sum_scale` follow.",
    "4000",
    label="dummies in a crowd",
    in_definition=True,
)
COUNT_EPSILON: Final = entry(
    kinds.number("a number of nats", 0.05, 8),
    "Largest privacy loss, in nats, of the number of an epoch's reports (or its absence) about "
    "whether one person reported; `delta` is the probability of more.",
    "0.5",
    label="number of reports hidden, epsilon",
    in_definition=True,
)
DUMMIES_EACH: Final = entry(
    kinds.number("a number of dummies", 0, 100),
    "Average number of dummies that a device sends with each report.",
    "0.02",
    label="dummies of every device",
    in_definition=True,
)
DUMMIES_SCALE: Final = entry(
    kinds.number("a number of dummies", 0, 1000),
    "Spread of the secret number of a value's dummies: `scale` in exp(-|number - shift| / scale).",
    "2.02",
    label="scale of the number of dummies of a value",
    in_definition=True,
)
DUMMIES_SHIFT: Final = entry(
    kinds.whole(0, 20_000),
    "Mean of the secret number of a value's dummies; the largest is twice the mean.",
    "36",
    label="dummies of a value, on average",
    in_definition=True,
)
MAX_SUM_SCALE: Final = 600
DUMMIES_SUM_SCALE: Final = entry(
    kinds.number("a number of steps", 0, MAX_SUM_SCALE),
    "Spread of the sum of a mean's dummies, in steps: `scale` in exp(-|sum - mean| / scale). 0 "
    "leaves their numbers independent.",
    "64",
    label="scale of the sum of a mean's dummies",
    in_definition=True,
)
