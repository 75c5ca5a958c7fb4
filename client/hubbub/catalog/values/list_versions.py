"""Lists of values that grew under the same metric name: each list has its own stream.

Totals of two lists cannot be added. The stream's name contains the number of values: "theme" for
the first list, "theme/v4" for a later list of four values.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, Final

from hubbub.errors import BadParameter
from hubbub.fields import kinds
from hubbub.fields.field import entry
from hubbub.mechanisms import REGISTRY
from hubbub.sealing.digests import sha256

FINDER: Final = "tree"
"""The last of the name of a stream in which strings are found that nobody listed."""

STREAM: Final = re.compile(rf"(/v[0-9]{{1,6}})?(/[0-9.e+-]{{1,16}})?|/{FINDER}")
"""What follows a metric's name in a stream's: which list of values, and which tier."""

_MOST: Final = 16

GROWN: Final = entry(
    kinds.ascending("how many values there were", "ascend", kinds.integer(1, 1 << 24)),
    "How many values the lists before had, where values were appended.",
    written=False,
)


def check_grown(metric: Any) -> None:
    """Raises BadParameter if the metric's values cannot have grown in this way."""
    if not metric.grown:
        return
    if not is_list(metric) or metric.grown[-1] >= len(metric.values):
        raise BadParameter("grown needs a list of values, and numbers below the list's length")
    if len(metric.grown) > _MOST:
        raise BadParameter(f"values grow {_MOST} times at most; give the metric a new name")


def is_list(metric: Any) -> bool:
    """Returns whether the metric lists its values, so that values may be appended later.

    Each list needs its own minimum batch, in a crowd and in each cell of a breakdown.
    """
    return bool(
        metric.values is not None
        and REGISTRY[metric.mechanism].FAMILY == "listed"
        and not (metric.kind or metric.edges or metric.ranges)
    )


def list_names(name: str, grown: Sequence[int], values: int) -> tuple[str, ...]:
    """Returns each list's stream, the first list first. `name` may have a tier: "theme/0.5"."""
    if not grown:
        return (name,)
    metric_name, slash, tier = name.partition("/")
    return (name, *(f"{metric_name}/v{size}{slash}{tier}" for size in (*grown[1:], values)))


def digests_of(metric: Any) -> dict[str, str]:
    """Returns SHA-256, in hex, of the meaning of each list of values, by the list's stream."""
    definition = metric.definition()
    values = definition["values"]
    sizes = (*metric.grown, len(values or ()))
    tables = [
        definition if values is None else definition | {"values": values[:size]} for size in sizes
    ]
    texts = [json.dumps(table, sort_keys=True, separators=(",", ":")) for table in tables]
    digests = [sha256(text.encode()).hex() for text in texts]
    return dict(zip(list_names(metric.name, metric.grown, sizes[-1]), digests, strict=True))


def tier_of(name: str) -> str:
    """Returns the tier of a stream; "" for none."""
    last = name.rpartition("/")[2] if "/" in name else ""
    return "" if last.startswith("v") else last
