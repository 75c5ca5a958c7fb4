"""Reads percentiles from a command line."""

import argparse
import sys


def read_percentile(text: str) -> float:
    """Reads 95 or p95; a share such as 0.95 is read as 0.95%, with a warning.

    Raises ArgumentTypeError with a readable message if `text` is no number.
    """
    try:
        percentile = float(text.removeprefix("p"))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text[:40]!a} is not a percentile; write 50 or 95"
        ) from None
    if 0 < percentile < 1:
        message = f"percentile {percentile:g} has {percentile:g}% of the numbers below it; "
        message += f"{percentile:.0%} is written {100 * percentile:g}"
        print(message, file=sys.stderr)  # noqa: T201 beside the answer
    return percentile
