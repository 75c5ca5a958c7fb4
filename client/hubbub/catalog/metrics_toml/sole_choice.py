"""`mechanism = "auto"` where there is one mechanism for what is asked: sets, parts, any string."""

from typing import Any, Final

from hubbub.catalog.choice import AUTO, own_fields
from hubbub.catalog.crowds.central import PROMISE
from hubbub.catalog.metric import DOMAINS
from hubbub.mechanisms.hcms import HadamardSketch
from hubbub.mechanisms.pairs import PairedParts
from hubbub.mechanisms.privset import PrivSet
from hubbub.mechanisms.tree import PrefixTree

# As the planner weighs sketches: collisions then add little to the error of a rare string.
_SKETCH: Final = {"hashes": 1024, "width": 1024}


def with_sole_choice(table: dict[str, Any]) -> dict[str, Any]:
    """The table with that mechanism by its name, and without what `auto` is told of others.

    Strings that are listed as candidates are counted by a sketch, others found by a prefix tree. In
    a crowd `auto` chooses by the crowd's account.
    """
    if table.get("mechanism") != AUTO:
        return table
    wishes = {field.name for field in own_fields(AUTO)}
    plain = {name: one for name, one in table.items() if name not in wishes}
    if table.get("kind") == "set":
        return plain | {"mechanism": PrivSet.NAME}
    if "parts" in table:
        return plain | {"mechanism": PairedParts.NAME}
    if table.get("domain") != DOMAINS["strings"] or any(name in table for name in PROMISE):
        return table
    if "candidates" in table:
        return _SKETCH | plain | {"mechanism": HadamardSketch.NAME}
    return plain | {"mechanism": PrefixTree.NAME}
