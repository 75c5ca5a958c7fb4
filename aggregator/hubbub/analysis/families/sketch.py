"""Strings counted by a sketch (`cms`, `hcms`, `local_hash`): bucket counts minus collisions.

A candidate's count is the sum of its buckets over all hash functions. Strings that share a bucket
add the same share to it on average, which is subtracted. What remains of collisions is, over the
choice of hash functions, an error without bias, which more reports do not reduce: it is estimated
from the unevenness of the buckets and included in the standard error.

Source: A_server of Apple, Learning with Privacy at Scale (2017); the collisions' variance from the
second moment of the buckets, as in Alon, Matias, Szegedy (1996).
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from hubbub.analysis.arrays import Floats
from hubbub.analysis.estimators.fast_support_counts import walsh_hadamard
from hubbub.analysis.families.contract import BitSum, Expected, report_growth, support_deviations
from hubbub.analysis.families.draw_totals import (
    QUICK,
    Counts,
    People,
    bit_counts,
    bucket_holders,
    check_size,
    cohort_cells,
    cohort_holders,
    draw_named_values,
)
from hubbub.analysis.families.string_family import Strings, cohort_deviations
from hubbub.analysis.strings.rappor_equations import sketch_buckets
from hubbub.analysis.uncertainty.tails import collision_tail
from hubbub.analysis.value_estimates import ValueEstimates
from hubbub.errors import BatchTooSmall
from hubbub.mechanisms import Totals
from hubbub.mechanisms.cms import CountMeanSketch
from hubbub.mechanisms.hadamard import negative
from hubbub.mechanisms.hcms import HadamardSketch
from hubbub.mechanisms.local_hash import LocalHashing
from hubbub.mechanisms.pure_protocols import Pure, report_variances

Sketch = CountMeanSketch | HadamardSketch | LocalHashing


class Sketches(Strings):
    """The count-mean sketches."""

    def figures(
        self, mechanism: Sketch, totals: Totals, candidates: Sequence[str]
    ) -> ValueEstimates:
        bucket_counts, reports = buckets(mechanism, totals)
        n, width, functions = reports.sum(), mechanism.width, mechanism.hashes
        if not n:
            raise BatchTooSmall("no reports: there is nothing to estimate")
        places = sketch_buckets(mechanism, candidates)
        supports = bucket_counts[np.arange(functions), places].sum(axis=1)
        stretch = width / (width - 1)
        estimates = stretch * (supports - n / width)
        of_held, of_other = report_variances(mechanism.channel)
        # Noise is linear in what a bucket truly holds, so it is taken at the unbiased estimate.
        squares = (bucket_counts**2).sum() - (of_held * n + of_other * n * (width - 1))
        uneven = (squares - (reports**2).sum() / width) * stretch
        share = (1 - 1 / width) / width

        def errors(true: Floats) -> Floats:
            in_bucket = true + (n - true) / width
            coins = in_bucket * of_held + (n - in_bucket) * of_other
            # Of the other strings' reports in a function, squared and summed: each stands for one.
            others = np.maximum(uneven - true**2 / functions - true, n - true)
            answer: Floats = stretch * np.sqrt(coins + share * others)
            return answer

        absent, stderrs = errors(np.zeros_like(estimates)), errors(np.clip(estimates, 0, n))
        tail = collision_tail(bucket_counts, float(absent[0]) / stretch) if len(absent) else None
        growth = report_growth(estimates, stderrs, absent, totals.reports)
        return ValueEstimates(
            estimates=estimates, stderrs=stderrs, absent=absent, growth=growth, tail=tail
        )

    def sums(self, mechanism: Sketch, cells: Floats, totals: Totals) -> Iterator[BitSum]:
        if isinstance(mechanism, CountMeanSketch):
            yield from cohort_deviations(mechanism.layout, cells, mechanism.channel, 1)
            return
        if isinstance(mechanism, LocalHashing):
            low, high = mechanism.channel.q, mechanism.channel.p
            bits_each = mechanism.hashes
        else:
            low, high = mechanism.keep.complement.exact, mechanism.keep.exact
            bits_each = mechanism.hashes * mechanism.width
        chances = Pure(high / bits_each, low / bits_each)
        yield from support_deviations("index", cells, np.full_like(cells, totals.reports), chances)

    def weights(self, mechanism: Sketch, targets: Sequence[str]) -> tuple[Floats, float]:
        channel, width = mechanism.channel, mechanism.width
        gap, q = float(channel.p - channel.q), float(channel.q)
        # A string's count is (sum of its buckets - n / width) width / (width - 1).
        spread = width / (width - 1)
        weights = np.zeros(mechanism.layout.size)
        for places in sketch_buckets(mechanism, targets):
            for function, bucket in enumerate(places.tolist()):
                if isinstance(mechanism, CountMeanSketch):
                    weights[mechanism.layout.cell(function, bucket)] += spread / gap
                    weights[mechanism.layout.cell(function, -1)] -= spread * q / gap
                    continue
                if isinstance(mechanism, LocalHashing):
                    start = function * width
                    weights[start : start + width] -= spread * q / gap
                    weights[start + bucket] += spread / gap
                    continue
                for entry in range(width):
                    minus = negative(bucket, entry)
                    for sent in range(2):
                        cell = 2 * (function * width + entry) + sent
                        weights[cell] += spread * ((minus == sent) - q) / gap
        return weights, -len(targets) * spread / width

    def expected(
        self, mechanism: Sketch, values: Sequence[object], shares: Floats, reports: float
    ) -> Expected:
        """Errors from randomization, and from collisions over the choice of hash functions."""
        width, functions = mechanism.width, mechanism.hashes
        true_variance, other_variance = report_variances(mechanism.channel)
        spread, stretch = (1 - 1 / width) / width, width / (width - 1)

        def error(share: Floats) -> Floats:
            in_bucket = share + (1 - share) / width
            coins = (in_bucket * true_variance + (1 - in_bucket) * other_variance) / reports
            squares = (shares**2).sum() - share**2
            collisions = spread * (squares / functions + (1 - share) / reports)
            answer: Floats = stretch * np.sqrt(coins + collisions)
            return answer

        return Expected(error(shares), error(np.zeros_like(shares)))

    def draw(self, mechanism: Sketch, people: People, rng: Generator) -> Counts:
        if isinstance(mechanism, HadamardSketch):
            return _signs(mechanism, people, rng)
        check_size(mechanism, len(people.values) * mechanism.hashes // QUICK)
        buckets = sketch_buckets(mechanism, people.values)
        if isinstance(mechanism, LocalHashing):
            by_bucket = bucket_holders(buckets, mechanism.width, people.counts, rng)
            return draw_named_values(by_bucket, float(mechanism.channel.q), rng).reshape(-1)
        places = (buckets + mechanism.width * np.arange(mechanism.hashes))[:, :, None]
        ones, reports = cohort_holders(mechanism.layout, places, people.counts, rng)
        return cohort_cells(reports, bit_counts(ones, reports[:, None], mechanism.channel, rng))


def buckets(mechanism: Sketch, totals: Totals) -> tuple[Floats, Floats]:
    """Estimated reports per function and bucket, and reports per function.

    Shapes (hashes, width) and (hashes,). Unbiased; the same as `mechanism.estimate`.
    """
    totals.check(mechanism.layout)
    cells = np.array(totals.cells, dtype=np.int64).reshape(mechanism.hashes, -1)
    if isinstance(mechanism, CountMeanSketch):
        reports, supports = cells[:, 0], cells[:, 1:]
    elif isinstance(mechanism, LocalHashing):
        reports, supports = cells.sum(axis=1), cells
    else:
        reports = cells.sum(axis=1)
        supports = (reports[:, None] + walsh_hadamard(cells[:, ::2] - cells[:, 1::2])) // 2
    p, q = float(mechanism.channel.p), float(mechanism.channel.q)
    return (supports - reports[:, None] * q) / (p - q), reports.astype(np.float64)


def _signs(mechanism: HadamardSketch, people: People, rng: Generator) -> Counts:
    """Draws each report's entry of a function's row, and whether its sign is kept."""
    width, functions = mechanism.width, mechanism.hashes
    rows = _negatives(width)
    places = functions * width
    check_size(mechanism, len(people.values) * places // QUICK)
    sent = rng.multinomial(people.counts, np.full(places, 1 / places)).reshape(-1, functions, width)
    minus = rows[sketch_buckets(mechanism, people.values)]
    keep = float(mechanism.keep.exact)
    negatives = rng.binomial(sent, np.where(minus, keep, 1 - keep))
    pairs = np.stack([sent - negatives, negatives], axis=-1)
    cells: Counts = pairs.sum(axis=0).reshape(-1)
    return cells


@lru_cache(maxsize=4)
def _negatives(width: int) -> npt.NDArray[np.bool_]:
    """Which entries of each bucket's row are negative."""
    return np.array(
        [[negative(bucket, entry) for entry in range(width)] for bucket in range(width)]
    )
