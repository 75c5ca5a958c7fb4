"""Mechanisms that estimate only the mean of numbers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from math import sqrt
from typing import Any, Final

import numpy as np

from hubbub.analysis.answer import Answer, ValueAnswer
from hubbub.analysis.arrays import Floats
from hubbub.analysis.families.contract import BitSum, Expected, Statistic, support_deviations
from hubbub.analysis.families.draw_totals import one_hot_chances
from hubbub.analysis.families.number_family import Numbers, people_variance_of
from hubbub.analysis.families.tiers_and_rows import Tier, reports_of
from hubbub.analysis.uncertainty.intervals import Tail
from hubbub.analysis.uncertainty.tails import laplace_tail, sum_tail
from hubbub.analysis.value_estimates import ValueEstimates, mean_of
from hubbub.mechanisms import Totals
from hubbub.mechanisms.mean_lookup_table import TableMean
from hubbub.mechanisms.mean_one_bit import OneBitMean
from hubbub.mechanisms.mean_piecewise import PiecewiseMean
from hubbub.mechanisms.number_range import PLACES, dummies_variance
from hubbub.mechanisms.pure_protocols import Pure

# Number of places with a cached distribution; neighbouring ones hardly differ.
_PLACES: Final = 64

Meaning = OneBitMean | PiecewiseMean | TableMean


class Means(Numbers):
    """Mechanisms that estimate a mean, and nothing else."""

    KIND = "mean"

    def figures(
        self, mechanism: Meaning, totals: Totals, candidates: Sequence[str]
    ) -> ValueEstimates:
        """One estimate: the sum of the numbers' places in their range."""
        raw_estimate = mechanism.estimate(totals)
        estimates = np.array(raw_estimate.values)
        stderrs = np.sqrt(np.array(raw_estimate.variances))
        middle = mechanism.variance(totals.reports / 2, totals.reports)
        if not isinstance(mechanism, OneBitMean):
            estimate, stderr = float(estimates[0]), float(stderrs[0])
            outputs = np.array(_outputs(mechanism), dtype=np.float64)
            return ValueEstimates.flat(
                estimates,
                stderrs,
                tail=_tail(mechanism, estimate, stderr, totals),
                typical=middle,
                people_variance=people_variance_of(
                    outputs * _line(mechanism)[0], totals, estimate, stderr
                ),
            )
        # P (1 - P) at every place, and one answer more or less.
        lie, gap = mechanism.keep.complement.exact, mechanism.total_variation()
        least = float(totals.reports * lie * (1 - lie) / gap**2)
        least += dummies_variance(
            mechanism.contributions, totals, min(max(estimates[0], 0.0), totals.reports)
        )
        curvature = 1 / max(totals.reports, 1)
        return ValueEstimates(
            estimates=estimates,
            stderrs=stderrs,
            absent=np.sqrt([least]),
            growth=np.ones(1),
            curvature=curvature,
            step=float(1 / gap),
            typical=middle,
            # A bit's variance is the same whoever has which number of this mean.
            included_people_variance=1.0,
        )

    def answer(
        self, tiers: Sequence[Tier], names: Sequence[str], confidence: float, repeats: int
    ) -> Answer:
        mechanism: Any = tiers[0][0]
        reports, ends = reports_of(tiers), self.ends(mechanism)
        figures = self.figures_of(tiers, (), repeats)
        mean = mean_of(figures, ends, reports, confidence)
        row = ValueAnswer(value="mean", share=None, rank=None, detected=None, **asdict(mean))
        return Answer(
            kind="mean",
            reports=reports,
            confidence=confidence,
            values=(row,),
            span=ends,
            repeats=repeats,
            place=figures,
        )

    def correlation(self, mechanism: Meaning) -> float:
        return 0.0

    def sums(self, mechanism: Meaning, cells: Floats, totals: Totals) -> Iterator[BitSum]:
        everybody = np.full_like(cells, totals.reports)
        reported = cells - np.array(totals.by_cell())
        drawn_variance = totals.spread() + totals.beside_variance
        if isinstance(mechanism, OneBitMean):
            what, pure = "answer", Pure(mechanism.keep.exact, mechanism.keep.complement.exact)
        else:
            what, pure = "place", Pure(mechanism.window.near, mechanism.window.far)
        yield from support_deviations(what, reported, everybody, pure, drawn_variance)

    def expected(
        self, mechanism: Meaning, values: Sequence[object], shares: Floats, reports: float
    ) -> Expected:
        """Errors at the place where they are largest."""
        variance = max(mechanism.variance(place * 1000, 1000) for place in PLACES) / 1000
        errors = np.array([sqrt(variance / reports)])
        return Expected(errors, errors)

    def statistic(self, mechanism: Meaning, totals: Totals) -> Statistic:
        """Sum of places or outputs, in which the estimate is linear."""
        outputs, (unit, base) = _outputs(mechanism), _line(mechanism)
        widest = outputs[-1] - outputs[0]
        total = sum(y * number for y, number in zip(outputs, totals.cells, strict=True))
        return Statistic(
            numbers=np.array([float(total)]),
            l1=widest,
            l2=float(widest),
            unit=unit,
            base=base * totals.reports,
        )

    def local(self, mechanism: Meaning, noisy: Floats, reports: int) -> Floats:
        """Largest variance over all places."""
        return np.array([max(mechanism.variance(x * reports, reports) for x in PLACES)])

    def labels(self, mechanism: Meaning, values: Sequence[str] | None) -> Sequence[str]:
        return ["mean"]

    def question(self, mechanism: Meaning) -> Mapping[str, Any]:
        ends = {"low": mechanism.low, "high": mechanism.high}
        return {"kind": "mean", "size": 1, **ends, "permanent_epsilon": None}

    def targets(self, mechanism: Meaning, number: int) -> Sequence[int]:
        return [0]

    def example_share(self, mechanism: Meaning, targets: Sequence[int]) -> float:
        return 0.5


def _outputs(mechanism: Meaning) -> Sequence[int]:
    """Contribution of each cell's report to the sum in which the estimate is linear."""
    return mechanism.outputs if isinstance(mechanism, TableMean) else range(mechanism.layout.size)


@lru_cache(maxsize=256)
def _line(mechanism: Meaning) -> tuple[float, float]:
    """Slope and base of the line from a report's output to its place."""
    outputs = _outputs(mechanism)
    first, last = (
        float(Means().alone(mechanism, cell)[0]) for cell in (0, mechanism.layout.size - 1)
    )
    unit = (last - first) / (outputs[-1] - outputs[0])
    return unit, first - unit * outputs[0]


def _tail(mechanism: Meaning, estimate: float, stderr: float, totals: Totals) -> Tail | None:
    """Tail of the sum, if all people hold the number at about the estimated place."""
    reports = totals.reports
    if totals.sum_variance and isinstance(mechanism, PiecewiseMean):
        ends = mechanism.contributions
        step = (ends[-1] - ends[0]) / (len(ends) - 1)
        return laplace_tail(min(totals.sum_variance * (step / stderr) ** 2, 1.0), totals.sums)
    if totals.dummies:  # of many steps, which add so much that the sum is nearly normal
        return None
    place = round(_PLACES * min(max(estimate / max(reports, 1), 0.0), 1.0)) / _PLACES
    chances = one_hot_chances(mechanism, mechanism.low + place * (mechanism.high - mechanism.low))
    return sum_tail(chances, np.array(_outputs(mechanism), dtype=np.float64), reports)
