"""Keeps central promises by the exact account of a whole shuffled epoch."""

from dataclasses import replace
from functools import lru_cache
from math import floor, sqrt
from typing import Final

from hubbub.authoring.crowds.accountant import sum_scale
from hubbub.catalog import Crowd
from hubbub.catalog.crowds.crowd import DEVICES, NOISE
from hubbub.catalog.crowds.gaussian_privacy import LEFT_OUT, delta_of_mu, mu_of_pure
from hubbub.catalog.crowds.noise_dummies import can_seal
from hubbub.errors import BadParameter
from hubbub.errors.message_words import at_most
from hubbub.mechanisms.probability import MIN_EPSILON
from hubbub.privacy.fewest_dummies import best_dummies, best_noise, wins
from hubbub.privacy.many_epochs import composed_epsilon, largest_local_together
from hubbub.privacy.shuffled_epoch import ShuffledEpoch
from hubbub.privacy.shuffled_histogram import central_epsilon, keeps, largest_local, profile

# Of a promise: what is told below it is not for the accountant's grain alone.
_KEPT_SHARE: Final = 0.98
# How much more a report might say and nothing is told of it: its epsilon is in three digits.
_GRAIN: Final = 2e-3
# Of a promise: a report that says no more by itself needs no crowd.
_ALONE: Final = 1.1


class ExactAccountant:
    """Keeps central promises by the exact account of a whole shuffled epoch."""

    def local_epsilon(self, promise: Crowd, categories: float, groups: int = 1) -> float:
        """The largest that keeps the promise, up to .002 less, in three digits.

        So the same catalog gives the same epsilon, on every machine and numpy version. Raises
        BadParameter if it is less than the smallest epsilon of a report.
        """
        epsilon = self.largest(promise, categories, groups)
        if epsilon < MIN_EPSILON:
            raise BadParameter(promise.unkept())
        return max(
            floor(epsilon * 1000) / 1000,
            min(epsilon, promise.epsilon / promise.epochs),
            MIN_EPSILON,
        )

    def largest(self, promise: Crowd, categories: float, groups: int = 1) -> float:
        """The largest local epsilon that keeps the promise, without rounding."""
        most = promise.max_local_epsilon
        if promise.noise and self.keeps(promise, categories, most, groups):
            return most
        crowd = crowd_of_promise(promise, categories, most, groups)
        if promise.epochs > 1:
            return largest_local_together(crowd, promise.epochs, promise.epsilon, promise.delta)
        return largest_local(crowd, promise.epsilon, promise.delta)

    def keeps(self, promise: Crowd, categories: float, epsilon: float, groups: int = 1) -> bool:
        """Whether this local epsilon keeps the promise in one epoch, or in several together."""
        crowd = crowd_of_promise(promise, categories, epsilon, groups)
        single = keeps(crowd, promise.epsilon, promise.delta)
        if promise.epochs == 1 or not single:  # several say no less, and take longer
            return single
        return epsilon_together(crowd, promise) <= promise.epsilon

    def padded(
        self,
        promise: Crowd,
        categories: int,
        dummies: str,
        *,
        noisy: bool = True,
        fixed_sum: bool = False,
    ) -> Crowd:
        """The promise with the fewest dummies whose variance is within 5% of the smallest."""
        lying = crowd_of_promise(promise, categories, promise.max_local_epsilon)
        if dummies == DEVICES:
            number = best_dummies(lying, promise.epsilon, promise.delta, by_devices=True)
            return replace(promise, dummies_each=float(f"{number / promise.reports:.3g}"))
        noisy_promise = promise
        if noisy or dummies == NOISE:
            # So that many epochs of a person compose, and the yearly cap counts them as Gaussians.
            try:
                scale, shift = best_noise(
                    lying,
                    promise.epsilon,
                    promise.delta,
                    promise.epochs,
                    ends=LEFT_OUT / 2,
                    fixed_sum=fixed_sum,
                )
            except BadParameter:
                if dummies == NOISE:
                    raise
            else:
                noisy_promise = replace(
                    promise,
                    dummies_scale=scale,
                    dummies_shift=shift,
                    dummies_sum_scale=sum_scale(scale, categories - 1) if fixed_sum else 0.0,
                )
        if dummies == NOISE:
            return noisy_promise
        even_promise = replace(promise, dummies=best_dummies(lying, promise.epsilon, promise.delta))
        other = crowd_of_promise(
            even_promise, categories, self.local_epsilon(even_promise, categories)
        )
        fits = can_seal(noisy_promise, categories)
        return (
            noisy_promise
            if fits and wins(replace(lying, noise_dummies=noisy_promise.noise), other)
            else even_promise
        )

    def gaussian(self, promise: Crowd, categories: float, epsilon: float, groups: int = 1) -> float:
        """The smallest mu, rounded up by at most two percent."""
        return gaussian_mu(crowd_of_promise(promise, categories, epsilon, groups))

    def crowd_needed(
        self, promise: Crowd, categories: float, epsilon: float, groups: int = 1
    ) -> int | None:
        """Rounded up in three digits, to 10^9; None for several epochs, which take minutes."""
        crowd = crowd_of_promise(promise, categories, epsilon, groups)

        def would(reports: int) -> bool:
            return keeps(replace(crowd, reports=reports), promise.epsilon, promise.delta)

        low, high = promise.reports, 10**9
        if promise.epochs > 1 or not would(high):
            return None
        while high > low * 1.002 + 1:
            middle = round(sqrt(low * high))
            low, high = (low, middle) if would(middle) else (middle, high)
        return high


