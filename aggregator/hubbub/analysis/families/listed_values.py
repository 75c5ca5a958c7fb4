"""Listed values: each has its own estimate, linear in the totals."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from math import sqrt
from typing import Any, Final

import numpy as np
from numpy.random import Generator

from hubbub.analysis.arrays import Floats
from hubbub.analysis.estimators.fast_support_counts import supports_of
from hubbub.analysis.families.contract import BitSum, Family, Statistic, support_deviations
from hubbub.analysis.families.draw_totals import (
    QUICK,
    Counts,
    People,
    bit_counts,
    bucket_holders,
    chain_steps,
    check_size,
    draw_named_values,
    holders,
    lasting_bits,
)
from hubbub.analysis.uncertainty.intervals import Tail
from hubbub.analysis.uncertainty.tails import law_of_counts, pure_tail, repeated_tail
from hubbub.analysis.value_estimates import ValueEstimates
from hubbub.errors import BadParameter
from hubbub.mechanisms import AnyMechanism, BitVector, Memoized, OneHot, Subset, Totals
from hubbub.mechanisms.grr import GeneralizedRandomizedResponse
from hubbub.mechanisms.hadamard import WalshHadamard
from hubbub.mechanisms.longitudinal_grr import LongitudinalGrr
from hubbub.mechanisms.longitudinal_hash import LongitudinalHash
from hubbub.mechanisms.longitudinal_unary import LongitudinalUnary
from hubbub.mechanisms.projective_geometry import HashPool, Incidence
from hubbub.mechanisms.pure_protocols import ListedMechanism, report_variances
from hubbub.mechanisms.rappor_basic import BasicRappor
from hubbub.mechanisms.rr import RandomizedResponse

# From this size on, numpy refuses to draw without replacement.
_MAX_DRAWN: Final = 10**9


def estimates_of(mechanism: Any, totals: Totals) -> tuple[Floats, Floats]:
    """Values and variances of `mechanism.estimate`, in a fraction of its time; tests compare."""
    has_transform = hasattr(mechanism, "transform")
    if not has_transform and type(mechanism).estimate is not ListedMechanism.estimate:  # sets
        estimates = mechanism.estimate(totals)
        return np.array(estimates.values), np.array(estimates.variances)
    totals.check(mechanism.layout)
    supports = np.array(totals.cells, dtype=np.int64)
    if has_transform:  # one index per report is read
        supports = supports_of(mechanism, supports)
    channel, reports = mechanism.channel, totals.reports
    without_truth = float(reports * channel.q) + totals.dummies / len(totals.cells)
    values: Floats = np.divide(supports - without_truth, float(channel.p - channel.q))
    clipped = np.clip(values, 0, reports)
    true_variance, other_variance = report_variances(channel)
    variances: Floats = clipped * true_variance + (reports - clipped) * other_variance
    if totals.dummies:
        variances += channel.dummies_variances(clipped.tolist(), totals)
    return values, variances


class Listed(Family):
    """Pure mechanisms over listed values, with support probabilities p and q."""

    KIND = "values"

    def figures(self, mechanism: Any, totals: Totals, candidates: Sequence[str]) -> ValueEstimates:
        (estimates, variances), channel = estimates_of(mechanism, totals), mechanism.channel
        true_variance, other_variance = report_variances(channel)
        stderrs = np.sqrt(variances)
        padded = channel.dummies_variances([0.0], totals)[0] if totals.has_dummies else 0.0
        absent = np.full_like(stderrs, sqrt(totals.reports * other_variance + padded))
        growth = np.full_like(stderrs, true_variance - other_variance)
        tail = pure_tail(channel, totals.reports, totals)
        step = 1 / float(channel.p - channel.q)
        return ValueEstimates(
            estimates=estimates,
            stderrs=stderrs,
            absent=absent,
            growth=growth,
            tail=tail,
            count_law=law_of_counts(channel, totals),
            step=step,
            # All that arrived may be reports.
            unsure=totals.dummies if totals.dummies_variance or totals.beside_variance else 0,
            number_variance=totals.beside_variance,
            # One more dummy adds a report, and its mean contribution to an estimate.
            number_covariance=totals.beside_variance
            * (1 / max(len(totals.cells), 1) - float(channel.q))
            * step,
            noise_variance=totals.spread() * step**2 if totals.value_law else 0.0,
        )

    def repeated(
        self, mechanism: Any, figures: ValueEstimates, reports: int, repeats: int
    ) -> ValueEstimates:
        """Counts the permanent part of a lie as often as it is repeated, the fresh part once."""
        true_spread, other_spread = spreads(mechanism, repeats)
        inside = np.clip(figures.estimates, 0.0, reports)
        return replace(
            figures,
            stderrs=np.sqrt(inside * true_spread + (reports - inside) * other_spread),
            absent=np.full_like(figures.absent, sqrt(reports * other_spread)),
            growth=np.full_like(figures.growth, true_spread - other_spread),
            tail=_tail(mechanism, max(reports // repeats, 1), repeats),
            count_law=None,
        )

    def correlation(self, mechanism: Any) -> float:
        """Largest negative correlation: 0 for independent bits, 1 where nothing is known.

        A report that names one value cannot name another: the covariance of naming i and j is -P(i)
        P(j), which is largest if one of them is true, over many reports, too (Cauchy, Schwarz).
        """
        match mechanism:
            case GeneralizedRandomizedResponse() | RandomizedResponse() | LongitudinalGrr():
                p, q = mechanism.channel.p, mechanism.channel.q
                return min(sqrt(p * q / ((1 - p) * (1 - q))), 1.0)
            case _:
                return 0.0 if isinstance(mechanism.layout, BitVector) else 1.0

    def sums(self, mechanism: Any, cells: Floats, totals: Totals) -> Iterator[BitSum]:
        """Supports of each value, between q and p of all reports.

        If all bits are drawn independently, the number of bits per report also has a known mean.
        """
        channel, n, d = mechanism.channel, totals.reports, mechanism.categories
        p, q = float(channel.p), float(channel.q)
        if isinstance(mechanism.layout, BitVector):
            expected = p + (d - 1) * q
            yield BitSum(
                f"reports support {cells.sum() / n:,.2f} values each, honest ones {expected:,.2f}",
                abs(float(cells.sum()) - n * expected),
                n * (p * (1 - p) + (d - 1) * q * (1 - q)),
                times=2,
            )
        support_counts = estimates_of(mechanism, totals)[0] * (p - q) + n * q
        drawn_variance = 0.0
        if totals.has_dummies:
            drawn_variance = totals.spread() + totals.dummies_variance + totals.beside_variance
        yield from support_deviations(
            "value", support_counts, np.full_like(support_counts, n), channel, drawn_variance
        )

    def weights(self, mechanism: Any, targets: Sequence[int]) -> tuple[Floats, float]:
        """Weights by whether a payload supports each target."""
        channel, layout = mechanism.channel, mechanism.layout
        gap = float(channel.p - channel.q)
        for target in targets:
            mechanism.check(target)
        weights = np.zeros(layout.size)
        if isinstance(layout, OneHot):
            # A report has one chance if it supports the target, else another.
            for target in targets:
                chances = [mechanism.likelihood(target, {cell: 1}) for cell in range(layout.size)]
                max_chance = max(chances)
                weights += [float(chance == max_chance) / gap for chance in chances]
        else:
            weights[list(targets)] = 1 / gap
        return weights, -len(targets) * float(channel.q) / gap

    def statistic(self, mechanism: Any, totals: Totals) -> Statistic:
        """Number of reports that support each value: whole numbers."""
        p, q, reports = mechanism.channel.p, mechanism.channel.q, totals.reports
        (values, _), gap = estimates_of(mechanism, totals), float(p - q)
        change = _max_changes(mechanism)
        return Statistic(
            numbers=np.rint(values * gap + float(reports * q)),
            l1=change,
            l2=sqrt(change),
            unit=1 / gap,
            base=-reports * float(q) / gap,
        )

    def draw(self, mechanism: Any, people: People, rng: Generator) -> Counts:
        match mechanism:
            case GeneralizedRandomizedResponse() | RandomizedResponse() | LongitudinalGrr():
                by_cell = holders(mechanism, people)
                return draw_named_values(by_cell, float(mechanism.channel.q), rng)
            case LongitudinalHash():
                by_bucket = _bucket_holders(mechanism, people, rng)
                names = draw_named_values(by_bucket, float(mechanism.response.channel.q), rng)
                return names.reshape(-1)
        match mechanism.layout:
            case BitVector():
                by_cell = holders(mechanism, people)
                return bit_counts(by_cell, people.counts.sum(), mechanism.channel, rng)
            case Subset():
                return _subsets(mechanism, people, rng)
            case _:
                return super().draw(mechanism, people, rng)

    def draw_lasting(self, mechanism: Any, people: People, rng: Generator) -> Callable[[], Counts]:
        match mechanism:
            case LongitudinalGrr():
                return _lasting_names(mechanism, holders(mechanism, people), rng)
            case LongitudinalHash():
                by_bucket = _bucket_holders(mechanism, people, rng)
                return _lasting_names(mechanism.response, by_bucket, rng)
            case LongitudinalUnary():
                permanent = 0.5, float(mechanism.rare.exact)
                flip = float(mechanism.flip.exact)
                steps = permanent, (1 - flip, flip)
            case BasicRappor():
                steps = chain_steps(mechanism.chain)
            case _:
                return super().draw_lasting(mechanism, people, rng)
        return lasting_bits(holders(mechanism, people), people.counts.sum(), *steps, rng)

    def question(self, mechanism: Any) -> Mapping[str, Any]:
        return {"kind": "values", "size": mechanism.categories}

    def far_apart(self, mechanism: Any) -> tuple[int, int]:
        return 0, mechanism.categories - 1

    def examples(self, mechanism: Any) -> Sequence[int]:
        return range(mechanism.categories)

    def example_share(self, mechanism: Any, targets: Sequence[int]) -> float:
        return len(targets) / len(self.examples(mechanism))

    def rows_of(self, mechanism: Any, value: int) -> Sequence[int]:
        return [value]

    def tail(self, mechanism: Any, reports: int) -> Tail | None:
        return pure_tail(mechanism.channel, reports)

    def lasting_buckets(self, mechanism: Any) -> int:
        return mechanism.transform.prime if isinstance(mechanism, LongitudinalHash) else 0


def _tail(mechanism: Any, devices: int, repeats: int) -> Tail | None:
    """Tail of an absent value's estimate, if `devices` report `repeats` times each."""
    step = _permanent_step(mechanism)
    if step is None:  # repeated answers are the same
        return pure_tail(mechanism.channel, devices)
    lie_chance, fresh_gap = float(step[1]), float(step[2])
    lie = float(mechanism.channel.q) - lie_chance * fresh_gap
    return repeated_tail(lie_chance, lie + fresh_gap, lie, devices, repeats)


