"""Booleans, counts, durations, sizes and ranges: what is reported, and what is refused."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from enum import Enum, IntEnum, auto
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hubbub.aggregator.query.estimating import AnswerPlan
from hubbub.aggregator.query.metric_answer import notes
from hubbub.analysis.answer import Answer, ValueAnswer
from hubbub.catalog import Metric
from hubbub.catalog.discovery import spoken
from hubbub.catalog.values.value_kind_registry import kind_named
from hubbub.client import Outcome
from hubbub.client.testing import FakeClock, FakeShuffler
from hubbub.errors import BadParameter, CatalogInvalid, ValueOutOfDomain
from hubbub.fields.kinds import edges_of
from tests.support.bundles import DAY, make_signed
from tests.support.catalogs import catalog_of, catalog_toml, metric_toml
from tests.support.devices import idle_client

KINDS = {
    "seen": 'kind = "boolean"',
    "tabs": 'kind = "count"\nedges = [0, 1, 2, 5, 10]',
    "many": 'kind = "count"\nedges = { from = 1, to = 1000, parts = 9 }',
    "wait": 'kind = "duration"\nunit = "ms"\nedges = [10, 100, 1000]',
    "strict": 'kind = "duration"\nunit = "s"\noutside = "refuse"\nedges = [0, 1, 60]',
    "file": 'kind = "size"\nunit = "MiB"\nlow = 0\nhigh = 64',
    "load": 'kind = "number"\nlow = 0\nhigh = 1\noutside = "refuse"',
    "editor": 'values = ["vi", "emacs"]\nother = true',
    "plain": 'values = ["vi", "emacs", "other"]',
}


def metric_of(name: str, kind_lines: str) -> str:
    fields = {"reports": 10_000, "epsilon": 1.0, "min_batch": 20, "reports_per_epoch": 9}
    return metric_toml(name, kind_lines, mechanism="auto", **fields)


CATALOG = catalog_toml(*(metric_of(name, kind_lines) for name, kind_lines in KINDS.items()))


class Editor(Enum):
    """Values are what the catalog lists, or no text."""

    VI = "vi"
    EMACS = "emacs"
    NANO = "nano"


class Named(Enum):
    """Names are what the catalog lists."""

    vi = auto()
    emacs = auto()


class Worded(str, Enum):  # noqa: UP042 as programs of before 3.11 have it
    """A text itself."""

    VI = "vi"


class Tabs(Enum):
    """Numbers."""

    FOUR = 4


class IntTabs(IntEnum):
    """Numbers themselves."""

    FOUR = 4


@pytest.fixture(scope="module")
def metrics(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Metric]:
    """Those that were signed, and read again."""
    signed = make_signed(tmp_path_factory.mktemp("kinds"), CATALOG, start=20_000 * DAY)
    return dict(signed.bundle.metrics)


def test_every_kind_becomes_values_of_a_mechanism(metrics: dict[str, Metric]) -> None:
    assert metrics["seen"].values == ("false", "true")
    assert metrics["tabs"].values == ("0", "1", "2 to 4", "5 or more")
    assert metrics["wait"].values == ("below 100 ms", "100 ms or more")
    assert metrics["strict"].values == ("0 to 1 s", "1 to 60 s")
    assert metrics["editor"].values == ("vi", "emacs", "other")
    many = metrics["many"].edges
    assert [*many] == [1, 2, 5, 10, 22, 46, 100, 215, 464, 1000]
    assert metrics["file"].values is None
    assert metrics["file"].mechanism.startswith("mean.")
    assert all(metric.choice for metric in metrics.values())


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("seen", True, 1),
        ("tabs", 0, 0),
        ("tabs", -3, 0),
        ("tabs", 4, 2),
        ("tabs", 5, 3),
        ("tabs", 10**30, 3),
        ("wait", timedelta(seconds=2), 1),
        ("wait", timedelta(microseconds=99_999), 0),
        ("wait", timedelta(microseconds=100_000), 1),
        ("wait", 100, 1),
        ("wait", "100 ms or more", 1),
        ("strict", 60, 1),
        ("strict", timedelta(minutes=1), 1),
        ("file", 1e9, 64.0),
        ("file", -1, 0.0),
        ("file", 1.5, 1.5),
        ("file", "1.5 MiB", 1.5),
        ("file", "512KiB", 0.5),
        ("file", "1048576 B", 1.0),
        ("file", "2 GB", 64.0),
        ("load", 0.25, 0.25),
        ("editor", "nano", 2),
        ("editor", "vi", 0),
        ("seen", np.True_, 1),
        ("tabs", np.int64(4), 2),
        ("file", np.float32(1.5), 1.5),
        ("load", np.float16(0.25), 0.25),
        ("tabs", 4.0, 2),
        ("tabs", np.float64(4.0), 2),
        ("tabs", np.float32(4), 2),
        ("tabs", Decimal(4), 2),
        ("tabs", Decimal("4.000"), 2),
        ("tabs", Fraction(8, 2), 2),
        ("tabs", Decimal("1e300"), 3),
        ("tabs", Tabs.FOUR, 2),
        ("tabs", IntTabs.FOUR, 2),
        ("load", Decimal("0.25"), 0.25),
        ("load", Fraction(1, 4), 0.25),
        ("wait", np.timedelta64(100, "ms"), 1),
        ("wait", np.timedelta64(99_999, "us"), 0),
        ("wait", np.timedelta64(100_000_000, "ns"), 1),
        ("strict", np.timedelta64(1, "m"), 1),
        ("file", "2G", 64.0),
        ("file", "1500 kb", 1500 * 1000 / 2**20),
        ("file", "1 mib", 1.0),
        ("file", "1 Mi", 1.0),
        ("file", "1.5 M", 1.5 * 10**6 / 2**20),
        ("file", "1048576 b", 1.0),
        ("editor", Editor.VI, 0),
        ("editor", Editor.EMACS, 1),
        ("editor", Named.emacs, 1),
        ("editor", Worded.VI, 0),
        ("editor", Editor.NANO, 2),
    ],
)
def test_a_value_counts_in_its_bucket(
    metrics: dict[str, Metric], name: str, value: Any, code: float
) -> None:
    assert metrics[name].code(value) == code


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("seen", 1),
        ("tabs", 1.5),
        ("tabs", True),
        ("tabs", float("nan")),
        ("wait", float("nan")),
        ("wait", float("inf")),
        ("wait", "100"),
        ("wait", True),
        ("strict", 60.001),
        ("strict", timedelta(hours=1)),
        ("strict", -0.001),
        ("file", timedelta(1)),
        ("file", "12"),
        ("file", "12 mibs"),
        ("file", "12 XB"),
        ("file", "-1 MiB"),
        ("file", "1e3 MiB"),
        ("load", "1 MiB"),
        ("file", float("-inf")),
        ("load", 1.5),
        ("editor", 7),
        ("plain", "nano"),
        ("seen", np.int64(1)),
        ("seen", np.array([True])),
        ("tabs", np.array([1])),
        ("tabs", np.float32(2.5)),
        ("tabs", np.float64("inf")),
        ("tabs", Decimal("4.5")),
        ("tabs", Decimal("4.00000000000000000000000000001")),
        ("tabs", Fraction(9, 2)),
        ("tabs", Fraction(4 * 10**40 + 1, 10**40)),
        ("tabs", Decimal("NaN")),
        ("tabs", Decimal("sNaN")),
        ("file", Decimal("1e999999999")),
        ("wait", np.timedelta64(5)),
        ("wait", np.timedelta64(5, "M")),
        ("wait", np.timedelta64("NaT", "ns")),
        ("wait", np.datetime64("2026-11-22")),
        ("tabs", Editor.VI),
        ("plain", Editor.NANO),
        ("load", np.float32("nan")),
    ],
)
def test_a_value_of_another_kind_is_refused_and_not_shown(
    metrics: dict[str, Metric], name: str, value: Any
) -> None:
    with pytest.raises(ValueOutOfDomain) as caught:
        metrics[name].code(value)
    assert str(value) not in str(caught.value) or value in {1, 7}


def test_a_whole_number_that_no_float_holds_is_refused_with_the_largest_one(
    metrics: dict[str, Metric],
) -> None:
    with pytest.raises(ValueOutOfDomain, match=r"not a number, nor a timedelta; .* 1\.8e308$"):
        metrics["wait"].code(10**400)


@pytest.mark.parametrize(
    ("kind_lines", "field", "problem"),
    [
        ("edges = [0, 1, 2]", "edges", 'add kind = "number"'),
        ('kind = "boolean"\nvalues = ["a", "b"]', "values", "follows from the kind"),
        ('kind = "colour"', "kind", "must be one of boolean, count"),
        ('values = ["a", "b"]\npublic = ["os"]', "public", "write breakdown ="),
        ('kind = "funel"\nsteps = ["a", "b"]', "kind", 'retention; did you mean "funnel"?'),
        ('kind = "count"\nedges = [0, 1]', "edges", "must be a list of 3 to 257"),
        ('kind = "count"\nedges = [2, 1, 0]', "edges", "must ascend: write 0, 1, 2"),
        ('kind = "count"\nedges = { from = 0, to = 9, parts = 3 }', "edges", "above 0 also"),
        ('kind = "count"\nedges = [0, 0.5, 2]', "edges", "must be whole numbers"),
        ('kind = "size"\nedges = [0, 1, 2]', "unit", "for a size, one of B"),
        ('kind = "size"\nunit = "MB"\nlow = 0\nhigh = "9 MB"', "high", "unit gives its unit"),
        ('kind = "duration"\nunit = "y"\nlow = 0\nhigh = 1', "unit", "for a duration, one of us"),
        ('kind = "boolean"\noutside = "clamp"', "outside", "is only for numbers; leave it out"),
        ('kind = "count"', "high", "with auto, a number needs low and high"),
        ('kind = "boolean"\nother = true', "other", "is for listed values"),
        ('values = ["a", "b"]\noutside = "cut"', "outside", "must be one of clamp, refuse"),
    ],
)
def test_fields_that_a_kind_excludes_are_named(kind_lines: str, field: str, problem: str) -> None:
    with pytest.raises(CatalogInvalid) as caught:
        catalog_of(catalog_toml(metric_of("asked", kind_lines)))
    assert len(str(caught.value).splitlines()) == 1, caught.value
    assert f'field "{field}": ' in str(caught.value)
    assert problem in str(caught.value)


def test_strings_have_no_ends_to_count_at(metrics: dict[str, Metric]) -> None:
    sketch = {"mechanism": "cms", "parameters": {"hashes": 4, "width": 16}, "choice": None}
    for more in ({"outside": "clamp"}, {"kind": "number"}):
        plain = {"kind": "", "outside": "", "values": None, **more}
        with pytest.raises(BadParameter, match=r"outside: is only for numbers|has low and high"):
            replace(metrics["load"], **{**sketch, **plain})  # type: ignore[arg-type]


def test_growing_edges_end_at_their_given_end() -> None:
    assert edges_of({"from": 1, "to": 1000, "parts": 3}) == (1, 10, 100, 1000)
    assert edges_of({"from": 1, "to": 1.0001, "parts": 200}) == ()
    assert edges_of({"from": 1, "to": 2}) == edges_of([1, 2, float("nan")]) == edges_of("123") == ()


def test_refused_values_are_counted_and_never_sent(tmp_path: Path) -> None:
    signed = make_signed(tmp_path, CATALOG, start=20_000 * DAY)
    for strict in (True, False):
        shuffler = FakeShuffler()
        clock = FakeClock(20_000 * DAY + 1)
        with idle_client(signed.bundle, transport=shuffler, strict=strict, clock=clock) as client:
            for value in (61, timedelta(hours=1), "soon", None):
                if strict:
                    with pytest.raises(ValueOutOfDomain):
                        client.report("strict", value)
                else:
                    assert client.report("strict", value) is Outcome.NOT_A_VALUE
            assert client.report("strict", 1) is Outcome.QUEUED
            assert client.outcomes == {Outcome.NOT_A_VALUE: 4, Outcome.QUEUED: 1}
            assert client.flush()
            assert len(shuffler.reports()) == 1


def _answer(counts: Mapping[str, float], reports: int, span: tuple[float, float] | None) -> Answer:
    """Estimates of so many reports; with a span it is a mean's."""
    values = tuple(
        ValueAnswer(
            value=name,
            estimate=n,
            stderr=1.0,
            low=n,
            high=n,
            share=n / reports,
            rank=1,
            detected=None,
        )
        for name, n in counts.items()
    )
    return Answer(
        kind="mean" if span else "values",
        reports=reports,
        confidence=0.95,
        values=values,
        span=span,
    )