def what_decides(
    promise: Crowd,
    local: float,
    total_epsilon: float,
    categories: float | None,
    groups: int = 1,
    *,
    coarse: bool = False,
) -> str:
    """Sentence about a limit, other than the promise, on how accurate reports are; "" if none.

    `local` is the epsilon of a report, and `total_epsilon` that of its smallest crowd, or of all
    epochs of the promise. If `categories` depends on the crowd, it is None, and no sufficient crowd
    is named. `coarse` means that only some epsilons are possible, as for a tree.
    """
    if total_epsilon < _KEPT_SHARE * promise.epsilon:
        text = f"devices randomize more than a central epsilon of {promise.epsilon:g} needs, since"
        if local > promise.max_local_epsilon - _GRAIN:
            return (
                f"{text} a report may reveal {at_most(local, '.4g')} at most; with a larger "
                "max_local_epsilon errors are smaller"
            )
        if not coarse and total_epsilon * (1 + _GRAIN / local) < _KEPT_SHARE * promise.epsilon:
            return (
                f"{text} epsilon is {at_most(local, '.4g')}; with a larger one, or none, errors "
                "are smaller"
            )
    if local > _ALONE * promise.epsilon / promise.epochs:
        return ""
    # From where on a report may say twice as much, or what is allowed.
    raised_epsilon = min(2 * promise.epsilon, promise.max_local_epsilon)
    needed = None
    if categories and raised_epsilon > _ALONE * promise.epsilon:
        needed = ExactAccountant().crowd_needed(promise, categories, raised_epsilon, groups)
    would = f"; {needed:,} reports would" if needed else ""
    return f"so small a crowd adds almost nothing to the protection of a single report{would}"


def crowd_of_promise(
    promise: Crowd, categories: float, epsilon: float, groups: int = 1
) -> ShuffledEpoch:
    """The smallest crowd of a promise, if its reports have this local epsilon, in nats."""
    return ShuffledEpoch(
        reports=promise.reports,
        categories=categories,
        epsilon_local=epsilon,
        honest=promise.honest,
        dummies=promise.dummies,
        groups=groups,
        each=promise.dummies_each,
        noise_dummies=promise.noise,
        sum_noise=promise.sum_noise,
    )


def epsilon_together(crowd: ShuffledEpoch, promise: Crowd) -> float:
    """Epsilon of a crowd in all epochs of a promise."""
    if promise.epochs == 1:
        return central_epsilon(crowd, promise.delta)
    return composed_epsilon([(crowd, promise.epochs)], promise.delta)


# The grid of epsilons on which a crowd is compared with Gaussians, and how finely mu is found.
_STEP: Final = 0.01
_FINE: Final = 1e-3


@lru_cache(maxsize=1024)
def gaussian_mu(crowd: ShuffledEpoch) -> float:
    """The smallest mu whose Gaussian reveals at least as much as the crowd, up to two percent more.

    Between two epsilons of the grid, a crowd's delta is at most that at the lower one, and a
    Gaussian's at least that at the upper one; beyond the last, all of it is left out. If the local
    epsilon alone proves a smaller mu, that is returned.
    """
    pure, delta = mu_of_pure(crowd.epsilon_local), profile(crowd, LEFT_OUT)
    mus = [0.0]
    deltas = [delta(0.0)]
    while deltas[-1] > LEFT_OUT:
        if mus[-1] > crowd.epsilon_local:
            return pure
        mus.append(mus[-1] + max(_STEP, _STEP * 4 * mus[-1]))
        deltas.append(delta(mus[-1]))
    pairs = list(zip(mus[1:], deltas[:-1], strict=True))

    def holds(mu: float) -> bool:
        return all(
            most <= (1 - LEFT_OUT) * (1 - 1e-11) * delta_of_mu(mu, epsilon) + LEFT_OUT
            for epsilon, most in pairs
        )

    low, high = 0.0, pure
    if not holds(high):
        return pure
    while high - low > _FINE * high:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
