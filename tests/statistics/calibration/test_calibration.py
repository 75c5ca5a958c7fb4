"""What answers say of themselves holds as often as they say; and no statement goes untried.

Fixed seeds. A claim is given 4.9 of its own standard errors, so that a true one fails once in a
million. `make bench ARGS=calibration` makes many times as many runs, and prints the table.
"""

import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hubbub.aggregator.query.answer_types import (
    Compared,
    Crossed,
    Estimated,
    Shuffled,
    TopList,
)
from hubbub.aggregator.query.breakdowns import BrokenDown, PartRow
from hubbub.aggregator.query.experiments import EffectRow, Experimented
from hubbub.aggregator.query.funnel_and_retention_totals import Figured
from hubbub.aggregator.query.trends import Point, Series, Shift, Trended
from hubbub.analysis.answer import Twins, ValueAnswer
from hubbub.analysis.comparisons.association import Association
from hubbub.analysis.comparisons.change import Change
from hubbub.analysis.comparisons.cross_tables import Cell, Slice
from hubbub.analysis.comparisons.order_confidence import TopValue
from hubbub.analysis.funnels_retention_and_rates import Figure
from hubbub.analysis.percentiles import Percentile, PercentileShift, ShareBelow
from hubbub.analysis.strings.likely_strings import LikelyString
from hubbub.analysis.value_estimates import Mean
from hubbub.privacy.central_releases import Released
from tests.statistics.calibration import SETTINGS
from tests.statistics.calibration.statement import Counted, Setting, Statement, measure, mistake

ERRORS = 4.9
# A quarter, a half or three quarters of the runs are enough where every statement holds up to so
# many of its standard errors of so many. Of defects that all runs notice, this misses one in 25: a
# rate 4.9 standard errors of all runs short is by then 2.45, 3.46 and 4.24 short, give or take .87,
# .71 and .5.
CLEAR = (0.7, 1.9, 3.1)
TESTS = Path(__file__).parents[2]

# Proven exactly, on the shipping code, rather than simulated: by these tests.
PROVEN = {
    "EffectRow.reaches": "test_an_effect_on_a_percentile_beyond_the_range_is_uncertain",
    "Shuffled.epsilon": "test_no_shuffle_of_real_reports_reveals_more_than_proven",
    "Shuffled.delta": "test_no_shuffle_of_real_reports_reveals_more_than_proven",
    "Twins.values": "test_strings_that_set_the_same_bits_are_named_together",
    "Estimated.reports_stderr": ("test_every_interface_marks_an_estimated_number_of_reports"),
    "Estimated.beginnings": "test_long_strings_are_found_by_their_beginning_and_marked",
    "Estimated.likely": "test_the_share_of_false_strings_is_within_the_accepted_one",
    "LikelyString.doubt": "test_the_share_of_false_strings_is_within_the_accepted_one",
    "LikelyString.high": "test_likely_strings_begin_with_the_surest_and_no_high_is_too_low",
    "Slice.share": "test_three_parts_are_the_same_from_every_face_and_near_the_truth",
    "Released.noise": "test_the_noise_has_the_scale_that_theory_asks_for",
    **dict.fromkeys(
        (f"Cell.{name}" for name in ("estimate", "stderr", "low", "high", "share")),
        "test_a_cross_table_is_the_same_on_every_interface_and_finds_the_association",
    ),
    **dict.fromkeys(
        (
            "Cell.within",
            "Cell.within_low",
            "Cell.within_high",
            "Association.cramers_v",
            "Association.low",
            "Association.high",
        ),
        "test_census_tables_are_as_near_as_they_were_measured_and_intervals_hold",
    ),
    **dict.fromkeys(
        ("Cell.score", "Cell.departs", "Association.p_value"),
        "test_independent_parts_are_recognized_as_often_as_stated",
    ),
}
# Statements about what was asked or counted, and not about what is unsure.
COUNTED = {
    "experiment",
    "control",
    "over",
    "verdict",
    "sizes",  # what `arms` and `ratio_p_value` have, in words
    "arms",
    "arm",
    "measure",
    "of_share",
    "unanswered",
    "metric",
    "description",
    "epochs",
    "since",
    "until",
    "final",
    "updated",
    "reports",
    "waiting",
    "withheld",
    "mechanism",
    "epsilon",
    "shuffled",
    "kind",
    "confidence",
    "total",
    "values",
    "value",
    "whose",
    "before_epochs",
    "after_epochs",
    "before_reports",
    "epoch",
    "after_reports",
    "assumption",
    "series",
    "points",
    "min_batch",
    "twins",
    "date",
    "dates",
    "before_dates",
    "after_dates",
    "lists",
    "promised",
    "rests_on",
    "unit",
    "folded",
    "lowest",
    "highest",
    "notes",
    "rows",
    "columns",
    "row",
    "column",
    "association",
    "notice",
    "rare_rows",
    "rare_columns",
    "joined",
    "not_asked",
    "anytime",
    "chosen",
    "parts",
    "part",
    "by",
    "slice",
    "slices",
    "edges",
    "figure",
    "figures",
    "note",
}
ANSWERS: list[Any] = [
    Estimated,
    ValueAnswer,
    Mean,
    Twins,
    Shuffled,
    TopList,
    TopValue,
    Compared,
    Change,
    Trended,
    Series,
    Shift,
    Point,
    Released,
    Crossed,
    Cell,
    Association,
    BrokenDown,
    PartRow,
    Experimented,
    EffectRow,
    Figured,
    Figure,
    Slice,
    LikelyString,
    Percentile,
    PercentileShift,
    ShareBelow,
]


