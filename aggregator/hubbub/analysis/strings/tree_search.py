"""Discovers strings by following a hashed prefix tree (`tree`) from its root.

At each level every discovered beginning may continue in any way. A place's estimate is the sum of
all strings that share it. So the string that is most significant over all levels is accepted first,
and its contribution is subtracted from its places and its beginnings; the rest is evidence for
other strings. An accepted string may be false: it counts as found only if reports that had no part
in finding it confirm it. Those are the jobs after the level where it ends, and the count job. The
finding reports only determine how significant the others must be, so that the expected number of
false strings in an answer is at most `FALSE_STRINGS` (Bonferroni with weights: Genovese, Roeder,
Wasserman 2006).
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from heapq import heapify, heappop, heappush
from math import inf, sqrt
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import gammainc, ndtr, ndtri

from hubbub.analysis.arrays import Floats
from hubbub.analysis.estimators.fast_support_counts import supports_of
from hubbub.errors import BatchTooSmall
from hubbub.mechanisms import Totals
from hubbub.mechanisms.pure_protocols import report_variances
from hubbub.mechanisms.tree import PrefixTree

_RAREST: Final = 1e-290
# Lower limit of the expected hits by chance, which are 0 without reports.
_FEWEST: Final = 1e-9
_STEPS: Final = np.concatenate([np.linspace(0, 10, 1001), np.geomspace(10.01, 1e4, 2000)])


class RareHits:
    """Converts scores of random hits (a Poisson number) to equally improbable normal scores."""

    def __init__(self, by_chance: float) -> None:
        by_chance = max(by_chance, _FEWEST)
        counts = by_chance + _STEPS * np.sqrt(by_chance)
        # Chance of at least that many hits, interpolated between whole numbers.
        chance = np.minimum(gammainc(counts, by_chance), 0.5)
        usable = chance > _RAREST
        self._scores = _STEPS[usable]
        self._sure = np.minimum(-ndtri(chance[usable]), self._scores)

    def zscore(self, score: float) -> float:
        """Normal score as improbable as this score; never above it."""
        if score >= self._scores[-1]:
            return float(self._sure[-1] + score - self._scores[-1])
        return float(np.interp(score, self._scores, self._sure)) if score > 0 else score

    def scores(self, sure: Floats) -> Floats:
        """Scores as improbable as these normal scores; the inverse of `sure`."""
        excess = np.maximum(sure - self._sure[-1], 0.0)
        result: Floats = np.interp(sure, self._sure, self._scores) + excess
        return np.asarray(np.maximum(result, sure))


Indices = npt.NDArray[np.int64]

FALSE_STRINGS: Final = 0.01
"""Of all strings of an answer, how many are false, at most on average."""

# Average number of unheld continuations to follow below each held beginning; score from which all
# are followed; and the largest number in all, the strongest first.
_FALSE_BELOW: Final = 60
_LEAST: Final = 2.7
_MOST: Final = 6000
# Few bits end a string, so a string that ends gets this extra score.
_SOONER: Final = 1.0
# Least score of a clearly found string without the best of its groups.
_WITHOUT_BEST: Final = 1.0
# Largest ratio of weights between a clearly seen string and another one.
_WEIGHTIEST: Final = 1e3
# Standard errors per level at which a string is found in 95 of 100 cases; tests/statistics.
_SURELY: Final = 5.0
# Limit of chance in a string's own reports, in standard errors.
_CHANCE: Final = 5.0
# In standard errors: if two places of a string differ more, one of them is shared.
_SHARED: Final = 3.0
# A beginning may be of several strings: for one of them it speaks as if it had this much more than
# is at the string's own level, at most.
_ABOVE: Final = 2.0
# Tolerance for rounding in sums of floats, in standard errors.
_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One string, or a common beginning, with reports that had no part in finding it.

    `level` is the one that found it, its end or the last; `cut` is what its score had to exceed.
    """

    bits: int
    text: str
    whole: bool
    level: int
    score: float
    cut: float


def detectable_share(tree: PrefixTree, reports: float) -> float:
    """Share of all reports from which a string is discovered with a probability of 95%."""
    other_variance, own_variance = tree.variance(0, 1), tree.variance(1, 1) + 1
    squared = _SURELY**2 * tree.jobs
    grown = squared * (own_variance - other_variance)
    return (grown + sqrt(grown**2 + 4 * squared * reports * other_variance)) / (2 * reports)


@lru_cache(maxsize=1 << 17)
def shown_name(tree: PrefixTree, string: str) -> str:
    """The name of a discovered string in an answer: its beginning, if it is too long."""
    spelled = tree.read(tree.spelled(string))
    return string if spelled is None else spelled.text


