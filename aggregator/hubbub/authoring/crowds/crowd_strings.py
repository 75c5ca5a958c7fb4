"""Strings in a crowd: hashed to the number of buckets with the least error.

More buckets have fewer collisions, but more cells for lies, which harms frequent strings. The
larger of two errors is minimized: of a string that nobody holds, among a thousand strings with
frequencies by Zipf's law, and of a string that a tenth hold.
"""

from collections.abc import Mapping
from math import sqrt
from typing import Any, Final

from hubbub.authoring.crowds.accountant import Accountant, Planned
from hubbub.authoring.crowds.crowd_trees_and_parts import planned_geometry
from hubbub.catalog.auto_choice import AUTO
from hubbub.catalog.crowds.central import CROWD_STRINGS, CROWD_TREE
from hubbub.catalog.crowds.crowd import Crowd
from hubbub.errors import BadParameter
from hubbub.mechanisms import build

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
