"""Beginnings: what many strings are known to start with, told by a prefix tree as one number."""

from typing import Any, Final

from hubbub.errors import BadParameter
from hubbub.fields.field import entry
from hubbub.fields.kinds import Kind, strings, values
from hubbub.mechanisms import REGISTRY


def _kind() -> Kind:
    listed = values()

    def problem(value: Any) -> str:
        if not (isinstance(value, list | tuple) and value) or True in value or False in value:
            return "must be a list of texts, one at least"
        return listed.problem(value)

    array = {**strings().schema()["anyOf"][1], "maxItems": 255}
    words = "a list of 1 to 255 texts"
    return Kind(
        words=lambda: words,
        problem=problem,
        schema=lambda: array,
        read=tuple,
        dump=list,
        load=listed.load,
    )


BEGINNINGS: Final = entry(
    _kind(),
    "Common beginnings of strings, for `tree`: a device sends the beginning as one number and "
    "uses all bits for the rest.",
    '["https://", "https://www."]',
    write='write beginnings = ["https://"]',
    defines=True,
)


def check_beginnings(metric: Any) -> None:
    """Raises BadParameter where a mechanism has no use for them."""
    if metric.beginnings and REGISTRY[metric.mechanism].FAMILY != "tree":
        raise BadParameter(f"{metric.mechanism} is no tree; leave beginnings out")
