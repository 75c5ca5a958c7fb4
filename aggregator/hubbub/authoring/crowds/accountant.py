"""The accountant of crowds: works out the local epsilon that keeps a central promise."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from hubbub.catalog.crowds.central_promise import CentralPromise


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A mechanism in a crowd, what was chosen for it, and the cells that its lies are spread over.

    groups: among how many groups of so many cells (`even_lies` of hubbub.mechanisms). epsilon: the
    largest that keeps the promise, where that does not follow from those.
    """

    mechanism: str
    parameters: Mapping[str, float]
    categories: float
    groups: int = 1
    epsilon: float | None = None


class Accountant(Protocol):
    """Works out what keeps a central promise. It needs numpy, so it is not among the client's.

    categories: over how many values, ranges or buckets a lie is spread. groups: of how many a
    report shows which it is in, as the hash functions of strings.
    """

    def local_epsilon(self, promise: CentralPromise, categories: float, groups: int = 1) -> float:
        """The largest local epsilon that keeps the promise, in nats."""
        ...

    def gaussian(
        self, promise: CentralPromise, categories: float, epsilon: float, groups: int = 1
    ) -> float:
        """The mu of a crowd whose reports say this local epsilon, as gaussian.py has it."""
        ...

    def keeps(
        self, promise: CentralPromise, categories: float, epsilon: float, groups: int = 1
    ) -> bool:
        """Whether a crowd of reports of this local epsilon keeps the promise."""
        ...

    def padded(
        self, promise: CentralPromise, categories: int, dummies: str, *, noisy: bool = True
    ) -> CentralPromise:
        """The promise with the dummies that serve best, if any are worth it; it has none itself.

        dummies: "noise" for noise dummies, "devices" for those that devices make, "auto" for the
            best that the shuffler makes. noisy: whether noise dummies are among these.
        """
        ...

    def crowd_needed(
        self, promise: CentralPromise, categories: float, epsilon: float, groups: int = 1
    ) -> int | None:
        """The smallest crowd that keeps the promise at this local epsilon; None if none does."""
        ...
