"""A central promise from the app to the estimate: an epoch leaves whole, and every face says so."""

import json
from collections.abc import Iterator
from math import sqrt

import pytest

from hubbub.accounting import balances, sum_terms
from hubbub.cli.commands.demo import close_epochs
from hubbub.cli.local.devices import send_everyone
from hubbub.cli.local.local_run import LocalRun, Ports
from hubbub.cli.main import main
from hubbub.cli.terminal.service_client import report_counts
from hubbub.mechanisms import build
from hubbub.privacy.crowd import read_planned
from tests.support.asking import estimate
from tests.support.moment import far_from_midnight
from tests.support.waiting import eventually

METRIC = """
[metrics.{name}]
description = "Asked in a crowd"
owner = "tests@example.org"
expires = 2099-12-31
epoch = "day"
mechanism = "auto"
values = ["red", "green", "blue"]
central_epsilon = 1.0
crowd = {crowd}
honest = 1.0
limits = {{ reports_per_epoch = 1, lifetime_epsilon = 500.0 }}
"""
PEOPLE = 700


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRun]:
    far_from_midnight()
    folder = tmp_path_factory.mktemp("crowd")
    path = folder / "metrics.toml"
    metrics = METRIC.format(name="met", crowd=600) + METRIC.format(name="missed", crowd=800)
    path.write_text(f'shuffler = "127.0.0.1:1"\n{metrics}')
    with LocalRun(folder / "home", read_planned(path), Ports.free()) as running:
        value = ["red" if n % 4 else "blue" for n in range(PEOPLE)]
        everyone = [{"met": value[n], "missed": value[n]} for n in range(PEOPLE)]
        sent = send_everyone(everyone, running.bundle_path, lambda _: None)
        assert sent.acknowledged == 2 * PEOPLE
        assert sum_terms(report_counts(running.endpoints).values())["pooled"] == 2 * PEOPLE
        close_epochs(running.shuffler_redis)

        def all_have_left() -> bool:
            terms = sum_terms(report_counts(running.endpoints).values())
            return terms["pooled"] + terms["in_flight"] == 0

        eventually(all_have_left)
        yield running


def test_what_met_its_crowd_is_counted_whole_and_the_rest_is_withheld(run: LocalRun) -> None:
    counts = report_counts(run.endpoints)
    assert all(map(balances, counts.values()))
    of = {stream: terms for (stream, _), terms in counts.items()}
    assert (of["met"]["counted"], of["met"]["withheld"]) == (PEOPLE, 0)
    assert (of["missed"]["counted"], of["missed"]["withheld"]) == (0, PEOPLE)


def test_an_answer_tells_its_central_epsilon_and_what_it_rests_on(
    run: LocalRun, capsys: pytest.CaptureFixture[str]
) -> None:
    found = estimate(run.endpoints, "met")
    values = {value.value: value.estimate for value in found.values}
    mechanism = build("grr", epsilon=found.epsilon, categories=3)
    for name, true in (("red", 525), ("blue", 175), ("green", 0)):
        assert abs(values[name] - true) <= 5.2 * sqrt(mechanism.variance(true, PEOPLE))
    assert found.epsilon > 2
    assert 0.5 < found.shuffled.epsilon <= 1.0
    assert found.shuffled.reports == PEOPLE
    assert "lets the crowd leave whole" in found.shuffled.assumption
    assert main(["query", "met", "--home", str(run.home)]) == 0
    assert "if it does collude, a report says epsilon" in capsys.readouterr().out
    assert main(["query", "met", "--home", str(run.home), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["shuffled"]["epsilon"] == found.shuffled.epsilon