# Together they make every statement, in the least time, and percentiles near an end of the range:
# `make test` runs these alone, and of so many drawings: what holds in four of five, and says 95%,
# is noticed.
DRAWINGS = 60
QUICKEST = {
    "conversions, grr 1, 3,000 devices",
    "a count released, rr 4 and 0.5, 20% at the smaller",
    "effect, as large as is detectable",
    "effect, rr 1, alike, new people",
    "flat, 60 days, 100,000 people once, epsilon 1",
    "grr 1, six values near each other",
    "grr 10, 4 values, 80 and 80 reports, 50% to 78%",
    "grr 4, 8 values in 3 parts, all alike",
    "grr 8, 3 values, 1600 reports of a hidden number, 98%",
    "grr 8, 8 values, 300 reports, 60% hold the first",
    "long.unary, 20,000 devices",
    "mean.one_bit 1, 5,000 reports",
    "mean.piecewise 16, 64 steps, 200 reports, noise dummies of a fixed sum",
    "mean.piecewise 4 and 0.5, 20% at the smaller",
    "p99, unary.oue 1, 64 parts, 2,000 reports, all first",
    "p99, wave 2, 32 parts, 300 reports, all first",
    "percentiles, grr 6, 64 parts, 1,000 reports, heavy-tailed",
    "percentiles, wave 1, 32 parts, 1,000 reports, spiky",
    "projective 2, 8 values, 20,000 reports",
    "rappor 32 x 64, all 100 listed, 1 epochs",
    "rr 2, 2 values in 3 parts, one differs",
    "rr 8 and 1, 50% at the smaller, 50% hold it",
    "stepping, 60 days, 1,000,000 people once, epsilon 2",
    "unary.oue 1, 128 even values, 2 epochs",
    "unary.oue 2, 1 sure beside 10 absent",
    "unary.oue 8, 16 values, 100 reports, 1 sure",
    "vectors of 3, epsilon 8, 16 books, 500 alike",
    "wave 1, 1,000 reports, all in one range",
}


def _case(setting: Setting) -> Any:
    marks = () if setting.name in QUICKEST else pytest.mark.thorough
    return pytest.param(setting, id=setting.name, marks=marks)


def test_the_quickest_settings_are_settings() -> None:
    assert {setting.name for setting in SETTINGS} >= QUICKEST


@pytest.mark.parametrize("setting", [_case(setting) for setting in SETTINGS])
def test_every_statement_of_an_answer_holds_as_often_as_it_claims(setting: Setting) -> None:
    answer_fields = set(_unsure_fields())
    if setting.name in QUICKEST:
        results = measure(setting, min(setting.runs, DRAWINGS))
    else:
        results = measure(setting, setting.runs, clear=CLEAR)
    for result in results:
        assert set(result.statement.fields) <= answer_fields, "a row for what no answer says"
        assert result.holds(ERRORS), result


def _unsure_fields() -> Iterator[str]:
    """Every field of an answer that says something unsure."""
    for kind in ANSWERS:
        for field in fields(kind):
            name = f"{kind.__name__}.{field.name}"
            if field.name not in COUNTED or name in PROVEN:
                yield name


def test_every_statement_of_an_answer_has_a_calibration() -> None:
    """Every figure of an answer has a row in a setting that `make test` runs, or a proof."""
    tried = {
        field
        for setting in SETTINGS
        if setting.name in QUICKEST
        for result in measure(setting, 1)
        for field in result.statement.fields
    }
    assert set(_unsure_fields()) - tried - set(PROVEN) == set()
    text = "\n".join(path.read_text() for path in TESTS.rglob("test_*.py"))
    test_names = set(re.findall(r"def (test_\w+)", text))
    assert set(PROVEN.values()) - test_names == set()


def test_a_statement_that_is_false_is_noticed() -> None:
    """Intervals that hold in 8 of 10 runs and say 95%; a mistake in 2 of 10 that says 5%."""
    holds, errs = Statement("holds", 0.95, ()), mistake("errs", 0.05, ())

    def false_statement(chance: np.random.Generator) -> Iterator[Counted]:
        yield holds, chance.random() < 0.8, 1
        yield errs, chance.random() < 0.2, 1

    for result in measure(Setting("made up", 200, false_statement), 200, clear=CLEAR):
        assert not result.holds(ERRORS)
