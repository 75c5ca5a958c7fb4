"""How the estimates of listed values err together, for sums and ratios of them: exact.

One report's contributions to all estimates have a covariance that depends on the value it holds.
Estimates are then moved alike so that they add up to the reports, which have an error of their own
where dummies hide their number.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.analysis.families.draw_totals import one_hot_chances
from hubbub.analysis.families.listed_values import Listed, spreads
from hubbub.analysis.families.tiers_and_rows import Tier, reports_of
from hubbub.mechanisms import AnyMechanism, BitVector, Subset

_LISTED: Final = Listed()


@dataclass(frozen=True)
class Joint:
    """The estimates of one range of epochs, from all tiers that have reports."""

    tiers: Sequence[Tier]
    repeats: int

    @cached_property
    def reports(self) -> int:
        """Number of reports, or the estimate of it."""
        return reports_of(self.tiers)

    @cached_property
    def _sums(self) -> tuple[Floats, Floats, float]:
        """The tiers' estimates summed by how much each counts, how much that is, and `step`."""
        estimates, scales = _LISTED.scaled(self.tiers, (), self.repeats)
        sums = scales @ np.array([figures.estimates for figures in estimates])
        return sums, scales, float(max(scales * [figures.step for figures in estimates]))

    @cached_property
    def counts(self) -> Floats:
        """The estimate of each value in reports, with the sum `reports`."""
        raw, _, _ = self._sums
        return raw + (self.reports - float(raw.sum())) / len(raw)

    @property
    def step(self) -> float:
        """By how much one report changes the estimate of a value, at most."""
        return self._sums[2]

    @property
    def unsure(self) -> int:
        """How many more reports there may be at most, where their number is an estimate."""
        return sum(t.dummies for _, t in self.tiers if t.dummies_variance or t.beside_variance)

    def drawn(self, repeats: int) -> float:
        """What a report adds to the variance for having been drawn from the population.

        With `repeats` of 0 for the reporters, where only the choice of a tier is chance.
        """
        numbers = np.array([totals.reports for _, totals in self.tiers])
        scales = self._sums[1]
        per_report = repeats * scales**2 if repeats else (scales - 1) ** 2
        return float(numbers @ per_report) / max(self.reports, 1)

    def variances(
        self, numerator: Floats, denominator: Floats, drawn: float
    ) -> tuple[Floats, Floats, Floats]:
        """Variance of numerator @ counts - ratio * denominator @ counts, whose true value is 0.

        Args:
            numerator: weights of the values.
            denominator: the same for the ratio's denominator.
            drawn: what a report adds for having been drawn from the population (`drawn()`).

        Returns coefficients of 1, ratio and ratio squared: what each report of a value adds, of
        shape (3, values); what dummies add; and the part of the latter without a normal law.
        """
        centred = numerator - float(numerator.mean()), denominator - float(denominator.mean())
        per_report = drawn * _products(numerator, denominator)
        dummies_part, without_law = np.zeros(3), np.zeros(3)
        mechanism: Any  # over listed values
        for (mechanism, totals), scale in zip(self.tiers, self._sums[1].tolist(), strict=True):
            coins = coin_variances(mechanism, self.repeats, *centred)
            per_report = per_report + scale**2 * totals.reports / max(self.reports, 1) * coins
            if totals.dummies:
                size = len(totals.cells)
                # The total of dummies is fixed, so estimates' errors correlate negatively.
                spread = totals.spread() / mechanism.channel.gap**2 * size / (size - 1)
                named_part = scale**2 * spread * _products(*centred).sum(axis=1)
                count_part = totals.beside_variance * _products(
                    numerator.mean(), denominator.mean()
                )
                means = (float(weights @ self.counts) / max(self.reports, 1) for weights in centred)
                dummies_part += (
                    named_part + count_part + totals.dummies_variance * _products(*means)
                )
                without_law += count_part + (named_part if totals.value_law else 0.0)
        return per_report, dummies_part, without_law


def coin_variances(
    mechanism: AnyMechanism, repeats: int, numerator: Floats, denominator: Floats
) -> Floats:
    """What coins add to the variance of numerator @ counts - ratio * denominator @ counts.

    Weights are less their mean. Returns what each report of a value adds, as coefficients of 1,
    ratio and ratio squared; shape (3, values).
    """
    coins = _coins(mechanism, repeats)
    numerator_sums, denominator_sums = (
        np.einsum("xij,i->xj", coins, weights) for weights in (numerator, denominator)
    )
    return np.array(
        [
            numerator_sums @ numerator,
            -2 * numerator_sums @ denominator,
            denominator_sums @ denominator,
        ]
    )


def _products(numerator: Floats | float, denominator: Floats | float) -> Floats:
    """Squares of numerator - ratio * denominator, as coefficients; shape (3,) or (3, values)."""
    return np.array([numerator**2, -2 * numerator * denominator, denominator**2])


@lru_cache(maxsize=64)
def pair_covariances(mechanism: Any, repeats: int) -> tuple[float, float]:
    """Mean covariances over pairs of values: the report's own and another, and two others.

    They are of what one report adds to both; a permanent response has the same correlations.
    """
    size = mechanism.categories
    if isinstance(mechanism.layout, BitVector):
        return 0.0, 0.0
    true_spread, other_spread = spreads(mechanism, 1)
    again_true, again_other = spreads(mechanism, repeats)
    if isinstance(mechanism.layout, Subset):
        # Every report has the same number of 1s, so the sum of all estimates has no variance.
        own_and_other, variance_of_others = -true_spread / (size - 1), true_spread
    else:
        chances = np.array(one_hot_chances(mechanism, 0))
        adds, others = (_LISTED.weights(mechanism, who)[0] for who in ([0], range(1, size)))
        deviations = others - float(chances @ others)
        own_and_other = float(chances @ (adds * deviations)) / (size - 1)
        variance_of_others = float(chances @ deviations**2)
    pairs = max((size - 1) * (size - 2), 1)
    repeats_after_first = again_other / other_spread
    return (
        float(own_and_other * np.sqrt(again_true / true_spread * repeats_after_first)),
        float((variance_of_others - (size - 1) * other_spread) / pairs * repeats_after_first),
    )


@lru_cache(maxsize=64)
def _coins(mechanism: Any, repeats: int) -> Floats:
    """Covariance of what a report adds to all estimates, by the value it holds; shape (x, i, j)."""
    size, (true_spread, other_spread) = mechanism.categories, spreads(mechanism, 1)
    own_value = np.eye(size)
    if isinstance(mechanism.layout, BitVector | Subset):
        includes_own_value = own_value[:, :, None] + own_value[:, None, :] > 0
        coins = np.where(includes_own_value, *pair_covariances(mechanism, 1))
        coins[:, np.arange(size), np.arange(size)] = true_spread * own_value + other_spread * (
            1 - own_value
        )
    else:
        chances = np.array([one_hot_chances(mechanism, value) for value in range(size)])
        adds = np.array([_LISTED.weights(mechanism, [value])[0] for value in range(size)])
        means = chances @ adds.T
        coins = np.einsum("xc,ic,jc->xij", chances, adds, adds)
        coins -= means[:, :, None] * means[:, None, :]
    again_true, again_other = spreads(mechanism, repeats)
    scales = np.sqrt(again_true / true_spread) * own_value + np.sqrt(again_other / other_spread) * (
        1 - own_value
    )
    answer: Floats = scales[:, :, None] * coins * scales[:, None, :]
    return answer
