"""A family and a mechanism that the product has not: how many hold a value or one listed before it.

Listed values have an order here, as sizes or grades have; each estimate is a sum of bits' own. It
shows what a new family takes: this file, and a line in the table of families.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import sqrt
from typing import Any

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.analysis.families.contract import Expected, Statistic
from hubbub.analysis.families.listed_values import Listed
from hubbub.analysis.families.tiers_and_rows import Columns, Tier, reports_of
from hubbub.analysis.value_estimates import ValueEstimates
from hubbub.errors import BadParameter
from hubbub.fields.frozen import frozen
from hubbub.mechanisms import Totals
from hubbub.mechanisms.unary import OptimizedUnary


@frozen()
class OrderedUnary(OptimizedUnary):
    """Optimized unary encoding, read in the order of its values."""

    NAME = "ordered"
    FAMILY = "at_most"


class AtMost(Listed):
    """Every estimate is of its value and of all that are listed before it."""

    def figures(self, mechanism: Any, totals: Totals, candidates: Sequence[str]) -> ValueEstimates:
        each = super().figures(mechanism, totals, candidates)
        return replace(
            each,
            estimates=np.cumsum(each.estimates),
            stderrs=np.sqrt(np.cumsum(each.stderrs**2)),
            absent=np.sqrt(np.cumsum(each.absent**2)),
            tail=None,
        )

    def consistent(
        self, tiers: Sequence[Tier], scales: Floats, figures: ValueEstimates, judged: Columns
    ) -> Floats:
        del scales, judged
        return np.clip(np.maximum.accumulate(figures.estimates), 0.0, reports_of(tiers))

    def correlation(self, _mechanism: Any) -> float:
        return 1.0

    def weights(self, mechanism: Any, targets: Sequence[int]) -> tuple[Floats, float]:
        gap = float(mechanism.channel.p - mechanism.channel.q)
        weights, lies = np.zeros(mechanism.layout.size), 0
        for target in targets:
            mechanism.check(target)
            weights[: target + 1] += 1 / gap
            lies += target + 1
        return weights, -lies * float(mechanism.channel.q) / gap

    def expected(
        self, mechanism: Any, _values: Sequence[object], shares: Floats, reports: float
    ) -> Expected:
        other = mechanism.variance(0.0, 1) / reports
        grown = np.arange(1, len(shares) + 1)
        share_variance = (mechanism.variance(1.0, 1) / reports - other) * np.cumsum(shares)
        return Expected(np.sqrt(other * grown + share_variance), np.full_like(shares, sqrt(other)))

    def statistic(self, _mechanism: Any, _totals: Totals) -> Statistic:
        raise BadParameter("cumulative counts are not released: release the values' own")
