"""Crowd: a metric's central promise, about what a whole shuffled epoch reveals of one person."""

from functools import lru_cache
from math import ceil
from typing import TYPE_CHECKING, Any, Final

from hubbub.catalog.epochs_and_periods import PERIOD_KIND, days_at_most, epochs_within
from hubbub.catalog.mechanism_choice import AUTO
from hubbub.errors import BadParameter
from hubbub.errors.message_words import did_you_mean
from hubbub.fields import kinds
from hubbub.fields.field import setting, settings
from hubbub.mechanisms.probability import MAX_EPSILON, MIN_EPSILON, exp_at_most

if TYPE_CHECKING:
    from hubbub.sealing.dummy_laws import CountNoise

EPSILON: Final = kinds.number("a number of nats", MIN_EPSILON, MAX_EPSILON)
"""The kind of every epsilon that a person is promised."""

USUAL_MAX_LOCAL: Final = 8.0
"""The most that a report may say by itself unless more is written, in nats."""

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
_DUMMIES: Final = kinds.integer(0, 1_000_000)


def _problem(value: Any) -> str:
    problem = "" if value in WORDS else _DUMMIES.problem(value)
    return f"{problem}, {_IN_WORDS}{did_you_mean(value, WORDS)}" if problem else ""


_DUMMIES_OR_WORDS: Final = kinds.Kind(
    words=lambda: f"{_DUMMIES.words()}, {_IN_WORDS}",
    problem=_problem,
    schema=lambda: {"anyOf": [_DUMMIES.schema(), {"enum": list(WORDS)}]},
    load=_DUMMIES.load,
)
MAX_SUM_SCALE: Final = 600
MIN_SCALE: Final = 1 / 16
"""Of a law whose largest ratio is that of the largest epsilon."""

_UNIT: Final = 1 << 32
# How many scales the ends of the law of a sum are from its mean, if it may have so many numbers. As
# many as a report moves it by tell everything: of them, too, the chance is then below 1e-13.
_SUM_REACH: Final = 48


@lru_cache(maxsize=256)
def noise_of(scale: float, shift: int) -> "CountNoise | None":
    """The distribution with these two parameters; None if they are 0.

    P(k) is proportional to exp(-|k - shift| / scale), for k from 0 to 2 shift. Raises BadParameter
    if the scale is too small.
    """
    _refuse_small("dummies_scale", scale)
    if not (scale and shift):
        return None
    from hubbub.sealing.dummy_laws import CountNoise  # noqa: PLC0415 of few crowds

    return CountNoise(int(exp_at_most(1 / scale) * _UNIT), shift)


def sum_noise_of(scale: float) -> "CountNoise | None":
    """The law of the sum of a mean's dummies, in steps; None for 0. Raises BadParameter."""
    _refuse_small("dummies_sum_scale", scale)
    from hubbub.sealing.dummy_laws import MAX_REACH  # noqa: PLC0415 as above

    return noise_of(scale, min(ceil(_SUM_REACH * scale), MAX_REACH))


def _refuse_small(name: str, scale: float) -> None:
    if scale and not scale >= MIN_SCALE:
        raise BadParameter(f"{name} {scale:g} is below {MIN_SCALE:g}; write a larger one")