class Places:
    """Per group and place, the number of the group's reports with it, from all tiers together.

    `tiers` are of one tree, with different epsilons, and `scales` their weights, relative to their
    own reports. Raises as `Family.figures`.
    """

    def __init__(
        self, tiers: Sequence[tuple[PrefixTree, Totals]], scales: Sequence[float] = (1.0,)
    ) -> None:
        self.tree = tree = tiers[0][0]
        self.reports = sum(totals.reports for _, totals in tiers)
        if not self.reports:
            raise BatchTooSmall("no reports: there is nothing to estimate")
        self.held = np.zeros((tree.groups, tree.cells))
        self._sizes = np.zeros(tree.groups)
        self._noise = np.zeros(tree.groups)
        self._own = 0.0
        self._chosen = 0.0
        self._step = 0.0
        for (mechanism, totals), scale in zip(tiers, scales, strict=True):
            totals.check(mechanism.layout)
            groups = np.asarray(totals.cells, dtype=np.int64).reshape(tree.groups, -1)
            sizes = groups.sum(axis=1).astype(np.float64)
            supports = np.array([supports_of(mechanism.response, group) for group in groups])
            p, q = float(mechanism.channel.p), float(mechanism.channel.q)
            self.held += scale * ((supports - sizes[:, None] * q) / (p - q))
            self._sizes += scale * sizes
            own_variance, other_variance = report_variances(mechanism.channel)
            self._noise += scale**2 * sizes * other_variance
            part = totals.reports / self.reports
            self._step = max(self._step, scale / float(mechanism.channel.p - mechanism.channel.q))
            self._own += part * scale**2 * (own_variance - other_variance)
            self._chosen += part * (scale - 1) ** 2

    def groups_of(self, first: int, last: int) -> slice:
        """Groups of the jobs from `first` to `last`, both included."""
        return slice(first * self.tree.hashes, (last + 1) * self.tree.hashes)

    def stderr(self, groups: "slice | Indices") -> float:
        """Standard error of the sum over these groups, for a string that nobody holds."""
        return float(np.sqrt(self._noise[groups].sum()))

    def by_chance(self, groups: "slice | Indices") -> RareHits:
        """Significance of scores of these groups, since reports hit a string's place at random."""
        return RareHits((self.stderr(groups) / self._step) ** 2)

    def places_of(self, bits: int, groups: Indices) -> Indices:
        """Place of a string in each of these groups."""
        return np.array([self.tree.place(bits, group) for group in groups.tolist()])

    def contribution(self, sums: Floats, mean: float, groups: "slice | Indices") -> Floats:
        """Contribution of a string to its place in each group, given its mean contribution.

        The whole sum of a place, as far as it fits the mean: reports fall to groups at random.
        """
        spread = _CHANCE * np.sqrt(self._noise[groups] + max(mean, 0.0) * (self._own + 1))
        return np.clip(sums, mean - spread, mean + spread)

    def own_part(self, sums: Floats, groups: "slice | Indices") -> Floats:
        """Part of the sums at a string's places, in groups of one job, that is its own.

        A place with significantly more than the least one is shared with another string.
        """
        least = float(sums.min())
        chance = _SHARED * np.sqrt(2 * (self._noise[groups] + max(least, 0.0) * (self._own + 1)))
        return np.where(sums - least > chance, least, sums)

    def less_others(self, total: float, groups: "slice | Indices") -> float:
        """Sum of a string over these groups, minus the expected share of others in its places."""
        cells = self.tree.cells
        return (total - float(self._sizes[groups].sum()) / cells) * cells / (cells - 1)

    def count(self, bits: int, first: int) -> float:
        """Estimate of a string from the jobs from `first` on, in reports."""
        tree = self.tree
        groups = np.arange(tree.groups)[self.groups_of(first, tree.jobs - 1)]
        total = self.less_others(
            float(self.held[groups, self.places_of(bits, groups)].sum()), groups
        )
        return total * tree.jobs / (tree.jobs - first)

    def errors(self, first: int) -> tuple[float, float]:
        """Standard error of `count` of an absent string, and the variance per true report."""
        jobs = self.tree.jobs
        scale = jobs / (jobs - first)
        absent = scale * self.stderr(self.groups_of(first, jobs - 1))
        return absent, scale * (self._own + self._chosen) + scale - 1


@dataclass(frozen=True, slots=True)
class _Node:
    """A beginning with its score at each level; `least` is what the last had to exceed."""

    bits: int
    scores: tuple[float, ...]
    least: float = 0.0
    ended: bool = False

    @property
    def weight(self) -> float:
        """Weight of its evidence, relative to a beginning followed by chance."""
        chance = float(ndtr(-self.scores[-1]) / ndtr(-self.least))
        return 1 / max(chance, 1 / _WEIGHTIEST)


