"""Numbers in a metric's own unit, as text."""

from math import inf, nan

import pytest

from hubbub.query_results.answer_table import COLUMNS, End, cell, number_text


@pytest.mark.parametrize(
    ("number", "error", "text"),
    [
        (123_456.78, 3.2, "123,456.8"),
        (123_456.78, 340.0, "123,457"),
        (1_700_000_123.4, 4.0, "1,700,000,123.4"),
        (0.0123456, 0.00012, "0.01235"),
        (0.0, 0.5, "0.00"),
        (-3.456, 0.012, "-3.456"),
        (123_456.0, 0.0, "123,456"),
        (5.25, 0.0, "5.25"),
        (0.0, 0.0, "0"),
        (1e20, 1.0, "1e+20"),
        (inf, 1.0, "inf"),
        (1.5, nan, "1.5"),
    ],
)
def test_a_number_has_the_digits_that_its_error_leaves(
    number: float, error: float, text: str
) -> None:
    """Five digits alone would write 123,456.8 as 1.2346e+05, and both ends of an interval alike."""
    assert number_text(number, error) == text


def test_both_ends_of_a_large_means_interval_print_differently() -> None:
    [ends] = [column for column in COLUMNS["estimates"] if column.to and "low" in column.fields]
    row = {"estimate": 123_456.7, "stderr": 1.6, "low": 123_453.6, "high": 123_459.8}
    assert cell(ends, row, of_means=True) == "123,453.6 to 123,459.8"
    assert cell(ends, row, of_means=False) == "123,454 to 123,460"


def test_reports_are_whole_numbers_unless_their_error_is_less_than_one() -> None:
    row = {"estimate": 122.08, "stderr": 0.41, "low": 121.23, "high": 123.57}
    columns = {column.field: column for column in COLUMNS["estimates"]}
    texts = [cell(columns[field], row, of_means=False) for field in ("estimate", "stderr", "low")]
    assert texts == ["122.08", "0.41", "121.23 to 123.57"]
    assert cell(columns["stderr"], {**row, "stderr": 1.4}, of_means=False) == "1"
    assert cell(columns["stderr"], {**row, "stderr": 0.0}, of_means=False) == "0"


ENDS: list[tuple[float, float, End, str]] = [
    (3.3333, 0.4, "low", "3.33"),
    (3.3333, 0.4, "high", "3.34"),
    (-3.3333, 0.4, "low", "-3.34"),
    (-3.3333, 0.4, "high", "-3.33"),
    (-0.001, 0.5, "high", "-0.0010"),
    (0.009, 0.105, "low", "0.0090"),
    (27.65625, 0.0, "low", "27.65625"),
    (27.65625, 0.0, "high", "27.65625"),
    (0.1 + 0.2, 0.0, "high", "0.3"),
    (7.5, 0.0, "high", "7.5"),
    (12.0, 3.0, "low", "12.0"),
]


@pytest.mark.parametrize(("number", "error", "end", "text"), ENDS)
def test_an_end_of_an_interval_is_rounded_outwards(
    number: float, error: float, end: End, text: str
) -> None:
    assert number_text(number, error, end=end) == text


def test_the_trend_of_a_percentile_shows_whole_intervals() -> None:
    [ends] = [column for column in COLUMNS["trend"] if column.fields == ("low", "high")]
    row = {"share": 8.1, "stderr": 1.19, "low": 5.859375, "high": 10.546875}
    assert cell(ends, row, of_means=True) == "5.8 to 10.6"


def test_a_percentile_has_the_digits_that_its_interval_leaves_and_the_ends_have_all() -> None:
    columns = {column.field: column for column in COLUMNS["percentiles"]}
    row = {"number": 726.54, "number_low": 312.5, "number_high": 1500.0}
    texts = [cell(columns[field], row, of_means=False) for field in ("number", "number_low")]
    assert texts == ["727", "312.5 to 1,500"]


def test_a_change_that_rounds_to_zero_has_no_minus() -> None:
    [change] = [column for column in COLUMNS["compare"] if column.field == "difference"]
    assert cell(change, {"difference": -0.00001}, of_means=False) == "+0.00"
