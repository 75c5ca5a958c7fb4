"""Sets of listed values: how a table says that they are asked for, and what a device reports."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from hubbub.catalog.choice import AUTO
from hubbub.catalog.plain_value import as_python
from hubbub.errors import BadParameter, ValueOutOfDomain
from hubbub.mechanisms import REGISTRY


def check_set(kind: str, mechanism: str) -> None:
    """Raises BadParameter where kind and mechanism say different things of sets."""
    of_sets = REGISTRY[mechanism].FAMILY == "sets"
    if kind == "set" and not of_sets:
        raise BadParameter(
            f'kind: {mechanism} takes one value, and not a set; write mechanism = "{AUTO}"'
        )
    if of_sets and kind != "set":
        raise BadParameter(f'{mechanism} is of sets; write kind = "set"')


def set_code(places: Mapping[str, int], members: Any, other: int | None) -> int:
    """The mechanism's value for a list, tuple or set of values: a bit for each.

    other: the place of what is not listed; None where that is refused.

    Raises:
        ValueOutOfDomain: no such collection, or one of its values is not listed.
    """
    if not isinstance(members, list | tuple | AbstractSet):
        raise ValueOutOfDomain("the value is no list or set; give one, empty if there is nothing")
    code = 0
    for member in members:
        value = as_python(member, places)
        text = str(value).lower() if isinstance(value, bool) else value
        place = places.get(text, other) if isinstance(text, str) else None
        if place is None:
            raise ValueOutOfDomain(f"one of the set is not among its {len(places)} values")
        code |= 1 << place
    return code
