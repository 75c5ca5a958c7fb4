"""Sets: how many people's sets each value is in; values do not exclude each other."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Final

import numpy as np

from hubbub.analysis.answer import Answer
from hubbub.analysis.arrays import Floats
from hubbub.analysis.families.contract import BitSum, Expected, MetricKind, Statistic, Tier, wider
from hubbub.analysis.families.listed import Listed
from hubbub.analysis.families.rows import Columns, values_answer
from hubbub.analysis.families.tiers import figures_of
from hubbub.analysis.value_estimates import ValueEstimates
from hubbub.mechanisms import Totals
from hubbub.mechanisms.privset import PrivSet

# Each value by itself is one of a list: two chances, and linear in the totals.
_listed: Final = Listed()


class Sets:
    """Mechanisms that tell a set of listed values."""

    KIND: ClassVar[MetricKind] = "values"

    def figures(
        self,
        mechanism: PrivSet,
        totals: Totals,
        candidates: Sequence[str],
        *,
        shape: bool,
    ) -> ValueEstimates:
        """Of each value as if it were one of a list."""
        return _listed.figures(mechanism, totals, candidates, shape=shape)

    def repeated(
        self, mechanism: PrivSet, figures: ValueEstimates, reports: int, repeats: int
    ) -> ValueEstimates:
        """Nothing of a lie is taken for fresh."""
        return wider(figures, repeats)

    def answer(
        self, tiers: Sequence[Tier], names: Sequence[str], confidence: float, repeats: int
    ) -> Answer:
        """A row for each listed value; `consistent` keeps each share in [0, 1], and no sum."""
        reports = sum(totals.reports for _, totals in tiers)
        figures = figures_of(self, tiers, (), repeats)

        def inside(judged: Columns) -> Floats:
            estimates, _, low, high, _ = judged
            return np.clip(np.clip(estimates, low, high), 0.0, float(reports))

        return values_answer(figures, names, reports, confidence, repeats, picture=inside)

    def ends(self, mechanism: PrivSet) -> None:
        """No numbers."""

    def correlation(self, mechanism: PrivSet) -> float:
        """Two values may always be held together: nothing is assumed."""
        return 1.0

    def sums(self, mechanism: PrivSet, cells: Floats, totals: Totals) -> Iterator[BitSum]:
        """Each value is supported by q of all reports at least and by p at most."""
        yield from _listed.sums(mechanism, cells, totals)

    def weights(self, mechanism: PrivSet, targets: Sequence[int]) -> tuple[Floats, float]:
        """By whether a payload has each target."""
        gap = float(mechanism.channel.p - mechanism.channel.q)
        weights = np.zeros(mechanism.layout.size)
        for target in targets:
            mechanism.check(1 << target)
            weights[target] = 1 / gap
        return weights, -len(targets) * float(mechanism.channel.q) / gap

    def expected(
        self, mechanism: PrivSet, values: Sequence[object], shares: Floats, reports: float
    ) -> Expected:
        """Of all values, where shares[i] of the people hold the set values[i]."""
        held = np.zeros(mechanism.categories)
        for value, share in zip(values, shares.tolist(), strict=True):
            held += share * np.array(mechanism.row(value), dtype=np.float64)  # type: ignore[arg-type]
        own, other = mechanism.variance(1.0, 1) / reports, mechanism.variance(0.0, 1) / reports
        return Expected(
            np.sqrt(held * own + (1 - held) * other), np.full_like(held, np.sqrt(other))
        )

    def statistic(self, mechanism: PrivSet, totals: Totals) -> Statistic:
        """How many reports have each value."""
        return _listed.statistic(mechanism, totals)

    def local(self, mechanism: Any, noisy: Floats, reports: int) -> None:
        """By what one report adds."""

    def labels(self, mechanism: PrivSet, values: Sequence[str] | None) -> Sequence[str]:
        """The values themselves."""
        return _listed.labels(mechanism, values)
