"""Strings, prefix trees and parts in a crowd.

Strings are hashed to the number of buckets with the least error. More buckets have fewer
collisions, but more cells for lies, which harms frequent strings. The larger of two errors is
minimized: of a string that nobody holds, among a thousand strings with frequencies by Zipf's law,
and of a string that a tenth hold.
"""

from collections.abc import Mapping, Sequence
from math import ceil, prod, sqrt
from typing import Any, Final

from hubbub.authoring.auto_mechanism import EQUAL
from hubbub.authoring.crowds.accountant import Accountant, Planned
from hubbub.catalog.auto_choice import AUTO
from hubbub.catalog.crowds.central_conflicts import CROWD_STRINGS, CROWD_TREE
from hubbub.catalog.crowds.crowd import CROWD_PARTS, NOISE, Crowd
from hubbub.catalog.crowds.noise_dummies import can_seal
from hubbub.errors import BadParameter
from hubbub.mechanisms import build
from hubbub.mechanisms.even_lies import EvenLies, even_lies
from hubbub.mechanisms.probability import MAX_EPSILON, MIN_EPSILON
from hubbub.mechanisms.pure_protocols import report_variances

# How near the epsilon is found, and in which steps it is looked for from above.
_GRAIN: Final = 1e-3
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
    while high - low > _GRAIN:
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
        held, lied = report_variances(channel)
        growth = held - lied
        other = groups * lied + (groups - 1) * uniform**2
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
