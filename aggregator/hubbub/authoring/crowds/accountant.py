"""The accountant of crowds: computes the local epsilon that keeps a central promise."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from hubbub.catalog.crowds.crowd import Crowd


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A planned mechanism in a crowd.

    Args:
        parameters: what was chosen for it.
        categories, groups: number of cells over which its lies are spread, and number of groups of
            that many cells (`even_lies` of hubbub.mechanisms).
        epsilon: the largest that keeps the promise, if it does not follow from the above.
    """

    mechanism: str
    parameters: Mapping[str, float]
    categories: float
    groups: int = 1
    epsilon: float | None = None


class Accountant(Protocol):
    """Computes what keeps a central promise. It needs numpy, so the client does not have it.

    In all methods, `categories` is the number of values, ranges or buckets over which a lie is
    spread, and `groups` the number of groups of which a report shows its own, as hash functions.
    """

    def local_epsilon(self, promise: Crowd, categories: float, groups: int = 1) -> float:
        """The largest local epsilon that keeps the promise, in nats."""

    def gaussian(self, promise: Crowd, categories: float, epsilon: float, groups: int = 1) -> float:
        """The mu of a crowd whose reports have this local epsilon, as in gaussian.py."""

    def keeps(self, promise: Crowd, categories: float, epsilon: float, groups: int = 1) -> bool:
        """Whether a crowd of reports of this local epsilon keeps the promise."""

    def padded(
        self,
        promise: Crowd,
        categories: int,
        dummies: str,
        *,
        noisy: bool = True,
        fixed_sum: bool = False,
    ) -> Crowd:
        """The promise, which has no dummies, with the best dummies if any are worth it.

        `dummies` is "noise" for noise dummies, "devices" for those of devices, or "auto" for the
        best of the shuffler's, which include noise dummies if `noisy`. With `fixed_sum` the
        categories are the steps of a mean, and further noise dummies fix the sum.
        """

    def crowd_needed(
        self, promise: Crowd, categories: float, epsilon: float, groups: int = 1
    ) -> int | None:
        """The smallest crowd that keeps the promise at this local epsilon; None if none does."""
