"""Epochs: one after the other without a gap, months as calendars have them, what is due when."""

from datetime import UTC, datetime

import pytest

from hubbub.catalog import EPOCH_SECONDS, closing_time, epoch_at, epoch_start
from hubbub.catalog.epochs_and_periods import GRACE_SECONDS, epochs_within, longest_epoch
from hubbub.epochs import MONTH_SECONDS, begins, epoch_date, holding

DAY = 86_400


@pytest.mark.parametrize("length", EPOCH_SECONDS)
def test_every_moment_is_in_the_epoch_that_began_last(length: str) -> None:
    for epoch in (0, 1, 2, 680, 681, 682, 683, 4799, 4800, 4801, 20_000, 2**32 - 1):
        start, after = epoch_start(epoch, length), epoch_start(epoch + 1, length)
        assert start < after
        assert [epoch_at(moment, length) for moment in (start, after - 1)] == [epoch, epoch]
        assert epoch_at(start + 0.5, length) == epoch
        assert epoch_at(after, length) == epoch + 1


def test_months_are_the_calendars() -> None:
    for epoch in range(12 * 500):
        year, month = divmod(epoch, 12)
        first = datetime(1970 + year, month + 1, 1, tzinfo=UTC)
        assert begins(epoch, MONTH_SECONDS) == first.timestamp()
        assert holding(first.timestamp() + 20 * DAY, MONTH_SECONDS) == epoch
        assert epoch_date(epoch, MONTH_SECONDS) == f"{first:%Y-%m}"
    assert [*EPOCH_SECONDS.values()].count(MONTH_SECONDS) == 1, "it names them"


def test_reports_of_a_month_are_accepted_for_a_month_after_it() -> None:
    november = 12 * 56 + 10
    over = datetime(2026, 12, 1, tzinfo=UTC).timestamp()
    assert epoch_start(november + 1, "month") == over
    assert GRACE_SECONDS["month"] == MONTH_SECONDS
    assert closing_time(november, "month") == over + 2 * MONTH_SECONDS


@pytest.mark.slow
def test_a_number_of_days_touches_at_most_the_stated_epochs() -> None:
    """Looked for over every day of four hundred years that they may begin on."""
    for length in ("week", "28d", "month"):
        seconds = EPOCH_SECONDS[length]
        of_day = [holding(day * DAY, seconds) for day in range(146_097 + 366)]
        for days in (1, 2, 7, 28, 29, 31, 366):
            most = max(of_day[day + days - 1] - of_day[day] + 1 for day in range(146_097))
            assert epochs_within(length, days) == most


def test_keys_wait_for_the_longest_epoch_and_for_a_week_at_least() -> None:
    assert longest_epoch([]) == longest_epoch(["hour", "day"]) == "week"
    assert longest_epoch(["day", "month", "28d"]) == "month"
