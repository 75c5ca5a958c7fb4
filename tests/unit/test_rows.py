"""A new field of a value is in the rows of every face, since they are made in one place."""

import json
from typing import Any, get_args

import pytest

from hubbub.aggregator.exported_files import to_csv
from hubbub.conservation import TERMS
from hubbub.notebook import Answer
from hubbub.query_results import answer_table
from hubbub.query_results.answer_table import COLUMNS, QueryName, cell, columns_of, rows, title

VALUE = {"value": "dark", "estimate": 9.0, "low": 8.0, "high": 10.0, "median": 7.25}
EPOCHS = {"metric": "theme", "dates": "2026-11-01", "since": "", "until": "", "final": True}
METHOD = {"reports": 30, "mechanism": "grr", "epsilon": 1.0, "confidence": 0.95, "unit": ""}
HEAD: dict[str, Any] = {**EPOCHS, **METHOD}
"""What most answers say of all of their rows."""
PERCENTILE = {
    "percentile": 95.0,
    "estimate": 9.0,
    "low": 8.0,
    "high": 10.0,
    "reaches": "",
    "median": 7.25,
}
ASSOCIATION: dict[str, Any] = {
    "p_value": 1.0,
    "cramers_v": None,
    "low": 0.0,
    "high": 1.0,
    "rare_rows": [],
    "rare_columns": [],
}
SIDES = {"before_dates": "2026-11-01", "after_dates": "2026-11-02"}
ALL: dict[Any, dict[str, Any]] = {
    "estimates": {**HEAD, "reports_stderr": 0.0, "values": [VALUE]},
    "percentiles": {**HEAD, "unit": "s", "percentiles": [PERCENTILE], "below": []},
    "top": {
        **HEAD,
        "set_confidence": 1.0,
        "order_confidence": 1.0,
        "values": [{"value": VALUE, "ahead_confidence": None}],
    },
    "compare": {**HEAD, **SIDES, "before_reports": 30, "after_reports": 30, "values": [VALUE]},
    "trend": {
        **HEAD,
        "kind": "values",
        "epochs": [{"epoch": 7, "date": "2026-11-01", "begins": "2026-11-01", "reports": 30}],
        "series": [{"value": "dark", "points": [{"epoch": 7, "share": 0.3, "median": 7.25}]}],
    },
    "cross": {
        **HEAD,
        "rows": "country",
        "columns": "theme",
        "by": "",
        "slices": [],
        "association": ASSOCIATION,
        "values": [VALUE],
    },
    "breakdown": {**HEAD, "by": "os", "values": [VALUE]},
    "figures": {**HEAD, "kind": "funnel", "by": "", "values": [VALUE], "notes": []},
    "experiment": {
        **HEAD,
        "experiment": "new_menu",
        "control": "old",
        "ratio_p_value": 1.0,
        "verdict": "too early to tell",
        "values": [VALUE],
    },
    "model": {
        **HEAD,
        "model": "churn",
        "kind": "logistic",
        "rounds": 1,
        "coefficients": [{"name": "days", "coefficient": 0.5, "median": 7.25}],
    },
    "status": {"total": {}, "windows": [{"stream": "theme", "epoch": 7, "median": 7.25}]},
    "metrics": {"total": 1, "metrics": [{"name": "theme", "median": 7.25, "tiers": [1.0]}]},
}


@pytest.mark.parametrize("question", get_args(QueryName))
def test_a_field_without_a_declaration_is_in_every_format(question: QueryName) -> None:
    """`median` is no field today."""
    answer = ALL[question]
    [row] = rows(question, answer)
    assert row["median"] == 7.25
    [alone] = answer_table.whole_rows(question, answer)
    assert alone["median"] == 7.25
    assert "median" in to_csv([alone]).splitlines()[0].split(",")
    assert json.loads(json.dumps(Answer(question, {"findings": [], **answer})[0]))["median"] == 7.25


def test_every_question_has_its_columns() -> None:
    assert answer_table._TABLES.keys() == COLUMNS.keys() == set(get_args(QueryName))
    units = {column.unit for columns in COLUMNS.values() for column in columns}
    assert units <= set(get_args(answer_table.Unit))
    names = [column.field for column in COLUMNS["status"] if column.unit == "count"]
    assert tuple(names) == TERMS


def test_table_cells_mark_unknown_numbers_and_omit_inapplicable_ones() -> None:
    answer = {"kind": "values", "confidence": 0.999}
    heads = [title(column, "estimates", answer) for column in columns_of("estimates", answer)]
    assert "99.9% interval" in heads
    means = {**answer, "kind": "mean"}
    assert not {"share", "rank", "detected"} & {
        column.field for column in columns_of("estimates", means)
    }
    row = {"waiting": None, "updated": None, "ahead_confidence": None, "balanced": None}
    texts = {
        column.field: cell(column, row, of_means=False)
        for question in ("metrics", "top", "status")
        for column in COLUMNS[question]
        if column.field in row
    }
    assert texts == {
        "waiting": "?",
        "updated": "never",
        "ahead_confidence": "",
        "balanced": "?",
    }


@pytest.mark.parametrize("question", ["estimates", "top", "trend"])
def test_a_single_row_shows_whether_it_may_still_change(question: QueryName) -> None:
    for final in (True, False):
        [alone] = answer_table.whole_rows(question, {**ALL[question], "final": final})
        assert alone["final"] is final


@pytest.mark.parametrize("question", ["compare", "breakdown"])
def test_a_p_value_is_described_as_that_of_its_row_alone(
    question: QueryName,
) -> None:
    [column] = [column for column in COLUMNS[question] if column.field == "p_value"]
    assert "single row" in column.title
    assert "for this single row" in column.meaning


@pytest.mark.parametrize(("field", "text"), [("estimate", "0"), ("share", "0.0%")])
def test_a_number_that_rounds_to_zero_has_no_sign(field: str, text: str) -> None:
    [column] = [column for column in COLUMNS["estimates"] if column.field == field]
    assert cell(column, {field: -0.0004}, of_means=False) == text
