"""The figures of a central promise, and the interface of what computes them."""

from hubbub.catalog.crowds.noise_dummies import noise_of, sum_noise_of
from hubbub.catalog.epochs import epochs_within
from hubbub.catalog.periods import days_at_most
from hubbub.fields.frozen import frozen
from hubbub.mechanisms.probability import MIN_EPSILON
from hubbub.sealing.count_noise import CountNoise


@frozen(kw_only=True)
class CentralPromise:
    """The central promise of a crowd: what a whole shuffled epoch reveals about one person.

    The fields are those of a metric, as central_fields.py has them; `epochs` is the number of
    epochs, with a report of the person in each, over which the central `epsilon` holds.
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
    dummies_sum_scale: float = 0.0
    epochs: int = 1

    @property
    def noise(self) -> CountNoise | None:
        """The distribution of the number of noise dummies of each value; None for none."""
        return noise_of(self.dummies_scale, self.dummies_shift)

    @property
    def sum_noise(self) -> CountNoise | None:
        """The distribution of the sum of a mean's noise dummies, in steps; None for none."""
        return sum_noise_of(self.dummies_sum_scale)

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
