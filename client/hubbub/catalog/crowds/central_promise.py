"""The figures of a central promise, and the interface of what computes them."""

from hubbub.catalog.crowds.noise_dummies import noise_of
from hubbub.catalog.epochs import epochs_within
from hubbub.catalog.periods import days_at_most
from hubbub.fields.frozen import frozen
from hubbub.mechanisms.probability import MIN_EPSILON
from hubbub.sealing.count_noise import CountNoise


@frozen(kw_only=True)
class CentralPromise:
    """The central promise of a crowd: what a whole shuffled epoch reveals about one person.

    Args:
        epsilon: central, in nats.
        crowd: smallest number of reports.
        honest: share of reports that is assumed to be randomized correctly.
        max_local_epsilon: largest local epsilon of a report, in nats.
        dummies: number of dummies that the shuffler adds.
        dummies_each: average number of dummies that each device adds.
        dummies_scale: of the law of a value's number of dummies; 0 for none.
        dummies_shift: mean of that law.
        epochs: number of epochs, with a report of the person in each, over which it holds.
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
        """The distribution of the number of noise dummies of each value; None for none."""
        return noise_of(self.dummies_scale, self.dummies_shift)

    def unkept(self) -> str:
        """The error message if no local epsilon is small enough to keep it."""
        together = f" over {self.epochs:,} epochs together" if self.epochs > 1 else ""
        return (
            f"a crowd of {self.crowd:,} keeps a central epsilon of {self.epsilon:g}{together} only "
            f"if a report says less than {MIN_EPSILON:.3g}, and none does: gather more reports, or "
            f"raise central_epsilon"
        )


def epochs_together(central_period: str, epoch: str) -> int:
    """The number of epochs of a promise: the most that a period of this length touches."""
    return epochs_within(epoch, days_at_most(central_period)) if central_period else 1
