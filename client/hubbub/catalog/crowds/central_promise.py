"""A central promise in figures, and who works out what keeps it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from hubbub.catalog.epochs import epochs_within
from hubbub.catalog.periods import days_at_most
from hubbub.mechanisms.probability import MIN_EPSILON


@dataclass(frozen=True, slots=True, kw_only=True)
class CentralPromise:
    """What one person can lose to who sees a whole epoch shuffled, of `crowd` reports at least.

    epsilon, delta: central. honest: the share of the reports that is counted on to lie as it
    should. max_local_epsilon: the most that a report may say to who sees it alone. dummies: how
    many reports of nobody the shuffler adds. dummies_each: how many every device adds, on average.
    epochs: of how many epochs, with a report of the person in each, all of it holds together.
    """

    epsilon: float
    crowd: int
    delta: float
    honest: float
    max_local_epsilon: float
    dummies: int = 0
    dummies_each: float = 0.0
    epochs: int = 1

    def unkept(self) -> str:
        """What is wrong with it where no report says so little that it is kept."""
        together = f" over {self.epochs:,} epochs together" if self.epochs > 1 else ""
        return (
            f"a crowd of {self.crowd:,} keeps a central epsilon of {self.epsilon:g}{together} only "
            f"if a report says less than {MIN_EPSILON:.3g}, and none does: gather more reports, or "
            f"raise central_epsilon"
        )


def epochs_together(central_period: str, epoch: str) -> int:
    """How many epochs a promise is of: the most that any so many days in a row touch."""
    return epochs_within(epoch, days_at_most(central_period)) if central_period else 1


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

    def dummies(self, promise: CentralPromise, categories: int, *, by_devices: bool = False) -> int:
        """How many dummies serve best; 0 where none are worth it. Those of the promise are not."""
        ...

    def crowd_needed(
        self, promise: CentralPromise, categories: float, epsilon: float, groups: int = 1
    ) -> int | None:
        """The smallest crowd that keeps the promise at this local epsilon; None if none does."""
        ...
