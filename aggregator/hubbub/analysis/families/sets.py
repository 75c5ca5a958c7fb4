"""Sets: how many people's sets contain each value; values do not exclude each other."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from hubbub.analysis.arrays import Floats
from hubbub.analysis.families.contract import NO_SUMS, Expected, Family
from hubbub.analysis.families.draw_totals import Counts, People
from hubbub.analysis.families.listed_values import Listed
from hubbub.analysis.families.tiers_and_rows import Columns, Tier
from hubbub.analysis.value_estimates import ValueEstimates
from hubbub.errors import BadParameter
from hubbub.mechanisms.privset import PrivSet
from hubbub.mechanisms.uniform_subsets import members

# Largest product of different sets, values and sent values: some seconds.
_LARGEST: Final = 1 << 28
# Largest number of people with too many values, each of whom is drawn.
_MAX_DRAWN: Final = 1 << 20


class Sets(Listed):
    """Mechanisms that report a set of listed values.

    Each value by itself is one of a list: two chances, and linear in the totals.
    """

    ONE_LOOK = NO_SUMS
    SHARES = "A person may hold several values: shares need not add up to 100%."

    # A held set is no place in the list.
    examples = Family.examples
    example_share = Family.example_share
    rows_of = Family.rows_of

    def consistent(
        self, tiers: Sequence[Tier], scales: Floats, figures: ValueEstimates, judged: Columns
    ) -> Floats:
        """Estimates in [0, reports], without a fixed sum."""
        clipped = np.clip(judged.estimates, judged.low, judged.high)
        return np.clip(clipped, 0.0, float(judged.reports))

    def weights(self, mechanism: PrivSet, targets: Sequence[int]) -> tuple[Floats, float]:
        for target in targets:
            mechanism.check(1 << target)
        return super().weights(mechanism, targets)

    def expected(
        self, mechanism: PrivSet, values: Sequence[Any], shares: Floats, reports: float
    ) -> Expected:
        true_shares = np.zeros(mechanism.categories)
        for value, share in zip(values, shares.tolist(), strict=True):
            true_shares += share * np.array(mechanism.row(value), dtype=np.float64)
        return super().expected(mechanism, values, true_shares, reports)

    def draw(self, mechanism: PrivSet, people: People, rng: Generator) -> Counts:
        """Draws how many elements of a payload are in the person's set, then which elements.

        Elements in the set and outside it are drawn separately, jointly for all with the same set.
        """
        reported = _reported_sets(mechanism, people, rng)
        size, k, most = mechanism.layout.size, mechanism.layout.ones, mechanism.most
        if len(reported) * size * k > _LARGEST:
            raise BadParameter(
                f"{len(reported):,} different sets of {mechanism.categories:,} values are too many "
                "to draw; keep the most frequent"
            )
        is_member = np.zeros((len(reported), size), dtype=np.bool_)
        for place, value in enumerate(reported):
            filled = [*members(value), *range(mechanism.categories, size - value.bit_count())]
            is_member[place, filled] = True
        people_by_set = np.array(list(reported.values()), dtype=np.int64)
        met = rng.binomial(people_by_set, float(mechanism.meet.exact))
        ways = np.diff(
            [0.0, *(float(cumulative / mechanism.ways[-1]) for cumulative in mechanism.ways)]
        )
        in_set = np.zeros((len(reported), most + 1), dtype=np.int64)
        in_set[:, 1 : len(ways) + 1] = rng.multinomial(met, ways / ways.sum())
        in_set[:, 0] = people_by_set - met
        out_of_set = np.zeros((len(reported), k + 1), dtype=np.int64)
        for inside in range(min(most, k) + 1):
            out_of_set[:, k - inside] = in_set[:, inside]
        return _draw_picked(is_member, in_set, rng) + _draw_picked(~is_member, out_of_set, rng)

    def question(self, mechanism: PrivSet) -> Mapping[str, Any]:
        return {
            "kind": "sets",
            "size": mechanism.categories,
            "most": mechanism.most,
            "permanent_epsilon": None,
        }

    def far_apart(self, mechanism: PrivSet) -> tuple[int, int]:
        return 0, (1 << mechanism.most) - 1


def _draw_picked(is_member: npt.NDArray[np.bool_], remaining: Counts, rng: Generator) -> Counts:
    """Draws how often each element is picked, if rest[i, j] people pick j of those in row i."""
    cells = np.zeros(is_member.shape[1], dtype=np.int64)
    to_come = is_member.sum(axis=1)
    to_pick = np.arange(remaining.shape[1])
    for element in range(is_member.shape[1]):
        rows = np.flatnonzero(is_member[:, element])
        picked = rng.binomial(remaining[rows], np.minimum(to_pick / to_come[rows, None], 1.0))
        cells[element] = picked.sum()
        unpicked = remaining[rows] - picked
        unpicked[:, :-1] += picked[:, 1:]
        remaining[rows] = unpicked
        to_come[rows] -= 1
    return cells


def _reported_sets(mechanism: PrivSet, people: People, rng: Generator) -> dict[int, int]:
    """Number of people who report each set; larger sets are sampled down to `most` members."""
    reported: Counter[int] = Counter()
    drawn_people = 0
    for value, count in zip(people.values, people.counts.tolist(), strict=True):
        mechanism.check(value)
        set_members = list(members(value))
        if len(set_members) <= mechanism.most:
            reported[value] += count
            continue
        drawn_people += count
        if drawn_people > _MAX_DRAWN:
            raise BadParameter(
                "too many people hold more than `most` values; simulate fewer people"
            )
        for _ in range(count):
            part = rng.choice(len(set_members), mechanism.most, replace=False).tolist()
            reported[sum(1 << set_members[place] for place in part)] += 1
    return {value: count for value, count in reported.items() if count} or {0: 0}
