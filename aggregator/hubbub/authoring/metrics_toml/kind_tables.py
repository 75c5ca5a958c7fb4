"""Tables of metrics by the kind of their values, and parts that are ranges of a number."""

from collections.abc import Mapping
from typing import Any

from hubbub.catalog.values.part_ranges import RANGE, PartRange
from hubbub.catalog.values.value_kind import Complain
from hubbub.catalog.values.value_kinds import KINDS, LISTED


def spelled(table: dict[str, Any], wrong: Complain) -> dict[str, Any]:
    """A metric's table as mechanisms have it: with the values or the domain that its kind means."""
    name = table.get("kind")
    # What is wrong with a kind that there is none of is told with all other fields.
    named = KINDS.get(name) if isinstance(name, str) else None
    own = LISTED if name is None else named or KINDS["boolean"]
    for field, reason in own.NOT_ITS.items():
        if field in table:
            wrong(field, reason)
    return own.spelled({n: v for n, v in table.items() if n not in own.NOT_ITS}, wrong)


def ranges_of(table: Any) -> dict[str, PartRange]:
    """Of parts as metrics.toml has them, those that are ranges of a number."""
    if not isinstance(table, Mapping):
        return {}
    return {part: RANGE.read(own) for part, own in table.items() if isinstance(own, Mapping)}