class _Beginnings:
    """Evidence at the beginnings above a level that no accepted string has used yet."""

    def __init__(self, ends: Sequence[int], nodes: Sequence[_Node]) -> None:
        self._ends = ends
        self._scores_by_beginning: dict[tuple[int, int], float] = {}
        self._subtractions: Counter[tuple[int, int]] = Counter()
        for node in nodes:
            self._scores_by_beginning |= zip(self._ancestors(node.bits), node.scores, strict=True)

    def _ancestors(self, before: int) -> Iterator[tuple[int, int]]:
        """Keys, (level, bits), of a beginning and of all its own beginnings."""
        size = self._ends[-1] if self._ends else 0
        return ((level, before >> size - end) for level, end in enumerate(self._ends))

    def path(self, before: int, score: float) -> float:
        """A continuation's score over all levels; a subtraction adds a standard error of doubt."""
        most = score + _ABOVE
        remainders = (
            self._scores_by_beginning.get(beginning, 0.0) + sqrt(self._subtractions[beginning])
            for beginning in self._ancestors(before)
        )
        return score + sum(min(remainder, most) for remainder in remainders)

    def take(self, before: int, score: float) -> None:
        """Subtracts an accepted string: its score, or the mean over all levels if it is less."""
        beginnings = [
            beginning
            for beginning in self._ancestors(before)
            if beginning in self._scores_by_beginning
        ]
        mean = (score + sum(self._scores_by_beginning[beginning] for beginning in beginnings)) / (
            len(beginnings) + 1
        )
        for beginning in beginnings:
            self._scores_by_beginning[beginning] -= min(score, max(mean, 0.0))
            self._subtractions[beginning] += 1


def discover(places: Places) -> list[Found]:
    """The discovered strings, most significant first."""
    tree = places.tree
    level_nodes: list[tuple[int, _Node]] = []
    live, ended = [_Node(0, ())], list[int]()
    for level, end in enumerate(tree.ends):
        nodes = _Search(places, level).nodes(live, [bits >> tree.size - end for bits in ended])
        live = [node for node in nodes if not node.ended]
        new = [replace(node, bits=node.bits << tree.size - end) for node in nodes if node.ended]
        ended += [node.bits for node in new]
        level_nodes += [(level, node) for node in new]
    level_nodes += [(len(tree.ends) - 1, node) for node in live]
    return list(_confirmed_strings(places, level_nodes))


