"""Numbers in a crowd: parts of a range, or a mean with the number of steps of least error."""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import replace
from math import ceil, inf
from typing import Any, Final

from hubbub.authoring.auto_mechanism import EQUAL
from hubbub.authoring.crowds.accountant import Accountant, Planned
from hubbub.catalog.auto_choice import AUTO
from hubbub.catalog.crowds.central_fields import NOISE
from hubbub.catalog.crowds.central_promise import CentralPromise
from hubbub.catalog.crowds.noise_dummies import MAX_SEALED
from hubbub.errors import BadParameter
from hubbub.mechanisms import build
from hubbub.mechanisms.even_noise import lies_evenly
from hubbub.mechanisms.probability import MAX_EPSILON

# Steps of a mean: more round a number less, and give lies more to name. 1 is `mean.one_bit`.
_STEPS: Final = (1, 2, 3, 4, 6, 8, 11, 16, 22, 32, 45, 64, 90, 128)
_GRAIN: Final = 0.01
_PARTS: Final = {"wave": "buckets", "mean.piecewise": "steps"}


def planned_number(
    table: Mapping[str, Any], promise: CentralPromise, accountant: Accountant
) -> Planned:
    """Plan for a number in a crowd: as written, or for `auto` the mean with the least error.

    Raises:
        BadParameter: low and high are not a range; or, at the crowd's epsilon, lies do not spread
            evenly over that many parts.
    """
    name, ends = table["mechanism"], {key: table.get(key) for key in ("low", "high")}
    parts = _PARTS.get(name)
    if name == AUTO or (parts == "steps" and parts not in table):
        return _mean(ends, promise, accountant)
    arguments = ends | ({parts: table.get(parts)} if parts else {})
    build(
        name, epsilon=promise.max_local_epsilon, **arguments
    )  # refuses what is no range, no number
    cells = int(arguments[parts] or 0) + (name != "wave") if parts else 2
    epsilon = table.get("epsilon", accountant.local_epsilon(promise, cells))
    if not lies_evenly(build(name, epsilon=epsilon, **arguments)):
        raise BadParameter(_too_fine(name, arguments, cells, promise, accountant))
    return Planned(mechanism=name, parameters={}, categories=cells)


def noisy_mean(
    table: Mapping[str, Any], promise: CentralPromise, accountant: Accountant, dummies: str
) -> CentralPromise:
    """The promise of a mean with the best noise dummies; unchanged if none are worth it.

    `dummies` is "noise"; or "auto", for noise dummies that lower the variance by more than 5%.

    Raises:
        BadParameter: as planned_number.
    """
    # The best number of steps follows from the law, and the law hardly depends on that number: the
    # law of a crowd without lies, which is quickly accounted for, is nearly the same.
    truthful = accountant.padded(replace(promise, max_local_epsilon=MAX_EPSILON), 3, NOISE)
    own_most = promise.max_local_epsilon
    noisy = planned_number(table, replace(truthful, max_local_epsilon=own_most), accountant)
    padded = accountant.padded(promise, int(noisy.categories), NOISE)
    if dummies == NOISE or not padded.noise:
        return padded
    plain = planned_number(table, promise, accountant)
    few = 2 * padded.dummies_shift * noisy.categories <= MAX_SEALED
    with_noise, without = (
        worst_variance(_built(table, planned, accountant, mean_promise), mean_promise)
        for planned, mean_promise in ((noisy, padded), (plain, promise))
    )
    return padded if few and EQUAL * with_noise < without else promise


def _built(
    table: Mapping[str, Any], planned: Planned, accountant: Accountant, promise: CentralPromise
) -> Any:
    written = {name: table[name] for name in ("low", "high", "steps") if name in table}
    epsilon = accountant.local_epsilon(promise, planned.categories)
    return build(planned.mechanism, epsilon=epsilon, **written, **planned.parameters)


def worst_variance(mechanism: Any, promise: CentralPromise) -> float:
    """Largest variance of a crowd's mean, with noise dummies, times the reports squared."""
    steps, reports = len(mechanism.contributions) - 1, promise.crowd
    # Halfway between two steps, where rounding adds most: at the end and in the middle.
    places = (0.5 / steps, (steps // 2 + 0.5) / steps)
    drawn = promise.noise.variance if promise.noise else 0.0
    variances: list[float] = [
        mechanism.variance(place * reports, reports)
        + drawn * sum((share - place) ** 2 for share in mechanism.contributions)
        for place in places
    ]
    return max(variances)


def _mean(ends: Mapping[str, Any], promise: CentralPromise, accountant: Accountant) -> Planned:
    """The number of steps with the least worst error; stops when the error rises."""
    best, least = None, inf
    for steps in _STEPS:
        grid = {"steps": steps} if steps > 1 else {}
        name = "mean.piecewise" if grid else "mean.one_bit"
        # With noise dummies a report reveals as much as it may; the caller accounts for the chosen.
        epsilon = (
            promise.max_local_epsilon
            if promise.noise
            else accountant.local_epsilon(promise, steps + 1)
        )
        mechanism = build(name, epsilon=epsilon, **ends, **grid)
        if not lies_evenly(mechanism):
            break
        worst = worst_variance(mechanism, promise)
        if worst >= least:
            break
        best, least = Planned(mechanism=name, parameters=grid, categories=steps + 1), worst
    assert best is not None  # noqa: S101 one bit always is even
    return best


def _too_fine(
    name: str,
    arguments: Mapping[str, Any],
    cells: int,
    promise: CentralPromise,
    accountant: Accountant,
) -> str:
    """Error text about too many parts, with the crowd that would suffice."""
    steps = ceil(promise.max_local_epsilon / _GRAIN)
    first = bisect_left(
        range(1, steps + 1),
        True,  # noqa: FBT003 from where on they are even
        key=lambda step: lies_evenly(build(name, epsilon=step * _GRAIN, **arguments)),
    )
    enough = None
    if first < steps:
        enough = accountant.crowd_needed(promise, cells, (first + 1) * _GRAIN)
    would = "raise max_local_epsilon" if enough is None else f"gather a crowd of {enough:,}"
    return (
        f"a crowd of {promise.crowd:,} allows too small an epsilon for {arguments[_PARTS[name]]:,} "
        f"{_PARTS[name]}: lies would name neighbours more often, which the proof does not cover; "
        f"use fewer {_PARTS[name]}, or {would}"
    )
