"""Days, as arguments of commands have them."""

import argparse
from datetime import UTC, date, datetime


def as_day(written: str) -> date:
    """YYYY-MM-DD, or the error that argparse shows."""
    try:
        return date.fromisoformat(written)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{written[:40]!a} is no day; write YYYY-MM-DD") from None


def first_second(day: date) -> int:
    """When a day begins, UTC, in seconds since 1970."""
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())