class _Search:
    """Search of one level: how the previous level's beginnings continue."""

    def __init__(self, places: Places, level: int) -> None:
        self._tree = tree = places.tree
        self._level = level
        self._all = places
        self._groups = level_groups = places.groups_of(level, level)
        self._own_counts = places.held[level_groups].copy()
        begin = tree.ends[level - 1] if level else 0
        self._end, self._width = tree.ends[level], tree.ends[level] - begin
        self._stderr = places.stderr(level_groups) or inf  # of no report at all nothing is sure
        self._chance = places.by_chance(level_groups)
        self._others = places.reports / tree.jobs / tree.cells
        self._rows: dict[int, list[tuple[int, int]]] = {}
        self._beginnings = _Beginnings((), ())
        # A branch of so many levels that nobody holds is one of this many.
        last = -ndtri(
            np.minimum(_FALSE_BELOW * 0.5 ** (self._width * np.arange(1, level + 2)), 0.5)
        )
        self._needed = np.maximum(last, _LEAST) * np.sqrt(np.arange(1, level + 2))

    def nodes(self, before: Sequence[_Node], ended: Sequence[int]) -> list[_Node]:
        """The level's continuations, most significant first; ended strings are subtracted before.

        Two that share a place cannot both have its whole sum: after a stronger one is subtracted, a
        score is computed again when its turn comes. One that is significant only at this level may
        be a random beginning that meets another string's place: its beginnings have less evidence.
        """
        self._beginnings = _Beginnings(self._tree.ends[: self._level], before)
        for bits in ended:
            if (score := self._score(bits)) > _LEAST:
                self._accept(bits, score)
        waiting = [
            (-self._path(bits, score), bits, node, least)
            for node in before
            for least in (self._passing_score(node),)
            for bits, score in self._passing_continuations(node.bits, max(least - _SOONER, _LEAST))
        ]
        heapify(waiting)
        nodes_of_level: list[_Node] = []
        while waiting and len(nodes_of_level) < _MOST:
            priority, bits, node, least = heappop(waiting)
            score = self._score(bits)
            if (path := self._path(bits, score)) < -priority - _ROUNDING:
                if score > _LEAST:
                    heappush(waiting, (-path, bits, node, least))
                continue
            spelled = self._tree.read(bits, self._end)
            ended_here = spelled is not None and spelled.used is not None
            level_least = max(least - _SOONER, _LEAST) if ended_here else least
            if spelled is not None and score > level_least:
                nodes_of_level.append(_Node(bits, (*node.scores, score), level_least, ended_here))
                self._accept(bits, score)
        return nodes_of_level

    def _path(self, bits: int, score: float) -> float:
        return self._beginnings.path(bits >> self._width, score)

    def _passing_score(self, node: _Node) -> float:
        """The score above which a node's continuations are followed.

        The sum of any number of last levels must exceed what chance makes of such branches.
        """
        before = np.append(0.0, np.cumsum(node.scores[::-1]))
        return float((self._needed - before).max())

    def _passing_continuations(self, before: int, least: float) -> Iterator[tuple[int, float]]:
        """Continuations that pass with the current sums, with their scores."""
        continuations = np.arange(1 << self._width)
        sums = np.full(len(continuations), -self._others)
        for function, (first, turned) in enumerate(self._rows_of(before)):
            sums += self._own_counts[function, first + (continuations ^ turned)]
        cut = float(self._chance.scores(np.array(least)))
        for child in np.nonzero(sums > cut * self._stderr)[0].tolist():
            yield (
                before << self._width | child,
                self._chance.zscore(sums[child] / self._stderr),
            )

    def _rows_of(self, before: int) -> list[tuple[int, int]]:
        if before not in self._rows:
            functions = range(self._tree.hashes)
            self._rows[before] = [self._tree.row_of(self._level, f, before) for f in functions]
        return self._rows[before]

    def _places(self, bits: int) -> list[int]:
        last_bits = bits & ((1 << self._width) - 1)
        return [
            first + (last_bits ^ turned) for first, turned in self._rows_of(bits >> self._width)
        ]

    def _score(self, bits: int) -> float:
        counts = self._own_counts
        total = sum(float(counts[pair]) for pair in enumerate(self._places(bits)))
        return self._chance.zscore((total - self._others) / self._stderr)

    def _accept(self, bits: int, score: float) -> None:
        places = self._places(bits)
        string_cells = np.arange(len(places)), np.array(places)
        cell_sums = self._own_counts[string_cells]
        deduction = self._all.contribution(cell_sums, float(cell_sums.mean()), self._groups)
        self._own_counts[string_cells] -= self._all.own_part(deduction, self._groups)
        self._beginnings.take(bits >> self._width, score)


def _confirmed_strings(places: Places, nodes: Sequence[tuple[int, _Node]]) -> Iterator[Found]:
    """Found strings that other reports confirm, among nodes with their levels; strongest first.

    A confirmed string is subtracted from its places in every group. A false one rarely shares more
    than one place with a frequent string, so a string must pass without its best.
    """
    tree, residual = places.tree, places.held.copy()
    scores = np.array([node.scores[-1] for _, node in nodes])
    weights = np.array([node.weight for _, node in nodes])
    cuts = -ndtri(FALSE_STRINGS * weights / weights.sum()) if nodes else scores
    all_groups = np.arange(tree.groups)
    for level in {level for level, _ in nodes}:
        is_at_level = np.array([node_level == level for node_level, _ in nodes])
        random_hits = places.by_chance(places.groups_of(level + 1, tree.jobs - 1))
        cuts[is_at_level] = random_hits.scores(cuts[is_at_level])
    for index in np.argsort(-scores, kind="stable").tolist():
        level, bits = nodes[index][0], nodes[index][1].bits
        spelled = tree.read(bits)
        own_places = places.places_of(bits, all_groups)
        groups = all_groups[places.groups_of(level + 1, tree.jobs - 1)]
        own_sums = residual[groups, own_places[groups]]
        score = places.less_others(float(own_sums.sum()), groups) / (places.stderr(groups) or inf)
        if spelled is None or not score > cuts[index]:
            continue
        others = np.delete(groups, np.argmax(own_sums))
        if len(others) and not residual[
            others, own_places[others]
        ].sum() > _WITHOUT_BEST * places.stderr(others):
            continue
        residual[all_groups, own_places] -= places.contribution(
            residual[all_groups, own_places], float(own_sums.mean()), all_groups
        )
        yield Found(
            bits=bits,
            text=spelled.text,
            whole=spelled.used is not None,
            level=level,
            score=score,
            cut=float(cuts[index]),
        )
