"""Ranges: how many numbers fall in each part of a range, and their mean."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from math import sqrt
from typing import Any

import numpy as np
from numpy.random import Generator

from hubbub.analysis.answer import Answer
from hubbub.analysis.arrays import Floats
from hubbub.analysis.estimators.distribution import (
    bucket_variances,
    chances,
    min_stderrs,
    place_sum,
    smooth,
    unbiased,
)
from hubbub.analysis.families import contract
from hubbub.analysis.families.draw_totals import QUICK, Counts, People, check_size
from hubbub.analysis.families.number_family import Numbers, people_variance_of, spread_of_variance
from hubbub.analysis.families.tiers_and_rows import Columns, Tier
from hubbub.analysis.uncertainty.tails import pure_tail
from hubbub.analysis.value_estimates import ValueEstimates, mean_of
from hubbub.mechanisms import Totals
from hubbub.mechanisms.bucket_flips import BucketFlips
from hubbub.mechanisms.haar import HaarResponse
from hubbub.mechanisms.pure_protocols import Pure
from hubbub.mechanisms.wave import SquareWave

Ranged = BucketFlips | HaarResponse | SquareWave


class Ranges(Numbers):
    """Mechanisms whose report is one index, and those that answer about some of the parts."""

    KIND = "ranges"

    def figures(
        self, mechanism: Ranged, totals: Totals, candidates: Sequence[str]
    ) -> ValueEstimates:
        """Estimates of each part, and of the sum of all numbers' places."""
        if not isinstance(mechanism, BucketFlips):
            return _index_figures(mechanism, totals)
        raw_estimate = mechanism.estimate(totals)
        estimates = np.array(raw_estimate.values)
        stderrs = np.sqrt(np.array(raw_estimate.variances))
        # Given a report's number, its answers about two buckets are uncorrelated, since the mean of
        # at least one of them is 0.
        middles = (np.arange(mechanism.buckets) + 0.5) / mechanism.buckets
        offsets = (middles - 0.5) * stderrs
        n = max(totals.reports, 1)
        places = totals.reports / 2 + float((middles - 0.5) @ estimates)
        # As `spread_shown`, by the buckets' own estimates.
        middle = min(max(places / n, 0.0), 1.0)
        squares = (middles - middle) ** 2
        between_people = squares @ estimates + 2 * np.linalg.norm(squares * stderrs)
        part = spread_of_variance(float(between_people) / n, middle, n)
        flat = np.full_like(stderrs, sqrt(mechanism.variance(0, totals.reports)))
        growth = contract.report_growth(estimates, stderrs, flat, totals.reports)
        trials = max(totals.reports * mechanism.sampled // mechanism.buckets, 1)
        tail = pure_tail(Pure(mechanism.lie.complement.exact, mechanism.lie.exact), trials)
        error = np.sqrt([offsets @ offsets])
        place = ValueEstimates.flat(np.array([places]), error, people_variance=part)
        return ValueEstimates(
            estimates=estimates, stderrs=stderrs, absent=flat, growth=growth, tail=tail, place=place
        )

    def answer(
        self, tiers: Sequence[Tier], names: Sequence[str], confidence: float, repeats: int
    ) -> Answer:
        mechanism: Any = tiers[0][0]
        answer, ends = super().answer(tiers, names, confidence, repeats), self.ends(mechanism)
        place = answer.figures and answer.figures.place
        mean = None if place is None else mean_of(place, ends, answer.reports, confidence)
        return replace(answer, kind="ranges", mean=mean, span=ends)

    def consistent(
        self, tiers: Sequence[Tier], scales: Floats, figures: ValueEstimates, judged: Columns
    ) -> Floats:
        if not isinstance(tiers[0][0], SquareWave):
            return super().consistent(tiers, scales, figures, judged)
        shapes: Any = [smooth(mechanism, totals) for mechanism, totals in tiers]  # type: ignore[arg-type]  # as the first
        shape: Floats = scales @ np.array(shapes)
        return shape

    def ends(self, mechanism: Ranged) -> tuple[float, float]:
        return float(mechanism.low), float(mechanism.high)

    def edges(self, mechanism: Ranged) -> Sequence[float]:
        return mechanism.edges()

    def is_spread(self, mechanism: Ranged) -> bool:
        return not isinstance(mechanism, BucketFlips)

    def correlation(self, mechanism: Any) -> float:
        """0 for independent answers about parts; 1 for windows, where nothing is known."""
        return 0.0 if isinstance(mechanism, BucketFlips) else 1.0

    def sums(self, mechanism: Ranged, cells: Floats, totals: Totals) -> Iterator[contract.BitSum]:
        """Counts of each place of the line, or answers about each part or row."""
        if isinstance(mechanism, SquareWave):
            pure = Pure(mechanism.window.near, mechanism.window.far)
            yield from contract.support_deviations(
                "place", cells, np.full_like(cells, totals.reports), pure
            )
            return
        trials = cells.reshape(-1, 2).sum(axis=1)
        pure = Pure(mechanism.lie.complement.exact, mechanism.lie.exact)
        what = "bucket" if isinstance(mechanism, BucketFlips) else "row"
        yield from contract.support_deviations(what, cells[1::2], trials, pure)

    def estimates(self, mechanism: Ranged, totals: Totals) -> Floats:
        """For indices by least squares."""
        if isinstance(mechanism, BucketFlips):
            return super().estimates(mechanism, totals)
        return unbiased(mechanism, totals)[0]

    def expected(
        self, mechanism: Ranged, values: Sequence[object], shares: Floats, reports: float
    ) -> contract.Expected:
        if isinstance(mechanism, BucketFlips):
            return super().expected(mechanism, values, shares, reports)
        many_reports = 10**12
        cells = np.rint(chances(mechanism) @ shares * many_reports).astype(np.int64)
        _, stderrs = unbiased(mechanism, Totals(cells=cells.tolist(), reports=many_reports))
        errors: Floats = stderrs / many_reports * sqrt(many_reports / reports)
        return contract.Expected(errors, errors)

    def statistic(self, mechanism: Ranged, totals: Totals) -> contract.Statistic:
        cells = np.array(totals.cells, dtype=np.float64)
        change = 2 * mechanism.sampled if isinstance(mechanism, BucketFlips) else 2
        return contract.Statistic(
            numbers=cells, l1=change, l2=sqrt(change), unit=_matrix(self, mechanism), base=0.0
        )

    def local(self, mechanism: Ranged, noisy: Floats, reports: int) -> Floats | None:
        """Variances from the noisy totals, at least those of an even distribution."""
        if isinstance(mechanism, BucketFlips):
            return None
        cells = np.ceil(reports * chances(mechanism).mean(axis=1)).astype(np.int64)
        least = unbiased(mechanism, Totals(cells=cells.tolist(), reports=reports))[1] ** 2
        return np.maximum(bucket_variances(mechanism, noisy, reports), least)

    def labels(self, mechanism: Ranged, values: Sequence[str] | None) -> Sequence[str]:
        """[0, 10), [10, 20), ...; the last part includes its end."""
        edges = [f"{edge:.6g}" for edge in mechanism.edges()]
        labels = [f"[{low}, {high})" for low, high in pairwise(edges)]
        labels[-1] = labels[-1][:-1] + "]"
        return labels

    def draw(self, mechanism: Ranged, people: People, rng: Generator) -> Counts:
        """Draws places by their probabilities; or each report's parts, and then the answers."""
        if isinstance(mechanism, BucketFlips):
            return _draw_parts(mechanism, people, rng)
        return super().draw(mechanism, people, rng)

    def draw_lasting(self, mechanism: Any, people: People, rng: Generator) -> Callable[[], Counts]:
        """The same cells at every call: `buckets` has no fresh step."""
        cells = self.draw(mechanism, people, rng)
        return lambda: cells

    def question(self, mechanism: Ranged) -> Mapping[str, Any]:
        ends = {"low": mechanism.low, "high": mechanism.high}
        return {"kind": "ranges", "size": mechanism.buckets, **ends, "permanent_epsilon": None}

    def example_share(self, mechanism: Ranged, targets: Sequence[int]) -> float:
        return len(targets) / len(mechanism.row(mechanism.low))

    def rows_of(self, mechanism: Ranged, value: float) -> Sequence[int]:
        return [mechanism.range.bucket(value, mechanism.buckets)]


def _index_figures(mechanism: HaarResponse | SquareWave, totals: Totals) -> ValueEstimates:
    estimates, stderrs = unbiased(mechanism, totals)
    growth = mechanism.variance(1, 1) - mechanism.variance(0, 1)
    places, place_error, worth = place_sum(mechanism, totals)
    tail = None
    if isinstance(mechanism, SquareWave):
        tail = pure_tail(mechanism.channel, totals.reports)
    return ValueEstimates(
        estimates=estimates,
        stderrs=stderrs,
        # As for windows, which are pure: an empty one may contain a stray report.
        absent=np.maximum(stderrs, min_stderrs(mechanism, totals)),
        growth=np.full_like(stderrs, max(growth, 0.0)),
        tail=tail,
        place=ValueEstimates.flat(
            np.array([places]),
            np.array([place_error]),
            step=float(np.ptp(worth)),
            people_variance=people_variance_of(worth, totals, places, place_error),
        ),
    )


@lru_cache(maxsize=64)
def _matrix(family: Ranges, mechanism: Ranged) -> Floats:
    """Contribution of a report in each cell to each part's estimate; shape (parts, cells)."""
    return np.array([family.alone(mechanism, cell) for cell in range(mechanism.layout.size)]).T


def _draw_parts(mechanism: BucketFlips, people: People, rng: Generator) -> Counts:
    """Draws answers part by part, counting people by the number of parts that they still answer."""
    buckets, sampled = mechanism.layout.buckets, mechanism.layout.sampled
    check_size(mechanism, len(people.values) * buckets * sampled // QUICK)
    own_buckets = np.array([mechanism.range.bucket(value, buckets) for value in people.values])
    lie = float(mechanism.lie.exact)
    remaining = np.zeros((len(people.values), sampled + 1), dtype=np.int64)
    remaining[:, sampled] = people.counts
    cells = np.zeros((buckets, 2), dtype=np.int64)
    for bucket in range(buckets):
        trials = rng.binomial(
            remaining, np.minimum(np.arange(sampled + 1) / (buckets - bucket), 1.0)
        )
        remaining -= trials
        remaining[:, :-1] += trials[:, 1:]
        askers = trials.sum(axis=1)
        yes = rng.binomial(askers, np.where(own_buckets == bucket, 1 - lie, lie)).sum()
        cells[bucket] = askers.sum() - yes, yes
    return cells.reshape(-1)
