"""The demo's table of answers beside the truth."""

import pytest

from hubbub.cli.commands.simulate import miss_text
from hubbub.cli.demo_questions import interval_text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (9756.2, 9839.6, "! 9,757 to 9,839"),
        (9840.3, 9900.0, "! 9,841 to 9,900"),
        (9756.2, 9840.0, "9,757 to 9,840"),
        (9839.6, 9900.4, "9,840 to 9,900"),
    ],
)
def test_the_demo_marks_a_printed_interval_that_misses_the_truth(
    low: float, high: float, text: str
) -> None:
    assert interval_text({"true": 9840, "low": low, "high": high}) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (9756.2, 9839.4, "misses"),
        (9840.6, 9900.0, "misses"),
        (9756.2, 9839.6, "misses by 0.4"),
        (9756.2, 9840.0, ""),
    ],
)
def test_a_miss_that_rounding_hides_has_its_size(low: float, high: float, text: str) -> None:
    assert miss_text(9840, low, high, ",.0f") == text
