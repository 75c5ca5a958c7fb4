"""Numbers in a crowd: parts of a range, or a mean with the number of steps of least error."""

from bisect import bisect_left
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from math import ceil, inf
from typing import Any, Final

from hubbub.authoring.auto_mechanism import EQUAL
from hubbub.authoring.crowds.accountant import Accountant, Planned, sum_scale
from hubbub.catalog.auto_choice import AUTO
from hubbub.catalog.crowds.crowd import CROWD_MEANS, MAX_SUM_SCALE, NOISE, Crowd
from hubbub.catalog.crowds.noise_dummies import can_seal
from hubbub.errors import BadParameter
from hubbub.mechanisms import build
from hubbub.mechanisms.even_lies import lies_evenly
from hubbub.mechanisms.probability import MAX_EPSILON

# Steps of a mean: more round a number less, and give lies more to name. 1 is `mean.one_bit`.
_STEPS: Final = (1, 2, 3, 4, 6, 8, 11, 16, 22, 32, 45, 64, 90, 128, 181, 256)
_GRAIN: Final = 0.01
_PARTS: Final = {"wave": "buckets", "mean.piecewise": "steps"}


def planned_number(table: Mapping[str, Any], promise: Crowd, accountant: Accountant) -> Planned:
    """Plan for a number in a crowd: as written, or for `auto` the mean with the least error.

    Raises BadParameter if low and high are not a range, or lies are not even over the parts.
    """
    name, ends = table["mechanism"], {key: table.get(key) for key in ("low", "high")}
    parts = _PARTS.get(name)
    if name == AUTO or (parts == "steps" and parts not in table):
        return _best_steps(ends, promise, accountant)
    arguments = ends | ({parts: table.get(parts)} if parts else {})
    # Refuses what is no range, no number.
    build(name, epsilon=promise.max_local_epsilon, **arguments)
    cells = int(arguments[parts] or 0) + (name != "wave") if parts else 2
    epsilon = table.get("epsilon", accountant.local_epsilon(promise, cells))
    if not lies_evenly(build(name, epsilon=epsilon, **arguments)):
        steps = ceil(promise.max_local_epsilon / _GRAIN)
        first_even = bisect_left(
            range(1, steps + 1),
            True,  # noqa: FBT003 from where on they are even
            key=lambda step: lies_evenly(build(name, epsilon=step * _GRAIN, **arguments)),
        )
        needed = None
        if first_even < steps:
            needed = accountant.crowd_needed(promise, cells, (first_even + 1) * _GRAIN)
        would = "raise max_local_epsilon" if needed is None else f"gather a crowd of {needed:,}"
        raise BadParameter(
            f"a crowd of {promise.reports:,} allows an epsilon that is too small for the "
            f"proof with {arguments[_PARTS[name]]:,} {_PARTS[name]}; "
            f"use fewer {_PARTS[name]}, or {would}"
        )
    return Planned(mechanism=name, parameters={}, categories=cells)


def noisy_mean(
    table: Mapping[str, Any], promise: Crowd, accountant: Accountant, dummies: str
) -> Crowd:
    """The promise of a mean with the best noise dummies; unchanged if none are worth it.

    The first whose variance is within 5% of the least: none (if `dummies` is "auto", not "noise"),
    independent numbers, or a fixed sum. Raises BadParameter as planned_number.
    """
    # The best number of steps follows from the law, and the law hardly depends on that number: the
    # law of a crowd without lies, which is quickly accounted for, is nearly the same.
    truthful = accountant.padded(replace(promise, max_local_epsilon=MAX_EPSILON), 3, NOISE)
    own_most = promise.max_local_epsilon
    noisy = planned_number(table, replace(truthful, max_local_epsilon=own_most), accountant)
    independent = accountant.padded(promise, int(noisy.categories), NOISE)
    if not independent.noise:
        return promise
    candidates = [promise] if dummies == AUTO else []
    candidates.append(independent)
    with suppress(BadParameter):  # of laws with less of epsilon, which a catalog cannot contain
        candidates += _with_fixed_sum(table, promise, accountant)

    def variance(of_mean: Crowd) -> float:
        planned = planned_number(table, of_mean, accountant)
        if not can_seal(of_mean, planned.categories):
            return inf
        written = {name: table[name] for name in ("low", "high", "steps") if name in table}
        epsilon = accountant.local_epsilon(of_mean, planned.categories)
        mechanism = build(planned.mechanism, epsilon=epsilon, **written, **planned.parameters)
        return worst_variance(mechanism, of_mean)

    variances = [variance(candidate) for candidate in candidates]
    limit = EQUAL * min(variances)
    return next(best for best, own in zip(candidates, variances, strict=True) if own <= limit)


