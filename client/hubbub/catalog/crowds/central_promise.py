"""A central promise in figures, and who works out what keeps it."""

from dataclasses import dataclass

from hubbub.catalog.crowds.noise_dummies import noise_of
from hubbub.catalog.epochs import epochs_within
from hubbub.catalog.periods import days_at_most
from hubbub.mechanisms.probability import MIN_EPSILON
from hubbub.sealing import CountNoise


@dataclass(frozen=True, slots=True, kw_only=True)
class CentralPromise:
    """What one person can lose to who sees a whole epoch shuffled, of `crowd` reports at least.

    epsilon, delta: central. honest: the share of the reports that is counted on to lie as it
    should. max_local_epsilon: the most that a report may say to who sees it alone. dummies: how
    many reports of nobody the shuffler adds. dummies_each: how many every device adds, on average.
    dummies_scale, dummies_shift: of the law of how many it adds of each value; 0 for none of these.
    epochs: of how many epochs, with a report of the person in each, all of it holds together.
    """

    epsilon: float
    crowd: int
    delta: float
    honest: float
    max_local_epsilon: float
    dummies: int = 0
    dummies_each: float = 0.0
    dummies_scale: float = 0.0
    dummies_shift: int = 0
    epochs: int = 1

    @property
    def noise(self) -> CountNoise | None:
        """The law of how many noise dummies each value has."""
        return noise_of(self.dummies_scale, self.dummies_shift)

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
