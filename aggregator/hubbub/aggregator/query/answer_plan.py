"""Plan of a metric's answers: what applies to them, decided once when a bundle is opened."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Self

from hubbub.analysis.families import family_for
from hubbub.analysis.families.contract import Family
from hubbub.catalog import Metric
from hubbub.runtime.version import VERSION

# Digits after the point of a loss that answers contain: 4, not 3.9999999999963656.
_DIGITS: Final = 9


@dataclass(frozen=True, eq=False, kw_only=True)
class AnswerPlan:
    """A metric, and what every answer about it would otherwise decide again.

    Args:
        family: how its mechanism answers.
        names: of an answer's rows; None for cells and numbers, which the family names, and for
            strings, which a query names.
        epsilon: proven loss of one report, in nats, rounded up.
    """

    metric: Metric
    family: Family
    names: Sequence[str] | None
    epsilon: float

    @classmethod
    def of(cls, metric: Metric) -> Self:
        """The plan of a metric, or of one of its tiers or cells."""
        return cls(
            metric=metric,
            family=family_for(metric.randomizer),
            names=None if metric.parts else metric.values,
            epsilon=stated_epsilon(metric),
        )

    @cached_property
    def definition(self) -> str:
        """Text that differs between programs, and between bundles with other definitions."""
        return repr((VERSION, self.metric))


def stated_epsilon(metric: Metric) -> float:
    """The proven loss of one report of a metric, in nats, rounded up."""
    rounded = round(metric.report_loss, _DIGITS)
    return rounded if rounded >= metric.report_loss else round(rounded + 10**-_DIGITS, _DIGITS)
