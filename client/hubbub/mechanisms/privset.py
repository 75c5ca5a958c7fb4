"""PrivSet: reports a few of all values, more often a choice that contains one of the set.

Idea: a set is filled up to `most` members with members of nobody's; then k of all values, those of
    nobody among them, are sent: with the chance `meet` a choice that has some of the set in it,
    all such choices alike, else one that has none of it, all alike. Of a larger set `most` members
    are drawn first.
Guarantee: the whole set's. With D = d + most, A = C(D, k) choices and B = C(D-most, k) that miss a
    set, log(meet B / ((1-meet) (A-B))) <= epsilon, meet = e (A-B) / (e (A-B) + B) rounded down.
Sends: ceil(D/8) bytes, exactly k of the bits 1.
Estimator and variance: pure: a member is sent with p = meet (k/D) / (1-B/A), any other value with
    q = meet (k/D - (B/A) k/(D-most)) / (1-B/A) + (1-meet) k/(D-most). k is that of the least
    variance of what nobody holds. A member of a set of m > most counts for most/m.
Source: Wang, Huang, Nie, Xiao, Xu, Yin, PrivSet (INFOCOM 2018); decision 0212.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from itertools import accumulate, combinations
from math import comb, inf, prod
from typing import Any, Final

from hubbub.errors import BadParameter, ValueOutOfDomain
from hubbub.fields.frozen import frozen, set_derived
from hubbub.mechanisms import pure_protocols
from hubbub.mechanisms.layout import Estimates, Subset, Totals
from hubbub.mechanisms.mechanism import check_whole, whole
from hubbub.mechanisms.probability import Probability, exp_at_most, log_at_least
from hubbub.mechanisms.random_bits import BitSource
from hubbub.mechanisms.uniform_subsets import members, numbered

# Choices are numbered, and numbers of more digits take too long to draw.
_MAX_CATEGORIES: Final = 1 << 12
_MAX_MEMBERS: Final = 64
# Up to this number of values all sets are probed, else some that cover each value.
_MAX_PROBED: Final = 6


@frozen()
class PrivSet(pure_protocols.PureMechanism[int]):
    """Sets of values in [0, categories); of more than `most` members a random subset is used.

    A value is a number whose bit i says whether i is a member.
    """

    epsilon: float
    categories: int
    most: int = field(
        metadata=whole(
            "Largest number of values in a person's report; of more values, this many are drawn "
            "for every report.",
            1,
            _MAX_MEMBERS,
            example=5,
        )
    )
    meet: Probability = field(init=False, repr=False)
    channel: pure_protocols.Pure = field(init=False, repr=False)
    layout: Subset = field(init=False, repr=False)
    miss: Fraction = field(init=False, repr=False, compare=False)
    ways: tuple[int, ...] = field(init=False, repr=False, compare=False)

    NAME = "privset"
    VERSION = 1
    VALUES = "categories"
    FAMILY = "sets"
    SMALL = (
        {"epsilon": 0.1, "categories": 5, "most": 2},
        {"epsilon": 1.0, "categories": 3, "most": 1},
        {"epsilon": 3.0, "categories": 3, "most": 3},
    )

    def __post_init__(self) -> None:
        pure_protocols.check_categories(self.categories)
        check_whole(self, "most")
        if self.categories > _MAX_CATEGORIES:
            raise BadParameter(
                f"categories {self.categories} is outside [2, {_MAX_CATEGORIES}] of sets; list the "
                "values that matter, and count others as one"
            )
        if self.most > self.categories:
            raise BadParameter(
                f"most {self.most} is outside [1, {self.categories}], the number of values"
            )
        d, most, odds = self.categories, self.most, exp_at_most(self.epsilon)
        size, k = d + most, _choice_of(self.categories, self.most, float(odds))
        miss = prod((Fraction(size - k - j, size - j) for j in range(most)), start=Fraction(1))
        hit_weight = odds * (1 - miss)
        meet = Probability.at_most(hit_weight / (hit_weight + miss))  # PRIVACY: down, to uniform
        pick, disjoint = Fraction(k, size), Fraction(k, size - most)
        hit, left_out = meet.exact / (1 - miss), meet.complement.exact
        channel = pure_protocols.Pure(
            pick * hit, (pick - miss * disjoint) * hit + disjoint * left_out
        )
        # Number of choices with j members of the set: C(most, j) C(D-most, k-j), for j from 1.
        counts = [comb(most, j) * comb(d, k - j) for j in range(1, min(most, k) + 1)]
        set_derived(
            self,
            meet=meet,
            channel=channel,
            layout=Subset(size, k),
            miss=miss,
            ways=tuple(accumulate(counts)),
        )

    def privacy_loss(self) -> float:
        hit_chance, missed = self._chances()
        return log_at_least(hit_chance / missed)

    def total_variation(self) -> Fraction:
        """The distance between two disjoint sets: the chance of choices that meet only one."""
        size, most, k = self.layout.size, self.most, self.layout.ones
        hit_chance, missed = self._chances()
        # Choices that have none of either.
        disjoint = Fraction(comb(size - 2 * most, k), comb(size, k))
        return (hit_chance - missed) * (self.miss - disjoint)

    def check(self, value: Any) -> None:
        """Raises ValueOutOfDomain unless `value` is a set of [0, categories), as bits."""
        if not (isinstance(value, int) and 0 <= value < 1 << self.categories):
            raise ValueOutOfDomain(f"a member of the set is outside [0, {self.categories})")

    def row(self, value: int) -> Sequence[int | Fraction]:
        self.check(value)
        size = value.bit_count()
        part = 1 if size <= self.most else Fraction(self.most, size)
        return [part * (value >> place & 1) for place in range(self.categories)]

    def estimate(self, totals: Totals) -> Estimates:
        """Per value, the number of reports whose set contains it."""
        totals.check(self.layout)
        return self.channel.estimates(totals.cells[: self.categories], totals.reports)

    def likelihood(self, value: int, cells: Mapping[int, int]) -> Fraction:
        self.check(value)
        hit_chance, missed = self._chances()
        size = value.bit_count()
        set_cells = sum(1 for cell in cells if cell < self.categories and value >> cell & 1)
        if size <= self.most:
            set_cells += sum(1 for cell in cells if self.categories <= cell < self._fill_end(size))
            return hit_chance if set_cells else missed
        miss = Fraction(comb(size - set_cells, self.most), comb(size, self.most))
        return hit_chance * (1 - miss) + missed * miss

    def randomize(self, value: int, source: BitSource) -> bytes:
        self.check(value)
        size, d, k = value.bit_count(), self.categories, self.layout.ones
        if size > self.most:
            set_members = list(members(value))
            chosen_members = numbered(size, self.most, source.below(comb(size, self.most)))
            own_places = [set_members[place] for place in members(chosen_members)]
        else:
            own_places = [*members(value), *range(d, self._fill_end(size))]
        # PRIVACY: the only coin that depends on epsilon; then all such choices are equally likely.
        if source.chance(self.meet):
            number = source.below(self.ways[-1])
            some = 1 + sum(number >= threshold for threshold in self.ways)
            number -= self.ways[some - 2] if some > 1 else 0
        else:
            number, some = source.below(comb(d, k)), 0
        mine, theirs = divmod(number, comb(d, k - some))
        other_places = [place for place in range(self.layout.size) if place not in set(own_places)]
        picked = [own_places[place] for place in members(numbered(self.most, some, mine))]
        picked += [other_places[place] for place in members(numbered(d, k - some, theirs))]
        return self.layout.encode(sum(1 << place for place in picked))

    def probes(self) -> Sequence[int]:
        """All sets of at most `most` members if they are few, else some."""
        places = range(self.categories)
        if self.categories > _MAX_PROBED:
            return [0, *(1 << place for place in places), (1 << self.most) - 1]
        sizes = range(self.most + 1)
        return [
            sum(1 << p for p in combination)
            for size in sizes
            for combination in combinations(places, size)
        ]

    def _chances(self) -> tuple[Fraction, Fraction]:
        """Chances of a choice that meets the set, and of one that does not, times all choices."""
        return self.meet.exact / (1 - self.miss), self.meet.complement.exact / self.miss

    def _fill_end(self, size: int) -> int:
        """The end of the cells of dummy members that fill up a set of this size."""
        return self.categories + self.most - size


def _choice_of(categories: int, most: int, odds: float) -> int:
    """How many values to send for the least variance of an absent one, alike on all machines."""
    size, miss = categories + most, 1.0
    best, least = 1, inf
    for k in range(1, categories + 1):
        miss *= (categories - k + 1) / (size - k + 1)
        total = odds * (1 - miss) + miss
        p = odds * k / size / total
        q = (odds * (k / size - miss * k / categories) + miss * k / categories) / total
        variance = q * (1 - q) / ((p - q) * (p - q)) if p > q else inf
        if variance < least:
            best, least = k, variance
    return best
