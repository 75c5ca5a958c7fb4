"""Strings that are probably held: candidates for the next query, with a bounded false share.

A string is judged by every job that distinguishes it from all others, including those that found
it, with a correction: the expected number of false strings that would be as significant, among all
strings below the followed beginnings (Benjamini and Hochberg, Controlling the False Discovery Rate,
1995). The null distribution comes from the places themselves: a string that nobody holds has one
place in each group, which may be that of a frequent, undiscovered string. Discovered strings are
subtracted first.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf, sqrt
from typing import Final

import numpy as np
import numpy.typing as npt
from numpy.fft import irfft, rfft

from hubbub.analysis.arrays import Floats
from hubbub.analysis.strings.tree_search import Found, Indices, Places
from hubbub.analysis.uncertainty.intervals import end_of, reach_of

# Many millions of them: half the memory.
_Scores = npt.NDArray[np.float32]

# Number of the clearest beginnings that are followed to the next level, and of continuations that
# are read there. Twice as many find hardly more strings.
_FOLLOWED: Final = 3000
_MAX_READ: Final = 20_000
# This many continuations, spread evenly, are checked to estimate how many end a string.
_SAMPLES: Final = 4096
# Limit of chance in that estimate, and in the excess of one group, in standard errors.
_CHANCE: Final = 3.0
# A string below this many standard errors is not called likely, even if chance makes few: if
# nearly all places are empty, nearly all strings are equally clear.
_CLEAR: Final = 2.0
# With fewer places per group, too many strings share one for an estimate of chance hits.
_FEWEST_CELLS: Final = 1 << 12
# Resolution of the distribution of chance hits, in standard errors of the sum, and its ends; values
# beyond count as the end.
_STEP: Final = 0.02
_LOWEST: Final = -12.0
_STEPS: Final = 3200
_ZERO: Final = round(-_LOWEST / _STEP)
_TWICE: Final = 1 << 13  # of steps of two sums, at least


@dataclass(frozen=True, slots=True)
class LikelyString:
    """A string that is probably held but not proven: a candidate for the next query.

    `doubt` is an upper bound on the average share of strings that nobody holds, among this string
    and all surer ones; `high` is one on the number of reports with it.
    """

    value: str
    doubt: float
    high: float


def likely_strings(
    places: Places,
    discoveries: Sequence[Found],
    false_share: float,
    confidence: float = 0.95,
) -> list[LikelyString]:
    """The strings that are probably held beside the discovered ones, the surest first.

    `false_share` bounds the average share of them that nobody holds.
    """
    if places.tree.cells < _FEWEST_CELLS:
        return []
    search = _Wide(places, discoveries)
    endings = sorted((ending for ending in search.endings() if ending[0] > _CLEAR), reverse=True)
    sure = np.array([score for score, *_ in endings])
    false = np.zeros(len(endings))
    for level in search.levels:
        false += level.by_chance(sure)
    shares = false / np.arange(1, len(endings) + 1)
    doubts = np.minimum.accumulate(shares[::-1])[::-1].tolist()
    likely = [
        (text, doubt, places.count(bits, last), *places.errors(last))
        for (_, bits, last, text), doubt in zip(endings, doubts, strict=True)
        if doubt <= false_share
    ]
    if not likely:
        return []
    # Estimates are too high, since the strings were selected for them; so are these ends.
    estimates, absent, growth = np.array([row[2:] for row in likely]).T
    highs = end_of(estimates, absent, growth, 0.0, reach_of(confidence))
    highs = np.clip(highs, 0.0, places.reports)
    return [
        LikelyString(text, doubt, high)
        for (text, doubt, *_), high in zip(likely, highs.tolist(), strict=True)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Level:
    """One searched level of the tree.

    Args:
        strings: mean number of strings that end here below a beginning.
        needed: per beginning, the smallest score at this level with which a string was read.
        own, later: null distribution of a place's sum at this level, and in all later jobs; by
            steps, in standard errors of both together, of which this level's share is `part`.
    """

    strings: float
    needed: Floats
    own: Floats
    later: Floats
    part: float

    def by_chance(self, sure: Floats) -> Floats:
        """Expected number of false strings that are read and are at least as significant."""
        values = _LOWEST + _STEP * np.arange(_STEPS)
        beginnings = np.searchsorted(np.sort(self.needed), values / self.part, side="right")
        reached = np.cumsum(self.later[::-1])[::-1]
        weights = self.own * beginnings
        some = np.flatnonzero(weights)
        result = [weights[some] @ reached[_step(score - values[some])] for score in sure.tolist()]
        return self.strings * np.array(result)


def _step(values: Floats) -> Indices:
    """Number of the step that contains each value."""
    return np.clip(np.rint((values - _LOWEST) / _STEP).astype(np.int64), 0, _STEPS - 1)


def _sum_law(groups: Floats, others: float, stderr: float) -> Floats:
    """Distribution, by steps, of the sum of one random place from each of these groups.

    `groups` has the sums at each group's places, and `others` the mean sum of all other strings.
    """
    law = np.zeros(_STEPS)
    law[_step(np.zeros(1))] = 1.0
    for group in groups:
        group_law = np.bincount(_step((group - others) / stderr), minlength=_STEPS) / group.size
        both = irfft(rfft(law, _TWICE) * rfft(group_law, _TWICE), _TWICE)[_ZERO : 2 * _STEPS]
        law = np.clip(both[:_STEPS], 0.0, None)
        law[-1] += max(both[_STEPS:].sum(), 0.0)
    return law


class _Wide:
    """Search of all strings below the strongest beginnings; `levels` are those searched so far."""

    def __init__(self, places: Places, discoveries: Sequence[Found]) -> None:
        self._places = places
        self._tree = tree = places.tree
        self._cell_counts = places.held.copy()
        self._every = np.arange(tree.groups)
        self._others = places.reports / tree.jobs / tree.cells
        self._discovered_bits = {discovery.bits for discovery in discoveries}
        self.levels: list[_Level] = []
        for discovery in discoveries:
            string_cells = self._every, places.places_of(discovery.bits, self._every)
            cell_sums = self._cell_counts[string_cells]
            self._cell_counts[string_cells] -= places.contribution(
                cell_sums, float(cell_sums.mean()), self._every
            )

    def endings(self) -> Iterator[tuple[float, int, int, str]]:
        """Yields each string that ends at a searched level: score, bits, last level, text."""
        tree, places = self._tree, self._places
        live, paths = [0], np.zeros(1)
        for level, end in enumerate(tree.ends):
            width = end - (tree.ends[level - 1] if level else 0)
            sums = paths[:, None].astype(np.float32) + self._scores(live, level, width)
            top_places = _largest_places(sums.reshape(-1), _MAX_READ)
            least = float(sums.flat[top_places[-1]]) if len(top_places) < sums.size else -inf
            groups = self._every[places.groups_of(level, tree.jobs - 1)]
            stderr = places.stderr(groups) or inf
            self.levels.append(
                _Level(
                    strings=self._ending_continuations(live, width, end),
                    needed=least - paths,
                    own=_sum_law(
                        self._cell_counts[groups[: tree.hashes]], self._others / tree.hashes, stderr
                    ),
                    later=_sum_law(
                        self._cell_counts[groups[tree.hashes :]], self._others / tree.hashes, stderr
                    ),
                    part=places.stderr(groups[: tree.hashes]) / stderr,
                )
            )
            followed: list[tuple[int, float]] = []
            for place in top_places.tolist():
                bits = _continuation_bits(live, place, width)
                spelled = tree.read(bits, end)
                if spelled is None:
                    continue
                if spelled.used is None:
                    followed.append((bits, float(sums.flat[place])))
                elif (full := bits << tree.size - end) not in self._discovered_bits:
                    yield self._clipped_sum(full, groups) / stderr, full, level, spelled.text
            live = [bits for bits, _ in followed[:_FOLLOWED]]
            paths = np.array([path for _, path in followed[:_FOLLOWED]])
            if not live:
                return

    def _clipped_sum(self, bits: int, groups: Indices) -> float:
        """Sum of a string over these groups, with the largest clipped to what fits the others."""
        supports = np.sort(self._cell_counts[groups, self._places.places_of(bits, groups)])
        fitting = supports[:-1].mean() + _CHANCE * self._places.stderr(groups[-1:])
        return self._places.less_others(
            float(supports[:-1].sum() + min(supports[-1], fitting)), groups
        )

    def _scores(self, live: Sequence[int], level: int, width: int) -> _Scores:
        """Score of each continuation of each beginning at this level, in standard errors."""
        places, groups = self._places, self._places.groups_of(level, level)
        stderr = places.stderr(groups) or inf
        continuations = np.arange(1 << width)
        scores: _Scores = np.empty((len(live), len(continuations)), dtype=np.float32)
        for row, before in enumerate(live):
            sums = np.full(len(continuations), -self._others)
            for function, counts in enumerate(self._cell_counts[groups]):
                first, turned = self._tree.row_of(level, function, before)
                sums += counts[first + (continuations ^ turned)]
            scores[row] = sums / stderr
        return scores

    def _ending_continuations(self, live: Sequence[int], width: int, end: int) -> float:
        """Upper bound on the number of continuations of a beginning that end a string."""
        ways = len(live) << width
        samples = range(0, ways, max(1, ways // _SAMPLES) | 1)  # odd: it meets all ways alike
        ending = 0
        for place in samples:
            spelled = self._tree.read(_continuation_bits(live, place, width), end)
            ending += spelled is not None and spelled.used is not None
        doubt = _CHANCE * sqrt(ending + 1) if len(samples) < ways else 0.0
        return (ending + doubt) / len(samples) * (1 << width)


def _continuation_bits(live: Sequence[int], place: int, width: int) -> int:
    """Bits of one continuation, by `width` bits, of one of these beginnings."""
    return live[place >> width] << width | place & ((1 << width) - 1)


def _largest_places(sums: _Scores, number: int) -> Indices:
    """Places of the largest sums, in descending order."""
    chosen = np.arange(len(sums))
    if len(sums) > number:
        chosen = np.argpartition(-sums, number)[:number]
    return chosen[np.argsort(-sums[chosen], kind="stable")]
