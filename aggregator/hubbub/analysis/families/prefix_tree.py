"""Strings through a prefix tree: discovered without candidates, or counted with them."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from hubbub.analysis.answer import Answer
from hubbub.analysis.arrays import Floats
from hubbub.analysis.estimators.fast_support_counts import supports_of
from hubbub.analysis.families.contract import BitSum, Expected, support_deviations
from hubbub.analysis.families.draw_totals import Counts, People, draw_points
from hubbub.analysis.families.string_family import Strings
from hubbub.analysis.families.tiers_and_rows import Columns, Tier, tier_scales
from hubbub.analysis.strings.likely_strings import LikelyString, likely_strings
from hubbub.analysis.strings.tree_search import Places, discover
from hubbub.analysis.uncertainty.intervals import reach_of, selection_bias
from hubbub.analysis.value_estimates import ValueEstimates, distances_past_cut, with_interval
from hubbub.errors import BadParameter
from hubbub.mechanisms import Totals
from hubbub.mechanisms.pure_protocols import report_variances
from hubbub.mechanisms.tree import PrefixTree

# Largest number of drawn reports: a minute of work.
_MOST: Final = 50_000_000


class Trees(Strings):
    """Prefix trees."""

    FINDS = True
    COUNTS_BY_CELL = False

    def figures(
        self, mechanism: PrefixTree, totals: Totals, candidates: Sequence[str]
    ) -> ValueEstimates:
        """Estimates of candidates, from all jobs that distinguish them from all other strings."""
        places = Places([(mechanism, totals)])
        spelled = [mechanism.spelled(candidate) for candidate in candidates]
        levels = [mechanism.ends_at(bits) for bits in spelled]
        place_counts = [places.count(*pair) for pair in zip(spelled, levels, strict=True)]
        return _figures(place_counts, [places.errors(level) for level in levels], totals.reports)

    def answer(
        self, tiers: Sequence[Tier], names: Sequence[str], confidence: float, repeats: int
    ) -> Answer:
        if not names:
            return _discovery_answer(tiers, confidence, repeats)
        return super().answer(tiers, names, confidence, repeats)

    def likely(
        self, tiers: Sequence[Tier], answer: Answer, false_share: float
    ) -> tuple[LikelyString, ...]:
        return tuple(likely_strings(_places(tiers), answer.found, false_share, answer.confidence))

    def sums(self, mechanism: PrefixTree, cells: Floats, totals: Totals) -> Iterator[BitSum]:
        """Supports of each place, between q and p of its group's reports."""
        groups = cells.astype(np.int64).reshape(mechanism.groups, mechanism.points)
        support_counts = np.array([supports_of(mechanism.response, group) for group in groups])
        trials = np.repeat(groups.sum(axis=1), mechanism.cells).astype(np.float64)
        yield from support_deviations(
            "place", support_counts.reshape(-1).astype(np.float64), trials, mechanism.channel
        )

    def weights(self, mechanism: PrefixTree, targets: Sequence[str]) -> tuple[Floats, float]:
        channel = mechanism.channel
        gap, q, cells = float(channel.p - channel.q), float(channel.q), mechanism.cells
        weights = np.zeros((mechanism.groups, mechanism.points))
        for target in targets:
            bits = mechanism.spelled(target)
            first_bits = mechanism.ends_at(bits)
            scale = mechanism.jobs / (mechanism.jobs - first_bits) * cells / (cells - 1)
            for group in range(first_bits * mechanism.hashes, mechanism.groups):
                # A point lies on another's hyperplane where that lies on its own.
                point = np.zeros(mechanism.points, dtype=np.int64)
                point[mechanism.place(bits, group)] = 1
                meets = supports_of(mechanism.response, point, mechanism.points)
                weights[group] += scale * ((meets - q) / gap - 1 / cells)
        return weights.reshape(-1), 0.0

    def expected(
        self, mechanism: PrefixTree, values: Sequence[object], shares: Floats, reports: float
    ) -> Expected:
        """Errors from randomization, and from who drew the jobs that count the string."""
        true_variance, other_variance = report_variances(mechanism.channel)
        levels = [mechanism.ends_at(mechanism.spelled(str(value))) for value in values]
        scales = mechanism.jobs / (mechanism.jobs - np.array(levels))
        growth = scales * (true_variance - other_variance) + scales - 1
        errors = np.sqrt((scales * other_variance + growth * shares) / reports)
        return Expected(errors, np.sqrt(scales * other_variance / reports))

    def draw(self, mechanism: PrefixTree, people: People, rng: Generator) -> Counts:
        counts = people.counts
        if counts.sum() > _MOST:
            raise BadParameter(
                f"{counts.sum():,} reports of a tree are too many to draw: {_MOST:,} at most"
            )
        present = np.nonzero(counts)[0]
        places = _places_of(mechanism, tuple(people.values))[present]
        groups, points = mechanism.groups, mechanism.points
        sent = rng.multinomial(counts[present], np.full(groups, 1 / groups))
        cells = np.zeros((groups, points), dtype=np.int64)
        for group in range(groups):
            planes = np.repeat(places[:, group], sent[:, group])
            cells[group] = draw_points(mechanism.response, planes, rng)
        return cells.reshape(-1)


