"""Local mode: a person sees their own counts; nothing is drawn, spent or sent."""

from pathlib import Path
from typing import Any

import pytest

from hubbub.catalog.payload_meanings import label_of
from hubbub.client import Client, FolderState, Outcome, State
from hubbub.client.testing import FakeShuffler
from tests.support.bundles import Signed
from tests.support.catalogs import catalog_of, catalog_toml, metric_toml


def counting(signed: Signed, state: State, shuffler: FakeShuffler | None = None) -> Client:
    transport = shuffler or FakeShuffler()
    return Client(signed.bundle, state, transport, hold_seconds=None, local=True)


def test_a_person_sees_their_counts_and_nothing_is_drawn_or_sent(
    signed: Signed, state: State
) -> None:
    shuffler = FakeShuffler()
    client = counting(signed, state, shuffler)
    outcomes = {client.report("theme", value) for value in ["dark", "light", "dark"]}
    assert outcomes == {Outcome.COUNTED}
    assert client.flush()
    view = client.ledger()
    assert view.own_counts == {"theme": {"dark": 2, "light": 1}}
    assert (view.payloads, shuffler.reports(), client.waiting, client.dropped) == ((), [], 0, {})
    assert not any(metric.spent for metric in view.metrics)
    assert not view.counts, "what is shown beside it, and by the doctor, holds no value"


def test_local_counts_survive_the_program_and_add_up(signed: Signed, tmp_path: Path) -> None:
    for _ in range(2):
        with counting(signed, FolderState(tmp_path)) as client:
            client.report("theme", "dark")
    assert counting(signed, FolderState(tmp_path)).ledger().own_counts == {"theme": {"dark": 2}}


def test_local_mode_keeps_waiting_reports_and_never_sends_its_counts(
    signed: Signed, tmp_path: Path
) -> None:
    shuffler = FakeShuffler()
    sending = Client(signed.bundle, FolderState(tmp_path), FakeShuffler(), hold_seconds=None)
    sending.report("theme", "dark")
    sending.close(timeout=0)
    with counting(signed, FolderState(tmp_path), shuffler) as client:
        client.report("homepage", "a.example")
        assert not client.flush(), "a report of another run waits"
    assert shuffler.reports() == []
    assert Client(signed.bundle, FolderState(tmp_path), shuffler, hold_seconds=None).flush()
    assert [report.stream for report in shuffler.reports()] == ["theme"]


def test_an_opt_out_ends_local_counting_and_forgetting_deletes_the_counts(
    signed: Signed, state: State
) -> None:
    client = counting(signed, state)
    client.report("theme", "dark")
    client.flush()
    client.disable()
    assert client.report("theme", "dark") is Outcome.DISABLED
    assert client.ledger().own_counts == {"theme": {"dark": 1}}
    client.disable(forget=True)
    client.enable()
    assert client.report("theme", "light") is Outcome.COUNTED
    assert client.ledger().own_counts == {"theme": {"light": 1}}


def test_local_mode_keeps_the_most_frequent_of_too_many_values(tmp_path: Path) -> None:
    state = FolderState(tmp_path)
    state.count({f"homepage: {number}": number for number in range(1, 1500)})
    state.count({"homepage: first": 5000})
    counts = state.device_state().counts
    assert len(counts) <= 1001
    assert counts["homepage: first"] == 5000
    assert "homepage: 1" not in counts


@pytest.mark.parametrize(
    ("definition", "value", "label"),
    [
        ('values = ["a", "b"]', "b", "b"),
        ('kind = "boolean"', True, "true"),
        ('kind = "duration"\nunit = "s"\nedges = [0, 1, 10]', 3, "1 s or more"),
        ('mechanism = "mean.piecewise"\ndomain = "number"\nlow = 0\nhigh = 80', 41.5, "40 to 50"),
        ('mechanism = "mean.piecewise"\ndomain = "number"\nlow = 0\nhigh = 80', 80, "70 to 80"),
        ('kind = "set"\nvalues = ["a", "b", "c"]\nmost = 3', ["c", "a"], "a, c"),
        ('kind = "set"\nvalues = ["a", "b", "c"]\nmost = 3', [], "none"),
    ],
)
def test_local_mode_counts_a_value_by_its_label(definition: str, value: Any, label: str) -> None:
    mechanism = "" if "mechanism" in definition else 'mechanism = "auto"\nreports = 1000\n'
    text = catalog_toml(metric_toml("m", mechanism + definition, epsilon=1.0))
    metric = catalog_of(text).metrics["m"]
    assert label_of(metric, metric.code(value)) == label
