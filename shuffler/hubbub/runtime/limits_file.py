"""A file of limits: what a service may be told anew while it runs, in TOML."""

from collections.abc import Mapping
from pathlib import Path

from hubbub.errors import BadParameter
from hubbub.programs.text_files import parse_toml, read_text

Ranges = Mapping[str, tuple[float, float]]
"""Of every limit, by its name, from what to what it may be."""


def read_limits(path: Path, ranges: Ranges, whole: frozenset[str]) -> dict[str, float]:
    """The limits of a file, by name; those that it does not have stay as they are.

    whole: those that are whole numbers.

    Raises:
        BadParameter: it cannot be read, or has what is no limit, or is out of range.
    """
    try:
        text = read_text(path)
    except ValueError as error:
        raise BadParameter(f"--limits {error}") from error
    try:
        toml = parse_toml(text)
    except ValueError as error:
        raise BadParameter(f"--limits {path}: cannot be read as TOML: {error}") from error
    for name, value in toml.items():
        if name not in ranges:
            names = ", ".join(ranges)
            raise BadParameter(f"--limits {path}: {name!a} is no limit; there are {names}")
        low, high = ranges[name]
        kinds = (int,) if name in whole else (int, float)
        if type(value) not in kinds or not low <= value <= high:
            kind = "whole number" if name in whole else "number"
            raise BadParameter(f"--limits {path}: {name} is no {kind} in [{low:.15g}, {high:.15g}]")
    return toml
