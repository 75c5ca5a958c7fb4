"""Mechanisms that draw one of several groups, and answer in it by another mechanism."""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Protocol

from hubbub.mechanisms.layout import Estimates, OneHot, Totals, concat
from hubbub.mechanisms.mechanism import Value_contra
from hubbub.mechanisms.pure_protocols import ListedMechanism, Pure, PureMechanism
from hubbub.mechanisms.random_bits import BitSource


class Grouped(PureMechanism[Value_contra], Protocol[Value_contra]):
    """A mechanism whose report is a group and, in the same index, the group's answer."""

    __slots__ = ()

    @property
    def response(self) -> ListedMechanism:
        """What answers in every group; its payload is one index."""

    def code(self, value: Value_contra, group: int) -> int:
        """The value as `response` takes it in this group."""

    @property
    def points(self) -> int:
        """The number of cells of the totals of a group."""
        return self.response.layout.size

    @property
    def channel(self) -> Pure:
        return self.response.channel

    @property
    def layout(self) -> OneHot:
        return OneHot(self.groups * self.points)

    def privacy_loss(self) -> float:
        return self.response.privacy_loss()

    def likelihood(self, value: Value_contra, cells: Mapping[int, int]) -> Fraction:
        group, point = divmod(next(iter(cells)), self.points)
        return self.response.likelihood(self.code(value, group), {point: 1})

    def randomize(self, value: Value_contra, source: BitSource) -> bytes:
        group = source.below(self.groups)  # PRIVACY: drawn without a look at the value
        sent = self.response.randomize(self.code(value, group), source)
        return self.layout.encode(group * self.points + int.from_bytes(sent, "little"))

    def estimate(self, totals: Totals) -> Estimates:
        """Per group and code: the number of the group's reports that have it."""
        groups = (
            self.response.estimate(Totals(cells=cells, reports=sum(cells)))
            for cells in self.by_group(totals)
        )
        return concat(groups, totals.reports)

    def by_group(self, totals: Totals) -> Iterator[Sequence[int]]:
        """The cells of each group. Raises ShapeMismatch for totals of another shape."""
        totals.check(self.layout)
        for start in range(0, self.layout.size, self.points):
            yield totals.cells[start : start + self.points]
