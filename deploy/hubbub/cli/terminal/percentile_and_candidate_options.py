"""Reads what several commands' options name: percentiles, and files of candidate strings."""

import argparse
import sys
from collections.abc import Callable
from itertools import chain
from pathlib import Path

from hubbub.errors import BadParameter
from hubbub.programs.option_parsing import option, options
from hubbub.programs.text_files import read_list


def read_percentile(text: str) -> float:
    """Reads 95 or p95; a share such as 0.95 is read as 0.95%, with a warning.

    Raises ArgumentTypeError with a readable message if `text` is no number inside (0, 100).
    """
    try:
        percentile = float(text.removeprefix("p"))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text[:40]!a} is not a percentile; write 50 or 95"
        ) from None
    if not 0 < percentile < 100:  # noqa: PLR2004 percent
        raise argparse.ArgumentTypeError(
            f"percentile {percentile:g} is outside (0, 100); write 50 for the median, or 95"
        )
    if percentile < 1:
        message = f"percentile {percentile:g} has {percentile:g}% of the numbers below it; "
        message += f"{percentile:.0%} is written {100 * percentile:g}"
        print(message, file=sys.stderr)  # noqa: T201 beside the answer
    return percentile


def list_of(read: Callable[[str], float]) -> Callable[[str], tuple[float, ...]]:
    """Makes a reader of several values in one argument, such as 50,90,99.9."""
    return lambda text: tuple(read(part) for part in text.split(","))


def flatten(_: str, numbers: tuple[tuple[float, ...], ...]) -> tuple[float, ...]:
    """The values of all arguments, since the option may be repeated."""
    return tuple(chain.from_iterable(numbers))


@options
class PercentileOptions:
    """The option for percentiles of a number with buckets."""

    percentiles: tuple[float, ...] = option(
        "percentiles of a number with buckets, as 50 or 50,90,99.9",
        name="--percentile",
        metavar="P,...",
        parse=list_of(read_percentile),
        read=flatten,
    )


def read_candidates(path: Path, option: str = "--candidates") -> list[str]:
    """The lines of a text file, plain or .gz, without repeats; errors name `option`.

    Raises BadParameter if it cannot be read as text, or is empty.
    """
    try:
        lines = list(dict.fromkeys(read_list(path)))
    except ValueError as error:
        raise BadParameter(f"{option} {error}") from error
    if not lines:
        raise BadParameter(f"{option} {path}: is empty; write one string per line")
    return lines
