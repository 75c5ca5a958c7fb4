"""Which epochs are meant, in words."""

from datetime import UTC, date, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hubbub.aggregator.query.epoch_range import EpochRange, select_epochs
from hubbub.epochs import MONTH_SECONDS, epoch_date, epoch_dates
from hubbub.errors import BadParameter

NOW = datetime(2026, 11, 22, 14, 30, tzinfo=UTC).timestamp()
TODAY = int(NOW) // 86_400
DAYS = [TODAY - 40, TODAY - 7, TODAY - 6, TODAY - 2, TODAY - 1, TODAY]


def _days(last: str = "", epochs: str = "") -> list[int]:
    selection = select_epochs(EpochRange(last, epochs), DAYS, "day", NOW)
    return [TODAY - epoch for epoch in selection]


@pytest.mark.parametrize(
    ("last", "epochs", "ago"),
    [
        ("", "", [0]),
        ("", "newest", [0]),
        ("", "all", [40, 7, 6, 2, 1, 0]),
        ("", "closed", [6]),
        ("1", "", [0]),
        ("3", "", [2, 1, 0]),
        ("7d", "", [6, 2, 1, 0]),
        ("1w", "", [6, 2, 1, 0]),
        ("24h", "", [0]),
        ("1h", "", [0]),
        ("999999w", "", [40, 7, 6, 2, 1, 0]),
        ("", f"{TODAY}", [0]),
        ("", f"{TODAY - 6}..{TODAY - 1}", [6, 2, 1]),
        ("", f"{TODAY - 40},{TODAY}", [40, 0]),
        ("", "2026-11-22", [0]),
        ("", "2026-11-15..2026-11-20", [7, 6, 2]),
        ("", " 2026-11-15 .. 2026-11-20 , 2026-11-22", [7, 6, 2, 0]),
        ("", "5", []),
        ("", "today", [0]),
        ("", "2026-11-20..yesterday", [2, 1]),
    ],
)
def test_epochs_are_named_by_words_and_dates(last: str, epochs: str, ago: list[int]) -> None:
    assert _days(last, epochs) == ago


@pytest.mark.slow
@pytest.mark.parametrize(
    ("length", "seconds", "dates"),
    [
        ("day", 86_400, "2026-10-13, 2026-11-15..2026-11-16, 2026-11-20..2026-11-22"),
        ("hour", 3600, "2026-11-22T03:00, 2026-11-22T10:00..2026-11-22T11:00"),
        ("week", 604_800, "2026-10-15, 2026-11-05..2026-11-19"),
        ("28d", 2_419_200, "2026-09-24..2026-11-19"),
        ("month", MONTH_SECONDS, "2025-12..2026-02, 2026-11"),
    ],
)
def test_dates_are_shown_as_they_are_requested(length: str, seconds: int, dates: str) -> None:
    epochs = select_epochs(EpochRange(epochs=dates), range(600_000), length, NOW)
    assert epoch_dates(epochs, seconds) == dates
    for epoch in epochs:
        date = epoch_date(epoch, seconds)
        assert select_epochs(EpochRange(epochs=date), epochs, length, NOW) == [epoch]
    assert epoch_date(2**32 - 1, seconds), "later than calendars have"


def test_a_month_of_a_daily_metric_has_all_its_days() -> None:
    first = date(2026, 2, 1).toordinal() - date(1970, 1, 1).toordinal()
    days = range(first - 3, first + 33)
    for epochs, expected in (
        ("2026-02", range(first, first + 28)),
        ("2026-01..2026-02", range(first - 3, first + 28)),
        ("2026-02-27..2026-03", range(first + 26, first + 33)),
    ):
        assert select_epochs(EpochRange(epochs=epochs), days, "day", NOW) == [*expected]
    months = [12 * 56, 12 * 56 + 1]
    assert select_epochs(EpochRange(epochs="2026-02-14"), months, "month", NOW) == months[1:]


def test_a_range_is_represented_by_its_first_epoch_with_reports() -> None:
    def select(epochs: str) -> list[int]:
        return select_epochs(EpochRange(epochs=epochs), DAYS, "day", NOW, exact=True)

    assert select("2026-11-15..2026-11-16,2026-11-20") == [TODAY - 7, TODAY - 6, TODAY - 2]
    assert select("2026-11-18..2026-11-19") == [TODAY - 4], "which holds none, and is refused by it"


def test_a_day_of_an_hourly_metric_is_all_its_hours() -> None:
    hours = [24 * TODAY + hour for hour in (-1, 0, 13, 14)]
    for epochs, expected in (
        ("2026-11-22", hours[1:]),
        ("2026-11-22T13:00", [hours[2]]),
        ("2026-11-21T23:00..2026-11-22T00:30", hours[:2]),
    ):
        assert select_epochs(EpochRange(epochs=epochs), hours, "hour", NOW) == expected
    assert select_epochs(EpochRange("2h"), hours, "hour", NOW) == hours[2:]
    assert select_epochs(EpochRange("1d"), hours, "hour", NOW) == hours


def test_without_epochs_every_selection_is_empty() -> None:
    for last, epochs in (("", ""), ("7d", ""), ("", "all"), ("", "closed")):
        assert select_epochs(EpochRange(last, epochs), [], "week", NOW) == []


@pytest.mark.parametrize(
    ("last", "epochs", "message"),
    [
        ("7d", "all", "not both"),
        ("0", "", "write 7, 12h, 7d or 4w"),
        ("7y", "", "write 7, 12h, 7d or 4w"),
        ("-1", "", "write 7, 12h, 7d or 4w"),
        ("1" * 9, "", "write 7, 12h, 7d or 4w"),
        ("", "tomorrow", "2026-11-01..2026-11-07"),
        ("", "9..1", "end before they begin: swap the ends$"),
        ("", "1..", '^epochs "1.." lack an end: write both'),
        ("", "yestreday", '; did you mean "yesterday"'),
        ("", "2026-11-01..yestreday", '; did you mean "yesterday"'),
        ("", "x" * 5000, "xxx..."),
        ("", "2026-11-31", "^epochs: 2026-11-31 does not exist in the calendar$"),
        ("", "2026-11-01..2026-11-31", "epochs: 2026-11-31 does not exist"),
        ("", "2026-13", "2026-13 does not exist"),
        ("", "2026-W48", "write newest, closed, all"),
        ("", "2026-W53-7", "write newest, closed, all"),
        ("", "20261122T14:00", "write newest, closed, all"),
        ("", "2026-11-22T25:00", "2026-11-22T25:00 does not exist"),
    ],
)
def test_an_invalid_range_of_epochs_is_refused_with_an_example(
    last: str, epochs: str, message: str
) -> None:
    with pytest.raises(BadParameter, match=message):
        _days(last, epochs)


@pytest.mark.slow
@given(
    st.one_of(st.just(""), st.text(max_size=20)),
    st.one_of(st.text(max_size=30), st.from_regex(r"[0-9T:.,Z+-]{0,30}", fullmatch=True)),
)
@example("", "9999-12-31")
@example("", "0001-01-01..9999-12-31")
@example("", "٣")
def test_any_text_names_epochs_or_is_refused(last: str, epochs: str) -> None:
    selection, error_text = [], ""
    try:
        selection = select_epochs(EpochRange(last, epochs), DAYS, "day", NOW)
    except BadParameter as error:
        error_text = str(error)
    assert len(error_text) < 400
    assert set(selection) <= set(DAYS)
    assert selection == sorted(selection)
