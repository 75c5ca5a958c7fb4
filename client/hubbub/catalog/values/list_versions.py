"""Values that were appended under the same name: each list that was ever asked is a stream apart.

Totals of two lists do not add, so reports of each go to a stream of their own, named by how many
values it has: "theme" of the first list, "theme/v4" once there are four.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any, Final

from hubbub.errors import BadParameter
from hubbub.fields import kinds
from hubbub.fields.field import entry
from hubbub.mechanisms import REGISTRY

FINDER: Final = "tree"
"""The last of the name of a stream in which strings are found that nobody listed."""

STREAM: Final = re.compile(rf"(/v[0-9]{{1,6}})?(/[0-9.e+-]{{1,16}})?|/{FINDER}")
"""What follows a metric's name in a stream's: which list of values, and which tier."""

_MOST: Final = 16

GROWN: Final = entry(
    kinds.ascending("how many values there were", "ascend", kinds.whole(1, 1 << 24)),
    "How many values the lists before had, where values were appended.",
    written=False,
)


def check_grown(metric: Any) -> None:
    """Raises BadParameter where a metric's values cannot have grown so."""
    if not metric.grown:
        return
    if not is_list(metric) or metric.grown[-1] >= len(metric.values):
        raise BadParameter("grown is of a list of values alone, and shorter than it")
    if len(metric.grown) > _MOST:
        raise BadParameter(f"values grow {_MOST} times at most; give the metric a new name")


def is_list(metric: Any) -> bool:
    """Whether it asks for values that were listed one by one, so that more may follow.

    Of a crowd, and of each cell of a breakdown, each list has to fill its own.
    """
    return bool(
        metric.values is not None
        and REGISTRY[metric.mechanism].FAMILY == "listed"
        and not (metric.kind or metric.edges or metric.ranges)
    )


def list_names(name: str, grown: Sequence[int], values: int) -> tuple[str, ...]:
    """The stream of each list, the first one's first; name: perhaps of a tier, "theme/0.5"."""
    if not grown:
        return (name,)
    whole, slash, tier = name.partition("/")
    return (name, *(f"{whole}/v{size}{slash}{tier}" for size in (*grown[1:], values)))


def digests_of(metric: Any) -> dict[str, str]:
    """By the stream of each list of values, SHA-256 of what it means, in hex."""
    whole = metric.definition()
    values = whole["values"]
    sizes = (*metric.grown, len(values or ()))
    tables = [whole if values is None else whole | {"values": values[:size]} for size in sizes]
    texts = [json.dumps(table, sort_keys=True, separators=(",", ":")) for table in tables]
    digests = [hashlib.sha256(text.encode()).hexdigest() for text in texts]
    return dict(zip(list_names(metric.name, metric.grown, sizes[-1]), digests, strict=True))


def tier_of(name: str) -> str:
    """Which tier a stream is of; "" for none."""
    last = name.rpartition("/")[2] if "/" in name else ""
    return "" if last.startswith("v") else last