@settings
class Crowd:
    """The central promise of a metric, and the crowd of reports that keeps it.

    Args:
        epochs: number of epochs, with a report of the person in each, over which `epsilon` holds;
            a metric sets its own, and checks all fields.
    """

    epsilon: float = setting(
        EPSILON,
        "Largest privacy loss of one person from a whole shuffled epoch, in nats; with "
        "`central_period`, from all epochs of the period.",
        "1.0",
        label="central epsilon",
        in_definition=True,
        name="central_epsilon",
        default=None,
    )
    period: str = setting(
        PERIOD_KIND,
        "Number of consecutive days over which `central_epsilon` holds for all epochs together.",
        '"30d"',
        label="central epsilon of any",
        in_definition=True,
        name="central_period",
        default="",
    )
    reports: int = setting(
        kinds.integer(10, 1_000_000),
        "Smallest number of reports of an epoch that leave the shuffler; with fewer, none leave.",
        "30000",
        label="crowd",
        in_definition=True,
        name="crowd",
        default=None,
    )
    delta: float = setting(
        kinds.number("a chance", 1e-15, 0.1),
        "Probability with which `central_epsilon` may be exceeded.",
        "1e-8",
        in_definition=True,
        default=1e-8,
    )
    honest: float = setting(
        kinds.number("a share", 0, 1, "(]"),
        "Share of a crowd's reports that is assumed to be randomized correctly.",
        "0.9",
        in_definition=True,
        default=0.9,
    )
    dummies: int = setting(
        _DUMMIES_OR_WORDS,
        "Number of dummies with evenly spread values that the shuffler adds to every crowd. "
        '`"devices"`: devices make them, and `dummies_each` follows. `"noise"`: the shuffler '
        "draws a secret number for each value, and `dummies_scale`, `dummies_shift` and "
        "`dummies_sum_scale` follow.",
        "4000",
        label="dummies in a crowd",
        in_definition=True,
        default=0,
    )
    dummies_each: float = setting(
        kinds.number("a number of dummies", 0, 100),
        "Average number of dummies that a device sends with each report.",
        "0.02",
        label="dummies of every device",
        in_definition=True,
        default=0.0,
    )
    dummies_scale: float = setting(
        kinds.number("a number of dummies", 0, 1000),
        "Spread of the secret number of a value's dummies: `scale` in exp(-|number - shift| / "
        "scale).",
        "2.02",
        label="spread of the secret number of a value's dummies",
        in_definition=True,
        default=0.0,
    )
    dummies_shift: int = setting(
        kinds.integer(0, 20_000),
        "Mean of the secret number of a value's dummies; the largest is twice the mean.",
        "36",
        label="dummies of a value, on average",
        in_definition=True,
        default=0,
    )
    dummies_sum_scale: float = setting(
        kinds.number("a number of steps", 0, MAX_SUM_SCALE),
        "Spread of the sum of a mean's dummies, in steps: `scale` in exp(-|sum - mean| / scale). 0 "
        "leaves their numbers independent.",
        "64",
        label="spread of the secret sum of a mean's dummies",
        in_definition=True,
        default=0.0,
    )
    count_epsilon: float | None = setting(
        kinds.number("a number of nats", 0.05, 8),
        "Largest privacy loss, in nats, of the number of an epoch's reports (or its absence) about "
        "whether one person reported; `delta` is the probability of more.",
        "0.5",
        label="number of reports hidden, epsilon",
        in_definition=True,
        default=None,
    )
    max_local_epsilon: float = setting(
        EPSILON,
        "Largest local epsilon of a report, even if the crowd would allow more.",
        "8.0",
        default=USUAL_MAX_LOCAL,
    )
    rolling: bool = setting(
        kinds.FLAG,
        "Whether a crowd leaves as soon as it is complete, instead of after its epoch.",
        "true",
        in_definition=True,
        default=False,
    )
    epochs: int = 1

    @property
    def noise(self) -> "CountNoise | None":
        """The distribution of the number of noise dummies of each value; None for none."""
        return noise_of(self.dummies_scale, self.dummies_shift)

    @property
    def sum_noise(self) -> "CountNoise | None":
        """The distribution of the sum of a mean's noise dummies, in steps; None for none."""
        return sum_noise_of(self.dummies_sum_scale)

    def epochs_together(self, epoch: str) -> int:
        """The largest number of epochs of this length that its period touches."""
        return epochs_within(epoch, days_at_most(self.period)) if self.period else 1

    def unkept(self) -> str:
        """The error message if no local epsilon is small enough to keep it."""
        epochs_text = f" over {self.epochs:,} epochs together" if self.epochs > 1 else ""
        return (
            f"a crowd of {self.reports:,} keeps a central epsilon of {self.epsilon:g}{epochs_text} "
            f"only if the local epsilon is below {MIN_EPSILON:.3g}, the smallest possible: gather "
            "more reports, or raise central_epsilon"
        )
