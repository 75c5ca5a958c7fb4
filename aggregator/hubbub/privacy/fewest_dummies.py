"""How many dummies to add to a crowd: the fewest whose errors are about as small as possible.

The shuffler adds a number of them, or each device adds some on average. Dummies hide a person as
lies do, so devices may lie less; but each is noise, and people who do not trust the shuffler are
left with a larger local epsilon. Errors are exact: the sum of the variances of a value that nobody
holds and of one that a tenth hold.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from math import ceil, floor, inf, log, sqrt, tanh
from typing import Final

from hubbub.authoring.auto_mechanism import EQUAL
from hubbub.authoring.crowds.accountant import COUNTS_PART, sum_scale
from hubbub.catalog.crowds.crowd import MIN_SCALE, noise_of, sum_noise_of
from hubbub.catalog.crowds.gaussian_privacy import mu_within
from hubbub.errors import BadParameter
from hubbub.privacy.many_epochs import composed_epsilon
from hubbub.privacy.shuffled_epoch import ShuffledEpoch
from hubbub.privacy.shuffled_histogram import keeps, largest_local
from hubbub.sealing.dummy_laws import CountNoise

# With more of them than reports a crowd costs twice as much to seal, send and open; a thousand are
# nothing to anybody.
_CHEAP: Final = 1000
# Largest number that a catalog may contain.
_MOST: Final = 1_000_000
# Steps that a person would write, each about twice the one before.
_STEPS: Final = (1, 2, 5)
# How finely a scale is found, and what it is above the least, so that whoever works it out with
# fewer digits finds the promise kept.
_CLOSE: Final = 1.003
_ROOM: Final = 1.01
# Of delta, what the ends of the law may take: while its scale is sought, and at last.
_SLACK: Final = 0.1
# The catalog's limits, of the scale without `_ROOM`.
_MAX_SCALE: Final = 990.0
_MAX_SHIFT: Final = 20_000
_SHARES: Final = (1.0, 0.9, 0.75, 0.5, 0.25, _SLACK)
# Above this delta of an epoch wider ends save variance; and the step in which they do.
_LARGE: Final = 1e-3
_NARROWER: Final = 0.98

Law = tuple[float, int]
"""Scale and shift of noise dummies; 0 and 0 for none."""


def best_dummies(
    crowd: ShuffledEpoch, central: float, delta: float, *, by_devices: bool = False
) -> int:
    """The fewest dummies whose variance is within 5% of the least; 0 if none are worth it.

    At most as many as reports, or 1,000 if that is more. `crowd` has none, and reports at the
    largest permitted local epsilon. With `by_devices`, devices add that many in total. Raises
    BadParameter for a number out of range.
    """
    options: list[tuple[float, int]] = []
    for dummies in [0, *(n * 10**power for power in range(1, 6) for n in _STEPS), _MOST]:
        if dummies > min(max(crowd.reports, _CHEAP), _MOST):
            break
        dummies_each, number = (dummies / crowd.reports, 0) if by_devices else (0.0, dummies)
        padded = replace(crowd, dummies=number, each=dummies_each)
        local = largest_local(padded, central, delta)
        rounded = replace(padded, epsilon_local=floor(local * 1000) / 1000)
        options.append((_variance(rounded), dummies))
        noise = _variance(replace(padded, epsilon_local=inf))
        if local >= crowd.epsilon_local or noise > min(options)[0]:
            break  # more are but more noise
    least, _ = min(options)
    return min(dummies for variance, dummies in options if variance <= EQUAL * least)


@lru_cache(maxsize=256)
def best_noise(
    crowd: ShuffledEpoch,
    central: float,
    delta: float,
    epochs: int = 1,
    *,
    ends: float = 1.0,
    fixed_sum: bool = False,
) -> Law:
    """Scale and shift of the noise dummies with the least variance that keep a promise.

    `crowd` has none, and reports at the largest permitted local epsilon; (0, 0) if its lies alone
    keep the promise. `epochs` keep it together, with a report of the person in each. `ends` bounds
    the probability of either end of the law, which reveals everything; `delta` bounds it too. A
    smaller one helps a person who is in many epochs, and costs dummies but no error. With
    `fixed_sum` the categories are the steps of a mean, and further dummies fix the sum, with the
    scale `sum_scale`. Raises BadParameter if it needs a larger law than a catalog may contain.
    """
    keeps_with = partial(_keeps_with, crowd, central, delta, epochs, fixed_sum=fixed_sum)
    if keeps_with((0.0, 0)):
        return 0.0, 0

    rare = min(_SLACK * delta / epochs, ends)

    def holds_promise(scale: float) -> bool:
        return keeps_with(_law(scale, rare))

    largest = _MAX_SCALE
    while _near_shift(largest * _ROOM, rare / 2) >= _MAX_SHIFT:
        largest /= _CLOSE
    # Without lies an epoch needs this much; several, if their epsilons added up.
    counts_part = COUNTS_PART if fixed_sum else 1.0
    high = 2 * epochs / central / counts_part
    if epochs > 1:  # as if counts were Gaussian, whose squares add up
        approximate = sqrt(2 * epochs) / mu_within(central, delta) / counts_part
        if approximate < min(high, largest) and holds_promise(approximate):
            high = approximate
    if high > largest and not holds_promise(high := largest):
        raise BadParameter(
            f"noise dummies cannot keep a central epsilon as small as {central:g} here: each value "
            f"would need over {2 * _MAX_SHIFT:,}; raise the epsilon, or leave the dummies out"
        )
    scale = float(f"{_min_scale(holds_promise, high) * _ROOM:.4g}")
    end_shares = [min(share * delta / epochs, ends) for share in _SHARES]
    law = next(filter(keeps_with, (_law(scale, share) for share in end_shares)), None)
    if law is None:
        raise BadParameter(f"noise dummies cannot keep a delta as small as {delta:g}; raise delta")
    for share in end_shares if delta > _LARGE * epochs else ():
        while (narrower := _narrower(law, share)) and keeps_with(narrower):
            law = narrower
    return law


def _min_scale(holds_promise: Callable[[float], bool], high: float) -> float:
    """About the least scale that holds the promise, as `high` does."""
    factor = _CLOSE**2
    while holds_promise(high / factor):
        high, factor = high / factor, factor**2
    low = high / factor
    while high > low * _CLOSE:
        middle = sqrt(low * high)
        low, high = (low, middle) if holds_promise(middle) else (middle, high)
    return high


def wins(noisy: ShuffledEpoch, other: ShuffledEpoch) -> bool:
    """Whether noise dummies give a crowd less variance than `other`, by more than 5%."""
    return bool(noisy.noise_dummies) and EQUAL * _variance(noisy) < _variance(other)


def _near_shift(scale: float, end: float) -> int:
    return max(1, ceil(scale * log(tanh(1 / (2 * scale)) / end)))


def _law(scale: float, ends: float) -> Law:
    """The law with the least shift whose two ends together have at most this probability."""
    scale, end = max(scale, MIN_SCALE), ends / 2
    shift = _near_shift(scale, end)
    while shift > 1 and float(_noise(scale, shift - 1).delta) <= end:
        shift -= 1
    while float(_noise(scale, shift).delta) > end:
        shift += 1
    return scale, shift


def _narrower(law: Law, ends: float) -> Law | None:
    """The law of largest scale with such ends whose variance is below that of `law` by a step."""
    scale, goal = min(2 * law[0], _MAX_SCALE), _NARROWER * _noise(*law).variance
    while scale > MIN_SCALE:
        narrower = _law(float(f"{scale:.4g}"), ends)
        if _noise(*narrower).variance <= goal:
            return narrower
        scale /= _CLOSE
    return None


def _noise(scale: float, shift: int) -> CountNoise:
    noise = noise_of(scale, shift)
    assert noise is not None  # noqa: S101 both are above 0
    return noise


def _keeps_with(
    crowd: ShuffledEpoch, central: float, delta: float, epochs: int, law: Law, *, fixed_sum: bool
) -> bool:
    scale = sum_scale(law[0], int(crowd.categories) - 1) if fixed_sum else 0.0
    with_noise = replace(crowd, noise_dummies=noise_of(*law), sum_noise=sum_noise_of(scale))
    if epochs == 1:
        return keeps(with_noise, central, delta)
    if law[0]:  # whose scale is sought without lies, which rounds up: beside them each takes long
        with_noise = replace(with_noise, epsilon_local=inf)
    return composed_epsilon([(with_noise, epochs)], delta) <= central


def _variance(crowd: ShuffledEpoch) -> float:
    """Sum of the variances of a value that nobody holds, and of one that a tenth hold."""
    return crowd.stderr(0.0) ** 2 + crowd.stderr(0.1) ** 2
