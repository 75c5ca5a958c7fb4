"""Strings that nobody listed: a prefix tree, hashed level by level, and an index a report.

Idea: a string is spelled as bits (string_bits.py), which are cut into levels. A fair coin, without
    regard to the value, gives a device one job: to tell the bits of one level together with a
    hash of all bits before, by one of a few hash functions; or to tell a hash of them all. Who adds
    up follows the tree from the root, where a report's beginning is frequent, and counts what it
    found by the reports of the other jobs.
Guarantee: that of `projective`, which answers every job: <= epsilon, whatever the string. Which job
    it was says nothing.
Sends: an index of job, hash function and point: 3 bytes.
Estimator and variance: per job and hash function that of `projective` over its points; of a place
    that t of N reports have, [t p (1-p) + (N-t) q (1-q)] / (p-q)^2.
    What many strings are known to begin with (`beginnings`) is spelled as one number, before what
    follows: else the bits would be used up by it.
Source: the prefix tree of Bassily, Nissim, Stemmer, Thakurta, Practical Locally Private Heavy
    Hitters (NIPS 2017), TreeHist, with users in place of epsilon split over levels (Wang, Li, Jha
    2019, PEM), asked all at once; decision 0216.
"""

from collections.abc import Sequence
from dataclasses import field, replace
from typing import Any, Final

from hubbub.errors import BadParameter
from hubbub.fields.frozen import frozen, set_derived
from hubbub.mechanisms.grouped_mechanism import Grouped
from hubbub.mechanisms.mechanism import MAX_CELLS, check_whole, whole
from hubbub.mechanisms.projective import ProjectiveResponse
from hubbub.mechanisms.string_bits import Spelled, read, spell
from hubbub.mechanisms.string_hashing import STRINGS, digest, encoded

# Log2 of the number of beginnings with their own cells at a level.
_ROW_BITS: Final = 5
_MAX_BEGINNINGS: Final = 255


