"""A percentile as people write it on a command line."""

import argparse
import sys


def read_percentile(text: str) -> float:
    """95, or p95 as answers and alerts have it; a share such as 0.95 is read, and doubted aloud.

    Raises ArgumentTypeError, in words, for what is no number.
    """
    try:
        percentile = float(text.removeprefix("p"))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text[:40]!a} is no percentile; write 50 or 95"
        ) from None
    if 0 < percentile < 1:
        message = f"percentile {percentile:g} has {percentile:g}% of the numbers below it; "
        message += f"{percentile:.0%} is written {100 * percentile:g}"
        print(message, file=sys.stderr)  # noqa: T201 beside the answer
    return percentile
