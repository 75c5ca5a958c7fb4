"""A whole epoch in one number: the Gaussian that tells at least as much of one person."""

from functools import lru_cache
from typing import Final

from hubbub.catalog.crowds.gaussian import LEFT_OUT, delta_of_mu, mu_of_pure
from hubbub.privacy.shuffled_epoch import ShuffledEpoch
from hubbub.privacy.shuffled_histogram import profile

# The grid of epsilons on which a crowd is compared with Gaussians, and how finely mu is found.
_STEP: Final = 0.01
_FINE: Final = 1e-3


@lru_cache(maxsize=1024)
def gaussian_mu(crowd: ShuffledEpoch) -> float:
    """The least mu, within two percent, whose Gaussians tell at least as much as the crowd.

    Between two epsilons of the grid a crowd's delta is at most what it is at the lower, and a
    Gaussian's at least what it is at the upper; from the last on it is all left out. Where the
    local epsilon alone is proven to tell less, that counts.
    """
    pure, delta = mu_of_pure(crowd.epsilon_local), profile(crowd, LEFT_OUT)
    at = [0.0]
    deltas = [delta(0.0)]
    while deltas[-1] > LEFT_OUT:
        if at[-1] > crowd.epsilon_local:
            return pure
        at.append(at[-1] + max(_STEP, _STEP * 4 * at[-1]))
        deltas.append(delta(at[-1]))
    pairs = list(zip(at[1:], deltas[:-1], strict=True))

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
