"""Numbers of options that are out of range are refused by the name that was typed."""

import argparse
from collections.abc import Mapping

from hubbub.errors import BadParameter


def refuse_outside(
    arguments: argparse.Namespace, limits: Mapping[str, tuple[float, float]]
) -> None:
    """Check options against their ranges, ends included; an option that is not given is None.

    Raises:
        BadParameter: a number out of its range.
    """
    for name, (low, high) in limits.items():
        number = getattr(arguments, name)
        if number is not None and not low <= number <= high:
            option = "--" + name.replace("_", "-")
            ends = ", ".join(f"{e:,}" if isinstance(e, int) else f"{e:g}" for e in (low, high))
            raise BadParameter(f"{option} {number:g} is outside [{ends}]")