@frozen(kw_only=True)
class PrefixTree(Grouped[str]):
    """A hashed prefix tree; its groups are the hash functions of all jobs, job by job.

    Args:
        beginnings: common beginnings, each sent as one number; the longest that fits is used.
    """

    epsilon: float
    bits: int = field(
        default=64,
        metadata=whole(
            "Number of bits of a string that are distinguished, 4 to 5 for a letter; of longer "
            "strings the beginning is found.",
            2,
            128,
            example=64,
        ),
    )
    cells: int = field(
        default=1 << 17,
        metadata=whole(
            "Number of values that a report distinguishes; a power of two uses them all.",
            4,
            1 << 20,
            example=1 << 17,
        ),
    )
    hashes: int = field(
        default=2,
        metadata=whole("Number of hash functions of each job.", 1, 8, example=2),
    )
    beginnings: tuple[str, ...] = ()
    response: ProjectiveResponse = field(init=False, repr=False)
    ends: tuple[int, ...] = field(init=False, repr=False)
    """Per level, how many bits of a string are told once its own are."""

    NAME = "tree"
    VERSION = 1
    VALUES = "strings"
    FAMILY = "tree"
    SMALL = (
        {"epsilon": 0.1, "bits": 2, "cells": 4, "hashes": 1},
        {"epsilon": 1.0, "bits": 6, "cells": 4, "hashes": 2},
        {"epsilon": 3.0, "bits": 4, "cells": 9, "hashes": 3},
        {"epsilon": 1.0, "bits": 3, "cells": 4, "hashes": 1, "beginnings": ("exam",)},
    )

    def __post_init__(self) -> None:
        check_whole(self, "bits", "cells", "hashes")
        set_derived(self, response=ProjectiveResponse(self.epsilon, self.cells))
        first_level_bits = self.cells.bit_length() - 1
        step = max(1, first_level_bits - _ROW_BITS)
        levels = -(-max(self.bits - first_level_bits, 0) // step)
        ends = tuple(first_level_bits + step * level for level in range(levels + 1))
        set_derived(self, ends=ends)
        if self.bits < self.ends[0]:
            raise BadParameter(
                f"bits {self.bits} are below {self.ends[0]}, the least for {self.cells} cells; "
                f"raise bits to {self.ends[0]}, or lower cells to {1 << self.bits}"
            )
        beginnings = tuple(self.beginnings)  # of which JSON makes a list
        set_derived(self, beginnings=beginnings)
        if not (
            len({*beginnings}) == len(beginnings) <= _MAX_BEGINNINGS
            and all(map(encoded, beginnings))
        ):
            raise BadParameter(
                f"beginnings must be at most {_MAX_BEGINNINGS} texts, none empty or repeated"
            )
        if not self._head_bits < self.ends[0]:
            raise BadParameter(
                f"{len(beginnings)} beginnings take {self._head_bits} bits, but a level has "
                f"{self.ends[0]}; list fewer, or raise cells"
            )
        if not self.layout.size <= MAX_CELLS:
            raise BadParameter(
                f"bits {self.bits} make totals too large at epsilon {self.epsilon:g}; "
                f"lower bits{self._bits_that_fit()}, or {self._other_remedy()}"
            )

    def _bits_that_fit(self) -> str:
        """For an error: the most bits whose totals fit, if any."""
        levels = MAX_CELLS // (self.points * self.hashes) - 1
        if levels < 1:
            return ""
        first_level_bits = self.ends[0]
        return f" to {first_level_bits + max(1, first_level_bits - _ROW_BITS) * (levels - 1)}"

    def _other_remedy(self) -> str:
        """For an error: half as many cells if those fit, which changes least; else hashes."""
        try:
            replace(self, cells=self.cells // 2)
        except BadParameter:
            return "lower hashes"
        return f"set cells = {self.cells // 2}"

    @property
    def size(self) -> int:
        """The number of bits of a string that are reported in all."""
        return self.ends[-1]

    @property
    def jobs(self) -> int:
        """The number of jobs: one per level, and the count."""
        return len(self.ends) + 1

    @property
    def groups(self) -> int:
        return self.jobs * self.hashes

    def check(self, value: Any) -> None:
        encoded(value)

    @property
    def _head_bits(self) -> int:
        """The number of bits for the number of a string's beginning; 0 is none."""
        return len(self.beginnings).bit_length()

    def _beginning(self, text: str) -> int:
        """The number of the longest beginning that a text has."""
        fit = [
            n for n, beginning in enumerate(self.beginnings, start=1) if text.startswith(beginning)
        ]
        return max(fit, key=lambda number: len(self.beginnings[number - 1]), default=0)

    def spelled(self, value: str) -> int:
        """The reported bits of a string."""
        self.check(value)
        text_bits = self.size - self._head_bits
        if not (number := self._beginning(value)):
            return spell(value, text_bits)
        return number << text_bits | spell(value[len(self.beginnings[number - 1]) :], text_bits)

    def read(self, bits: int, size: int | None = None) -> Spelled | None:
        """The string with these bits, or first bits; None if no string has them."""
        size = self.size if size is None else size
        text_bits = size - self._head_bits
        number = bits >> text_bits
        spelling = read(bits & ((1 << text_bits) - 1), text_bits, complete=size == self.size)
        if spelling is None or not number <= len(self.beginnings):
            return None
        text = self.beginnings[number - 1] + spelling.text if number else spelling.text
        if self._beginning(text) != number:  # a longer known beginning would have been used
            return None
        return Spelled(text, None if spelling.used is None else spelling.used + self._head_bits)

    def ends_at(self, bits: int) -> int:
        """The job from which on a string's places are unique: its last level, or its end's."""
        spelled = self.read(bits)
        used = self.size if spelled is None or spelled.used is None else spelled.used
        return next(level for level, end in enumerate(self.ends) if end >= used)

    def row_of(self, job: int, function: int, before: int) -> tuple[int, int]:
        """The first of a level's places after these bits, and the rotation of its own bits.

        A place is the first plus the level's bits, rotated: so strings that share places but not
        the bits before are spread over all of them.
        """
        begin = self.ends[job - 1] if job else 0
        width = self.ends[job] - begin
        raw = digest(before.to_bytes((begin + 7) // 8, "big"), job * self.hashes + function)
        row = int.from_bytes(raw[:4], "little") % (self.cells >> width)
        return row << width, int.from_bytes(raw[4:8], "little") & ((1 << width) - 1)

    def counted_at(self, function: int, bits: int) -> int:
        """The place of a string in the count."""
        seed = len(self.ends) * self.hashes + function
        raw = digest(bits.to_bytes((self.size + 7) // 8, "big"), seed)
        return int.from_bytes(raw[:8], "little") % self.cells

    def place(self, bits: int, group: int) -> int:
        """The place, among a group's, of a string with these bits."""
        job, function = divmod(group, self.hashes)
        if job == len(self.ends):
            return self.counted_at(function, bits)
        end, begin = self.ends[job], self.ends[job - 1] if job else 0
        prefix = bits >> self.size - end
        first, turned = self.row_of(job, function, prefix >> end - begin)
        return first + (prefix & ((1 << end - begin) - 1) ^ turned)

    def code(self, value: str, group: int) -> int:
        return self.place(self.spelled(value), group)

    def row(self, value: str) -> Sequence[int]:
        bits = self.spelled(value)
        places = [self.place(bits, group) for group in range(self.groups)]
        return [int(place == mine) for mine in places for place in range(self.cells)]

    def probes(self) -> Sequence[str]:
        return (*STRINGS, *self.beginnings)