def _figures(
    raw_estimates: Sequence[float], spreads: Sequence[tuple[float, float]], reports: int
) -> ValueEstimates:
    estimates = np.array(raw_estimates)
    absent, growth = np.array(spreads).reshape(-1, 2).T
    true_counts = np.clip(estimates, 0.0, reports)
    return ValueEstimates(
        estimates=estimates,
        stderrs=np.sqrt(absent**2 + growth * true_counts),
        absent=absent,
        growth=growth,
    )


def _places(tiers: Sequence[Tier]) -> Places:
    """Estimates per place from all tiers together, weighted by inverse variance."""
    trees: Any = tiers
    numbers = [totals.reports for _, totals in tiers]
    others = [mechanism.variance(0, totals.reports) for mechanism, totals in tiers]
    scales = tier_scales(others, numbers) if sum(numbers) else np.ones(len(tiers))
    return Places(trees, scales.tolist())


def _discovery_answer(tiers: Sequence[Tier], confidence: float, repeats: int) -> Answer:
    """A row for each discovered string, and the number of reports with other strings."""
    places = _places(tiers)
    discoveries, reports = discover(places), places.reports
    spreads = [places.errors(discovery.level + 1) for discovery in discoveries]
    raw_estimates = [
        discovery.score * absent
        for discovery, (absent, _) in zip(discoveries, spreads, strict=True)
    ]
    figures = _figures(raw_estimates, spreads, reports)
    # Strings were selected by passing their cuts; selection only makes high ends safer.
    gaps = np.array([discovery.score - discovery.cut for discovery in discoveries])
    reach = reach_of(confidence)
    low, high = figures.between(reports, down=distances_past_cut(gaps, reach), up=reach)
    judged = Columns(
        estimates=figures.estimates,
        stderrs=figures.stderrs,
        low=np.maximum(low, np.minimum(1.0, figures.estimates)),
        high=high,
        detected=np.ones(len(discoveries), dtype=np.bool_),
        reports=reports,
    )
    cuts = figures.absent * np.array([discovery.cut for discovery in discoveries])
    at_cuts = np.sqrt(figures.absent**2 + figures.growth * cuts)
    bias, bias_variance = selection_bias(figures.estimates - cuts, at_cuts)
    undiscovered = float(reports - figures.estimates.sum() + bias)
    spread = float(np.sqrt((figures.stderrs**2).sum() + bias_variance))
    picture = judged.nearest(figures.absent, others=True) if discoveries else low
    return Answer(
        kind="values",
        reports=reports,
        confidence=confidence,
        values=judged.rows([discovery.text for discovery in discoveries], picture),
        others=with_interval(undiscovered, spread, confidence, (0.0, float(reports))),
        repeats=repeats,
        beginnings=tuple(discovery.text for discovery in discoveries if not discovery.whole),
        figures=figures,
        found=tuple(discoveries),
    )


@lru_cache(maxsize=4)
def _places_of(tree: PrefixTree, values: tuple[str, ...]) -> npt.NDArray[np.int32]:
    """Place of each string in each group."""
    spelled = map(tree.spelled, values)
    places = [[tree.place(bits, group) for group in range(tree.groups)] for bits in spelled]
    return np.array(places, dtype=np.int32).reshape(len(values), tree.groups)