def _bucket_holders(mechanism: LongitudinalHash, people: People, rng: Generator) -> Counts:
    """Draws each person's function; people per function and bucket."""
    pool = mechanism.transform
    check_size(mechanism, len(people.values) * pool.functions // QUICK)
    return bucket_holders(_pool_buckets(pool, tuple(people.values)), pool.prime, people.counts, rng)


@lru_cache(maxsize=16)
def _pool_buckets(pool: HashPool, values: tuple[int, ...]) -> Counts:
    return np.array([[pool.bucket(value, j) for j in range(pool.functions)] for value in values])


def _lasting_names(
    mechanism: LongitudinalGrr, counts: Counts, rng: Generator
) -> Callable[[], Counts]:
    """Draws each device's permanent value; each call draws how many reports name each value."""
    other_count = mechanism.categories - 1
    forever, fresh = (
        float(keep.complement.exact) / other_count
        for keep in (mechanism.permanent, mechanism.fresh)
    )
    permanent = draw_named_values(counts, forever, rng)
    return lambda: draw_named_values(permanent, fresh, rng).reshape(-1)


def _subsets(mechanism: Any, people: People, rng: Generator) -> Counts:
    """Draws sets element by element, counting people by the elements that they still need.

    Until a person's own element comes, the draw does not depend on which element it is.
    """
    size, picks = mechanism.layout.size, mechanism.layout.ones
    check_size(mechanism, size * picks // QUICK)
    by_cell, reports = holders(mechanism, people), int(people.counts.sum())
    if reports >= _MAX_DRAWN:
        raise BadParameter(
            f"{mechanism.NAME}: {reports:,} reports are too many to simulate; use fewer than "
            f"{_MAX_DRAWN:,}"
        )
    included = int(rng.binomial(reports, float(mechanism.channel.p)))
    # Of the set, beside the own element. Rows: own element to come and left out, and in; and past.
    remaining = np.zeros((3, picks + 1), dtype=np.int64)
    remaining[1, picks - 1], remaining[0, picks] = included, reports - included
    to_go, cells = np.arange(picks + 1), np.zeros(size, dtype=np.int64)
    for element in range(size):
        came = rng.multivariate_hypergeometric(
            remaining[:2].reshape(-1), int(by_cell[element]), method="marginals"
        ).reshape(2, -1)
        remaining[:2] -= came
        # Other elements still to come: of those whose own is among them one less.
        others = np.array([[size - element - 1], [size - element - 1], [size - element]])
        picked = rng.binomial(remaining, np.minimum(to_go / np.maximum(others, 1), 1.0))
        remaining -= picked
        remaining[:, :-1] += picked[:, 1:]
        remaining[2] += came.sum(axis=0)
        cells[element] = picked.sum() + came[1].sum()
    return cells


def _max_changes(mechanism: Any) -> int:
    """Largest number of values that only one of two payloads supports."""
    values: int = mechanism.categories
    match getattr(mechanism, "transform", mechanism.layout):
        case WalshHadamard(size):
            max_changes = size // 2  # two columns of a Hadamard matrix
        case Incidence() as space:
            max_changes = 2 * (space.on_one - space.on_two)
        case HashPool() as pool:
            max_changes = 2 * pool.prime ** (pool.dimensions - 1)  # a bucket holds this many values
        # Layouts with a cell per value: cells in which two payloads differ.
        case OneHot():
            max_changes = 2
        case Subset() as layout:
            max_changes = 2 * min(layout.ones, layout.size - layout.ones)
        case BitVector(size):
            max_changes = size
        case layout:
            raise BadParameter(f"totals of {type(layout).__name__} cannot be released")
    return min(values, max_changes)


def spreads(mechanism: Any, repeats: int) -> tuple[float, float]:
    """Variance that one report adds to an estimate: of the value it holds, and of another value.

    The permanent lie of r reports of a device is one random draw: per report, it adds r times the
    variance of a single report's. The fresh lie is drawn anew each time. How often each device
    reported is unknown, so `repeats`, the largest possible number, is assumed.
    """
    true_spread, other_spread = mechanism.variance(1.0, 1), mechanism.variance(0.0, 1)
    lasts = isinstance(mechanism, Memoized)
    if repeats == 1 or not lasts:
        return true_spread, other_spread
    step = _permanent_step(mechanism)
    if step is None:
        return true_spread * repeats, other_spread * repeats
    keep_chance, lie_chance, fresh_gap = step
    # Variance of a permanent bit with chance b, seen through the fresh step: seen^2 b (1 - b).
    unit = (fresh_gap / (mechanism.channel.p - mechanism.channel.q)) ** 2
    repeats_after_first = repeats - 1
    return true_spread + repeats_after_first * float(
        unit * keep_chance * (1 - keep_chance)
    ), other_spread + repeats_after_first * float(unit * lie_chance * (1 - lie_chance))


def _permanent_step(mechanism: AnyMechanism) -> tuple[Fraction, Fraction, Fraction] | None:
    """Chances of a permanent 1 for the held value and another, and the 1's effect on a support.

    None if no part of a lie is fresh.
    """
    match mechanism:
        case LongitudinalGrr():
            other_count = mechanism.categories - 1
            keep_chance = mechanism.permanent.exact
            lie_chance = mechanism.permanent.complement.exact / other_count
            fresh_gap = mechanism.fresh.exact - mechanism.fresh.complement.exact / other_count
        case LongitudinalHash():  # the function is for life, too, and who collides under it
            step = _permanent_step(mechanism.response)
            assert step is not None  # noqa: S101 a long.grr has one
            keep_chance, other, fresh_gap = step
            collide = mechanism.transform.collisions
            lie_chance = collide * keep_chance + (1 - collide) * other
        case LongitudinalUnary():
            keep_chance, lie_chance = Fraction(1, 2), mechanism.rare.exact
            fresh_gap = 1 - 2 * mechanism.flip.exact
        case BasicRappor():
            lie_chance = mechanism.chain.flip.exact
            keep_chance = 1 - lie_chance
            fresh_gap = mechanism.chain.one_after_one.exact - mechanism.chain.one_after_zero.exact
        case _:
            return None
    return keep_chance, lie_chance, fresh_gap