def _with_fixed_sum(
    table: Mapping[str, Any], promise: Crowd, accountant: Accountant
) -> list[Crowd]:
    """The promise with dummies of a fixed sum, for the steps of least error; empty where none are.

    More steps must lower the variance by more than 5%, as each has dummies. The law of the numbers
    hardly depends on the steps, and that of the sum is proportional to them.
    """
    if table["mechanism"] not in (AUTO, CROWD_MEANS[-1]):
        return []
    truthful = replace(promise, max_local_epsilon=MAX_EPSILON)
    law = accountant.padded(truthful, 3, NOISE, fixed_sum=True)
    best, least = 0, inf
    ends = {"low": table["low"], "high": table["high"], "epsilon": promise.max_local_epsilon}
    for steps in (table["steps"],) if "steps" in table else _STEPS[1:]:
        scale = sum_scale(law.dummies_scale, steps)
        mechanism = build(CROWD_MEANS[-1], steps=steps, **ends)
        if not lies_evenly(mechanism) or scale > MAX_SUM_SCALE:
            break
        worst = worst_variance(mechanism, replace(law, dummies_sum_scale=scale))
        if EQUAL * worst >= least:
            break
        best, least = steps, worst
    fixed = accountant.padded(promise, best + 1, NOISE, fixed_sum=True) if best else promise
    return [fixed] if fixed.noise else []


def worst_variance(mechanism: Any, promise: Crowd) -> float:
    """Largest variance of a crowd's mean, with noise dummies, times the reports squared."""
    contributions, reports = mechanism.contributions, promise.reports
    steps = len(contributions) - 1

    def variance(place: float) -> float:
        noise_variance = 0.0
        if promise.sum_noise:
            noise_variance = promise.sum_noise.variance * (contributions[1] - contributions[0]) ** 2
        elif promise.noise:
            noise_variance = promise.noise.variance * sum(
                (contribution - place) ** 2 for contribution in contributions
            )
        return float(mechanism.variance(place * reports, reports)) + noise_variance

    # Halfway between two steps, where rounding adds most: at the end and in the middle.
    return max(variance(0.5 / steps), variance((steps // 2 + 0.5) / steps))


def _best_steps(ends: Mapping[str, Any], promise: Crowd, accountant: Accountant) -> Planned:
    """The number of steps with the least worst error; stops when the error rises."""
    best, least = None, inf
    # A written law of the sum is that of a number of steps.
    own_steps = (
        promise.dummies_sum_scale / sum_scale(promise.dummies_scale, 1) if promise.noise else 0
    )
    nearest = min(_STEPS[1:], key=lambda steps: abs(steps - own_steps))
    for steps in (nearest,) if own_steps else _STEPS:
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
    if best is None:  # of a written law alone: one bit always is even
        raise BadParameter(
            f"dummies_sum_scale {promise.dummies_sum_scale:g} is for {nearest} steps, but the "
            f"proof does not cover them at a local epsilon of {promise.max_local_epsilon:g}; leave "
            "out the three figures of the dummies, or raise max_local_epsilon"
        )
    return best
