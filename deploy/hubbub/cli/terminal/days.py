"""When the days begin that options name."""

from datetime import UTC, date, datetime


def first_second(day: date) -> int:
    """When a day begins, UTC, in seconds since 1970."""
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())
