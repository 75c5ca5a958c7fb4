"""Beginnings: common prefixes of strings, which a device sends as one number."""

from typing import Any, Final

from hubbub.errors import BadParameter
from hubbub.fields.field import entry
from hubbub.fields.kinds import names
from hubbub.mechanisms import REGISTRY

BEGINNINGS: Final = entry(
    names(1, 255),
    "Common beginnings of strings, for `tree`: a device sends the beginning as one number and "
    "uses all bits for the rest.",
    '["https://", "https://www."]',
    write='write beginnings = ["https://"]',
    defines=True,
)


def check_beginnings(metric: Any) -> None:
    """Raises BadParameter if the mechanism cannot use beginnings."""
    if metric.beginnings and REGISTRY[metric.mechanism].FAMILY != "tree":
        raise BadParameter(f"{metric.mechanism} is not a prefix tree; leave beginnings out")
