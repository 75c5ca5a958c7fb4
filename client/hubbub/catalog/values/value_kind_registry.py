"""The kinds of values, by their names in a catalog."""

from typing import Any, Final

from hubbub.catalog.values.event_history_kinds import Activity, Funnel, Rate, Retention
from hubbub.catalog.values.numbers import Count, Duration, Number, Size
from hubbub.catalog.values.sets_and_vectors import ValueSet, Vector
from hubbub.catalog.values.value_kind import Boolean, ValueKind
from hubbub.errors import BadParameter
from hubbub.mechanisms import REGISTRY

LISTED: Final = ValueKind()
"""Of a metric that names no kind."""
KINDS: Final[dict[str, ValueKind]] = {
    "boolean": Boolean(),
    "count": Count(),
    "number": Number(),
    "duration": Duration(),
    "size": Size(),
    "set": ValueSet(),
    "vector": Vector(),
    "funnel": Funnel(),
    "rate": Rate(),
    "activity": Activity(),
    "retention": Retention(),
}


def kind_named(name: Any) -> ValueKind:
    """Returns the kind with this name; LISTED for no name or an unknown one."""
    return KINDS.get(name, LISTED) if isinstance(name, str) else LISTED


def numeric_kinds() -> dict[str, Number]:
    """Returns the numeric kinds by name."""
    return {name: kind for name, kind in KINDS.items() if isinstance(kind, Number)}


def check_family(metric: Any) -> None:
    """Raises BadParameter if only one of kind and mechanism is for sets, or for vectors."""
    mechanism, family = metric.mechanism, REGISTRY[metric.mechanism].FAMILY
    value_kind = kind_named(metric.kind)
    if family == value_kind.FAMILY:
        return
    if value_kind.FAMILY is not None:
        raise BadParameter(
            f"kind: {mechanism} is for a single value, not for a {metric.kind}; write mechanism = "
            '"auto"'
        )
    for name, kind in KINDS.items():
        if family == kind.FAMILY:
            raise BadParameter(
                f'{mechanism} is for {kind.NAME_OF_VALUES}; write kind = "{name}"{kind.BESIDE}'
            )