def test_an_answer_shows_the_share_at_each_end_of_the_range(metrics: dict[str, Metric]) -> None:
    tabs = metrics["tabs"]
    counts = dict(zip(tabs.values or (), (125.0, 500.0, 250.0, 125.0), strict=True))
    [note] = notes(AnswerPlan.of(tabs), _answer(counts, 1000, None))
    assert note == "Numbers above 10 are counted at that end: 5 or more 12.5%."
    [note, *_] = notes(AnswerPlan.of(metrics["file"]), _answer({}, 1000, (0.0, 64.0)))
    assert "0 to 64 MiB: others count as the nearer end" in note
    [note, *_] = notes(AnswerPlan.of(metrics["load"]), _answer({}, 1000, (0.0, 1.0)))
    assert "devices report no others" in note
    assert notes(AnswerPlan.of(metrics["strict"]), _answer({}, 1000, None)) == []


def test_an_empty_limit_of_a_share_is_refused_with_the_cause(metrics: dict[str, Metric]) -> None:
    def notes_at(share: float) -> list[str]:
        return notes(AnswerPlan.of(metrics["editor"]), _answer({"vi": 1, "emacs": share}, 1, None))

    assert notes_at(-0.01) == []
    [note] = notes_at(-0.157)
    assert note.startswith("A share below 0 or above 100% is no mistake")
    assert "in 1 report it was larger or smaller" in note
    outside = notes(AnswerPlan.of(metrics["file"]), _answer({"mean": -37.2}, 1, (0.0, 64.0)))
    assert outside[-1].startswith("A mean outside its range is no mistake")


def test_enum_members_are_accepted_in_sets_and_reported_as_texts() -> None:
    of_set: Any = SimpleNamespace(values=("vi", "emacs"), other=False)
    assert kind_named("set").code(of_set, {"vi": 0, "emacs": 1}, {Editor.VI, Named.emacs}) == 3
    metric = SimpleNamespace(name="editor", discover=0.5, values=("vi",))
    assert spoken(metric, Worded.VI) == "vi"
