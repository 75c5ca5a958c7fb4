"""A day, as arguments of commands have it."""

import argparse
from datetime import date


def as_day(written: str) -> date:
    """YYYY-MM-DD, or the error that argparse shows."""
    try:
        return date.fromisoformat(written)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{written[:40]!a} is no day; write YYYY-MM-DD") from None
