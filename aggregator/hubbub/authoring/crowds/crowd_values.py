"""Each kind of value in a crowd: means, ranges, strings, prefix trees and parts.

A mean has the number of steps of least error, other numbers are parts of a range.

Strings are hashed to the number of buckets with the least error. More buckets have fewer
collisions, but more cells for lies, which harms frequent strings. The larger of two errors is
minimized: of a string that nobody holds, among a thousand strings with frequencies by Zipf's law,
and of a string that a tenth hold.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from math import ceil, inf, prod, sqrt
from typing import Any, Final

from hubbub.authoring.auto_mechanism import EQUAL
from hubbub.authoring.crowds.accountant import Accountant, Planned, sum_scale
from hubbub.catalog.crowds.central_conflicts import CROWD_STRINGS, CROWD_TREE
from hubbub.catalog.crowds.crowd import CROWD_MEANS, CROWD_PARTS, MAX_SUM_SCALE, NOISE, Crowd
from hubbub.catalog.crowds.noise_dummies import can_seal
from hubbub.catalog.mechanism_choice import AUTO
from hubbub.errors import BadParameter
from hubbub.mechanisms import build
from hubbub.mechanisms.even_lies import EvenLies, even_lies, lies_evenly
from hubbub.mechanisms.probability import MAX_EPSILON, MIN_EPSILON
from hubbub.mechanisms.pure_protocols import report_variances

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


# How near the epsilon is found, and in which steps it is looked for from above.
_EPSILON_GRAIN: Final = 1e-3
_STEP: Final = 0.1


def planned_geometry(
    name: str,
    parameters: Mapping[str, Any],
    table: Mapping[str, Any],
    promise: Crowd,
    accountant: Accountant,
) -> Planned:
    """Plan of a mechanism as written, with the largest local epsilon that keeps the promise.

    `parameters` are those besides epsilon. Its geometry depends on epsilon, so the lies of each
    candidate are computed. Raises BadParameter if there is none, or no epsilon keeps the promise.
    """

    def lies_at(epsilon: float) -> EvenLies:
        mechanism = build(name, epsilon=epsilon, **parameters)
        return even_lies(mechanism, mechanism.privacy_loss())

    def holds(epsilon: float) -> bool:
        try:
            lies = lies_at(epsilon)
        except BadParameter:
            return False  # its geometry is too large, as it grows with the epsilon
        loss_shape = lies.categories, lies.epsilon, lies.groups
        return lies.epsilon <= MAX_EPSILON and accountant.keeps(promise, *loss_shape)

    most = min(float(table.get("epsilon", promise.max_local_epsilon)), promise.max_local_epsilon)
    low = min(max(promise.epsilon / promise.epochs, MIN_EPSILON), most)
    lies_at(low)  # refuses numbers of which none is made
    # Geometries come and go as it falls, so halving alone would miss some.
    steps = (most - step * _STEP for step in range(ceil((most - low) / _STEP)))
    low = next(filter(holds, steps), low)
    if promise.epsilon / promise.epochs < low and not holds(low):
        raise BadParameter(promise.unkept())
    high = min(low + _STEP, most)
    while high - low > _EPSILON_GRAIN:
        middle = round((low + high) / 2, 4)
        low, high = (middle, high) if holds(middle) else (low, middle)
    lies = lies_at(low)
    return Planned(
        mechanism=name, parameters={}, categories=lies.categories, groups=lies.groups, epsilon=low
    )


def noisy_parts(
    sizes: Sequence[int],
    table: Mapping[str, Any],
    promise: Crowd,
    accountant: Accountant,
    dummies: str,
) -> Crowd:
    """The promise of parts, all in one value, with noise dummies; unchanged if not worth them.

    `dummies` is "noise"; or "auto", for noise dummies that lower the variances of the cells of
    every two parts by more than 5%, in comparison with reports of two parts without dummies. The
    variances are of a cell that nobody holds and of one that a tenth hold, averaged over tables.
    """
    all_parts, pairs = ({"sizes": sizes, "ways": ways} for ways in (len(sizes), 2))
    joint: Any = build(CROWD_PARTS, epsilon=promise.max_local_epsilon, **all_parts)
    padded = accountant.padded(promise, joint.points, NOISE)
    fits = can_seal(padded, joint.points)
    if dummies == NOISE or not (padded.noise and fits and joint.names_one_cell):
        return padded if dummies == NOISE else promise
    plain = planned_geometry(CROWD_PARTS, pairs, table, promise, accountant)
    paired: Any = build(CROWD_PARTS, epsilon=plain.epsilon, **pairs)
    with_noise, without = (
        sum(
            cell_variance(mechanism, parts, share, promise.reports, noise_variance)
            for parts in paired.tables
            for share in (0.0, 0.1)
        )
        for mechanism, noise_variance in ((joint, padded.noise.variance), (paired, 0.0))
    )
    return padded if EQUAL * with_noise < without else promise


def cell_variance(
    mechanism: Any, parts: Sequence[int], share: float, reports: int, noise_variance: float = 0.0
) -> float:
    """Variance of a cell of the table of these parts, which this share of the reports hold.

    `noise_variance` is the variance of the number of dummies of each cell. The mechanism reports
    this table, or all parts: then a cell is a sum, of which a report names one with the chances a
    and b.
    """
    channel, groups, holders = mechanism.channel, mechanism.groups, share * reports
    if groups > 1:
        uniform = 1 / prod(mechanism.sizes[part] for part in parts)
        true_variance, other_variance = report_variances(channel)
        growth = true_variance - other_variance
        other = groups * other_variance + (groups - 1) * uniform**2
        return float(
            reports * other + holders * (groups * growth + (groups - 1) * (1 - 2 * uniform))
        )
    summed = prod(size for part, size in enumerate(mechanism.sizes) if part not in parts)
    b = summed * float(channel.q)
    a = channel.gap + b
    lies = holders * a * (1 - a) + (reports - holders) * b * (1 - b)
    dummies = noise_variance * (summed * (1 - 2 * b) + mechanism.points * b**2)
    return float((lies + dummies) / channel.gap**2)


# Of functions: whom a string collides with in one of four, it is at most a quarter wrong by.
_HASHES: Final = 4
_WIDTHS: Final = tuple(1 << power for power in range(4, 17))
# Two values are accounted for otherwise than hashed ones.
_MIN_WIDTH: Final = 3
_FREQUENT: Final = 0.1
# Fields that may be given for a prefix tree.
_OF_TREES: Final = ("bits", "cells", "hashes")
# The shares of a thousand strings, squared and summed, by Zipf's law.
_SQUARES: Final = sum(n**-2 for n in range(1, 1001)) / sum(1 / n for n in range(1, 1001)) ** 2


def planned_strings(table: Mapping[str, Any], promise: Crowd, accountant: Accountant) -> Planned:
    """Plan for strings in a crowd: as written, or for `auto` the best number of buckets.

    Raises BadParameter if hashes or width are not numbers in range.
    """
    if table["mechanism"] == CROWD_TREE:
        tree_options = {name: table[name] for name in _OF_TREES if name in table}
        return planned_geometry(CROWD_TREE, tree_options, table, promise, accountant)
    if table["mechanism"] != AUTO:
        hashes: Any = table.get("hashes")
        width: Any = table.get("width")
        build(CROWD_STRINGS, epsilon=promise.max_local_epsilon, hashes=hashes, width=width)
        if width < _MIN_WIDTH:
            raise BadParameter(f"width {width} is outside [{_MIN_WIDTH}, 65536] in a crowd")
        return Planned(mechanism=CROWD_STRINGS, parameters={}, categories=width, groups=hashes)

    def worst(width: int) -> float:
        epsilon = accountant.local_epsilon(promise, width, _HASHES)
        return max(string_errors(width, _HASHES, epsilon, promise.reports))

    width = min(_WIDTHS, key=worst)
    return Planned(
        mechanism=CROWD_STRINGS,
        parameters={"hashes": _HASHES, "width": width},
        categories=width,
        groups=_HASHES,
    )


def string_errors(width: int, hashes: int, epsilon: float, reports: int) -> tuple[float, float]:
    """Standard errors, in reports, of a string that nobody holds and of one that a tenth hold."""
    mechanism = build(CROWD_STRINGS, epsilon=epsilon, hashes=hashes, width=width)
    stretch = width / (width - 1)

    def error(share: float) -> float:
        in_bucket = share + (1 - share) / width
        coins = mechanism.variance(in_bucket * reports, reports)
        collisions = max(_SQUARES - share**2, 0) * reports**2 / (hashes * width)
        return stretch * sqrt(coins + collisions)

    return error(0.0), error(_FREQUENT)
