"""A central promise from the app to the estimate: an epoch leaves whole, and every face says so."""

import re
from collections.abc import Iterator
from itertools import product
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.random import default_rng

from hubbub.aggregator.store.contract import WindowTotals
from hubbub.analysis.families import draw
from hubbub.authoring import read_with_promises
from hubbub.authoring.crowds.accountant import named_dummies
from hubbub.catalog import epoch_at
from hubbub.catalog.crowds.noise_dummies import value_noise
from hubbub.cli.commands.demo import close_epochs
from hubbub.cli.main import main
from hubbub.conservation import Window, balances
from hubbub.epochs import epoch_date
from hubbub.installation.local_run import LocalRun, Ports
from hubbub.mechanisms import build
from hubbub.mechanisms.probability import exp_at_most
from hubbub.sealing.dummy_laws import CountNoise
from hubbub.simulation.demo_history import Day, write_history
from hubbub.simulation.devices import send_everyone
from tests.support import web
from tests.support.asking import estimate
from tests.support.catalogs import catalog_toml, metric_toml
from tests.support.commands import document_of, output_of, refusal_of
from tests.support.crowds import crowd_of
from tests.support.law_terms import report_counts
from tests.support.mixing import pool_counts
from tests.support.moment import now
from tests.support.pasted_code import in_notebook, in_shell
from tests.support.waiting import eventually

pytestmark = pytest.mark.thorough

PEOPLE = 700
DUMMIES = 300
EACH = 1.5
HIDDEN = CountNoise.least(exp_at_most(0.5), 1e-8)
# Standard errors: of a value that nobody holds, and of a string by its own error, the least like a
# bell, more are passed once in 5e6 at most.
SIGMAS = 6
LISTED = 'mechanism = "auto"\nvalues = ["red", "green", "blue"]'
NUMBER = 'domain = "number"\nlow = 0\nhigh = 10'
OTHERS = {
    "sure": 'mechanism = "auto"\nvalues = ["true", "false"]',
    "size": f'mechanism = "auto"\n{NUMBER}',
    "level": f'mechanism = "auto"\n{NUMBER}\ndummies = "noise"',
    "spread": f'mechanism = "wave"\n{NUMBER}\nbuckets = 5',
    "word": 'mechanism = "auto"\ndomain = "string"',
    "profile": (
        'mechanism = "auto"\nways = 3\nparts = { a = ["x", "y"], b = ["x", "y"], c = ["n", "o"] }'
    ),
    "whole": (
        'mechanism = "auto"\ndummies = "noise"\n'
        'parts = { a = ["x", "y"], b = ["x", "y"], c = ["n", "o"], d = ["p", "q"] }'
    ),
    "scores": 'mechanism = "auto"\nkind = "vector"\ncoordinates = ["speed", "ease"]\nbooks = 64',
}
"""Other kinds: yes or no, a mean, parts of a range, any string, three parts, four, and a vector."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRun]:
    folder = tmp_path_factory.mktemp("crowd")
    path = folder / "metrics.toml"
    metrics = {
        "met": LISTED,
        "missed": LISTED,
        "padded": f"{LISTED}\ndummies = {DUMMIES}",
        "own": f"{LISTED}\ndummies_each = {EACH}",
        "hidden": f"{LISTED}\ndummies = {DUMMIES}\ncount_epsilon = 0.5",
        **OTHERS,
    }
    fields = {"central_epsilon": 1.0, "honest": 1.0, "lifetime_epsilon": 500.0}
    path.write_text(
        catalog_toml(
            *(
                metric_toml(name, more, crowd=800 if name == "missed" else 600, **fields)
                for name, more in metrics.items()
            )
        )
    )
    with LocalRun(folder / "home", read_with_promises(path), Ports.free()) as running:
        value = ["red" if n % 4 else "blue" for n in range(PEOPLE)]
        everyone: list[dict[str, Any]] = [
            {
                "met": value[n],
                "missed": value[n],
                "padded": value[n],
                "own": value[n],
                "hidden": value[n],
                "sure": n % 4 == 0,
                "size": n % 7,
                "level": n % 7,
                "spread": n % 7,
                "word": f"once {n}" if n % 4 else "often",
                "profile": {"a": "xy"[n % 4 > 0], "b": "xy"[n % 4 > 0], "c": "no"[n % 2]},
                "whole": {"a": "xy"[n % 4 > 0], "b": "xy"[n % 4 > 0], "c": "no"[n % 2], "d": "p"},
                "scores": [0.6, -0.8] if n % 4 else [0.0, 0.5],
            }
            for n in range(PEOPLE)
        ]
        sent = send_everyone(everyone, running.bundle_path, lambda _: None)
        assert sent.acknowledged == 13 * PEOPLE
        pooled = pool_counts(running.shuffler_redis)
        secret = ("hidden", "whole", "level")
        total = sum(t["pooled"] for w, t in pooled.items() if w.stream not in secret) - 10 * PEOPLE
        assert abs(total - EACH * PEOPLE) <= 5.5 * sqrt(PEOPLE) / 2, "by each device's own coin"
        close_epochs(running.shuffler_redis)

        def all_have_left() -> bool:
            every = pool_counts(running.shuffler_redis).values()
            return not any(terms["pooled"] + terms["in_flight"] for terms in every)

        eventually(all_have_left)
        yield running


def test_a_metric_with_a_full_crowd_is_counted_and_the_other_is_withheld(run: LocalRun) -> None:
    counts = report_counts(run.endpoints)
    assert all(map(balances, counts.values()))
    of = {stream: terms for (stream, _), terms in counts.items()}
    assert (of["met"]["counted"], of["met"]["withheld"]) == (PEOPLE, 0)
    assert (of["missed"]["counted"], of["missed"]["withheld"]) == (0, PEOPLE)


def test_dummies_leave_with_the_crowd_and_no_answer_counts_them(
    run: LocalRun, capsys: pytest.CaptureFixture[str]
) -> None:
    [terms] = [t for (stream, _), t in report_counts(run.endpoints).items() if stream == "padded"]
    assert balances(terms)
    assert (terms["acknowledged"], terms["dummies"]) == (PEOPLE, DUMMIES)
    assert terms["counted"] == PEOPLE + DUMMIES
    estimates, alone = estimate(run.endpoints, "padded"), estimate(run.endpoints, "met")
    assert estimates.reports == PEOPLE
    assert estimates.epsilon > alone.epsilon + 0.3, "of which the dummies allow more"
    mechanism: Any = build("grr", epsilon=estimates.epsilon, categories=3)
    more = DUMMIES * 2 / 9 / mechanism.channel.gap**2
    for value in estimates.values:
        true = {"red": 525, "blue": 175, "green": 0}[value.value]
        assert abs(value.estimate - true) <= SIGMAS * sqrt(mechanism.variance(true, PEOPLE) + more)
        assert value.stderr**2 == pytest.approx(
            mechanism.variance(min(max(value.estimate, 0), PEOPLE), PEOPLE) + more, rel=1e-6
        )
    assert 0.5 < estimates.shuffled.epsilon <= 1.0
    assert f"adds {DUMMIES} dummies to it" in estimates.shuffled.assumption
    assert main(["status", "--home", str(run.home)]) == 0
    both = 2 * DUMMIES + HIDDEN.reach
    both += sum(named_dummies(run.bundle.metrics[name]) for name in ("whole", "level"))
    assert f"acknowledged + {both:,} dummies = pooled (not shown)" in capsys.readouterr().out
    assert main(["status", "--all", "--home", str(run.home)]) == 0
    assert "acknowledged + dummies = pooled" in capsys.readouterr().out


def test_a_hidden_number_of_reports_is_shown_as_an_estimate_with_its_error(
    run: LocalRun, capsys: pytest.CaptureFixture[str]
) -> None:
    def hidden_terms() -> list[dict[str, int]]:
        counts = report_counts(run.endpoints).items()
        return [t for (stream, _), t in counts if stream == "hidden" and not t["in_flight"]]

    [terms] = eventually(hidden_terms)
    assert balances(terms)
    assert (terms["dummies"], terms["withheld"]) == (DUMMIES + HIDDEN.reach, 0)
    assert abs(terms["acknowledged"] - PEOPLE) <= HIDDEN.reach
    estimates, padded = estimate(run.endpoints, "hidden"), estimate(run.endpoints, "padded")
    assert estimates.reports == terms["acknowledged"]
    assert estimates.epsilon == padded.epsilon, "the crowd is as large as it must be"
    assert estimates.reports_stderr == pytest.approx(sqrt(HIDDEN.variance))
    mechanism: Any = build("grr", epsilon=estimates.epsilon, categories=3)
    more = (DUMMIES + HIDDEN.reach) * 2 / 9 / mechanism.channel.gap**2 + HIDDEN.variance / 9
    for value in estimates.values:
        true = {"red": 525, "blue": 175, "green": 0}[value.value]
        assert abs(value.estimate - true) <= SIGMAS * sqrt(mechanism.variance(true, PEOPLE) + more)
        clipped = min(max(value.estimate, 0), estimates.reports)
        variance = mechanism.variance(clipped, estimates.reports)
        assert value.stderr**2 == pytest.approx(variance + more, rel=1e-6)
    assert estimates.shuffled.reports <= PEOPLE, "as many as there are at least"
    assert f"adds {DUMMIES} dummies to it" in estimates.shuffled.assumption
    assert main(["query", "hidden", "--home", str(run.home)]) == 0
    assert "the number of reports is an estimate" in " ".join(capsys.readouterr().out.split())


def test_dummies_of_devices_leave_as_reports_and_no_answer_counts_them(
    run: LocalRun,
) -> None:
    """The shuffler waits for as many more; how many there are is known by what is expected."""
    [terms] = [t for (stream, _), t in report_counts(run.endpoints).items() if stream == "own"]
    assert balances(terms)
    assert (terms["dummies"], terms["withheld"]) == (0, 0)
    assert terms["counted"] == terms["acknowledged"]
    estimates, alone = estimate(run.endpoints, "own"), estimate(run.endpoints, "met")
    assert estimates.reports == round(terms["counted"] / (1 + EACH))
    assert estimates.epsilon > alone.epsilon + 0.3
    crowd = crowd_of(PEOPLE, 3, estimates.epsilon, each=EACH)
    for value in estimates.values:
        true = {"red": 525, "blue": 175, "green": 0}[value.value]
        assert abs(value.estimate - true) <= SIGMAS * crowd.stderr(true / PEOPLE)
        share = min(max(value.estimate / estimates.reports, 0), 1)
        assert value.stderr == pytest.approx(crowd.stderr(share), rel=0.02)
    assert 0.2 < estimates.shuffled.epsilon <= 1.0, "they are more than the promise needs"
    assert f"devices add {EACH} dummies each" in estimates.shuffled.assumption


def test_yes_or_no_a_mean_and_a_range_are_answered_in_a_crowd(run: LocalRun) -> None:
    sure, size, spread = (estimate(run.endpoints, name) for name in ("sure", "size", "spread"))
    for answer in (sure, size, spread):
        assert 0.5 < answer.shuffled.epsilon <= 1.0
        assert answer.shuffled.reports == PEOPLE
    rows = {value.value: value.estimate for value in sure.values}
    assert abs(rows["true"] - 175) <= SIGMAS * sqrt(
        build("grr", epsilon=sure.epsilon, categories=2).variance(175, PEOPLE)
    )
    [mean] = size.values
    assert abs(mean.estimate - 3) <= SIGMAS * mean.stderr < 1.5
    true = [PEOPLE * 2 / 7, PEOPLE * 2 / 7, PEOPLE * 2 / 7, PEOPLE / 7, 0]
    parts = build("wave", epsilon=spread.epsilon, low=0, high=10, buckets=5)
    for value, true_share in zip(spread.values, true, strict=True):
        assert abs(value.estimate - true_share) <= SIGMAS * sqrt(parts.variance(true_share, PEOPLE))


def test_three_parts_arrive_by_the_real_path(run: LocalRun) -> None:
    estimates = estimate(run.endpoints, "profile")
    assert estimates.reports == PEOPLE
    joint_counts = {
        (a, c): sum("xy"[n % 4 > 0] == a and "no"[n % 2] == c for n in range(PEOPLE))
        for a in "xy"
        for c in "no"
    }
    for value in estimates.values:
        a, b, c = (part[2:] for part in value.value.split(", "))
        true = joint_counts[a, c] if a == b else 0
        assert abs(value.estimate - true) <= SIGMAS * value.stderr
    table = run.endpoints.connection.cross("profile", rows="a", by="c")
    slices = [table_slice["value"] for table_slice in table.document["slices"]]
    assert (table.document["columns"], slices) == ("b", ["n", "o"])
    by_value = {value.value: value.estimate for value in estimates.values}
    assert {cell["value"]: cell["estimate"] for cell in table} == by_value


def test_all_parts_in_one_value_arrive_by_the_real_path(run: LocalRun) -> None:
    metric = run.bundle.metrics["whole"]
    law = value_noise(metric)
    assert law is not None
    [terms] = [t for (stream, _), t in report_counts(run.endpoints).items() if stream == "whole"]
    assert balances(terms)
    assert terms["dummies"] == law.each.reach * metric.randomizer.layout.size
    estimates = estimate(run.endpoints, "whole")
    assert len(estimates.values) == 16
    table = run.endpoints.connection.cross("whole", rows="c", columns="b", by="a")
    cells = {(cell["slice"], cell["row"], cell["column"]): cell for cell in table}
    for n, (a, b, c) in enumerate(product("xy", "xy", "no")):
        true = sum(("xy"[n % 4 > 0],) * 2 + ("no"[n % 2],) == (a, b, c) for n in range(PEOPLE))
        cell = cells[a, c, b]
        assert abs(cell["estimate"] - true) <= SIGMAS * cell["stderr"]
        parts = [value.estimate for value in estimates.values[2 * n : 2 * n + 2]]
        assert cell["estimate"] == pytest.approx(sum(parts))
        assert cell["stderr"] ** 2 == pytest.approx(2 * law.each.variance, rel=0.6)
    assert 0.5 < estimates.shuffled.epsilon <= 1.0


def test_a_mean_whose_dummies_have_a_fixed_sum_arrives_with_its_exact_number_of_reports(
    run: LocalRun, capsys: pytest.CaptureFixture[str]
) -> None:
    metric = run.bundle.metrics["level"]
    law = value_noise(metric)
    assert law
    assert law.of_sum
    [terms] = [t for (stream, _), t in report_counts(run.endpoints).items() if stream == "level"]
    assert balances(terms)
    assert (terms["acknowledged"], terms["dummies"]) == (PEOPLE, law.expected)
    estimates, size = estimate(run.endpoints, "level"), estimate(run.endpoints, "size")
    assert (estimates.reports, estimates.reports_stderr) == (PEOPLE, size.reports_stderr)
    [mean] = estimates.values
    assert abs(mean.estimate - 3) <= SIGMAS * mean.stderr < 0.5 * SIGMAS * size.values[0].stderr
    assert 0.9 < estimates.shuffled.epsilon <= 1.0
    assert main(["query", "level", "--home", str(run.home)]) == 0
    assert "is an estimate" not in capsys.readouterr().out


def test_the_mean_of_a_vector_is_answered_in_a_crowd(run: LocalRun) -> None:
    estimates = estimate(run.endpoints, "scores")
    assert 0.9 < estimates.shuffled.epsilon <= 1.0
    assert estimates.shuffled.reports == estimates.reports == PEOPLE
    assert estimates.epsilon > 2, "of one report alone"
    for row, true in zip(estimates.values, (0.45, -0.475), strict=True):
        assert abs(row.estimate - true) <= SIGMAS * row.stderr < 0.6


def test_strings_are_answered_in_a_crowd(run: LocalRun) -> None:
    estimates = estimate(run.endpoints, "word", candidates=["often", "once 5", "never"])
    assert 0.5 < estimates.shuffled.epsilon <= 1.0
    assert estimates.shuffled.reports == PEOPLE
    assert estimates.epsilon > 1.9, "of one report alone"
    alone = sqrt(build("unary.oue", epsilon=1.0, categories=3).variance(0, PEOPLE))
    for value in estimates.values:
        true = {"often": 175, "once 5": 1, "never": 0}[value.value]
        assert abs(value.estimate - true) <= SIGMAS * value.stderr
        assert value.stderr < 0.9 * alone, "as private by itself"
    assert estimates.values[0].detected


def test_estimates_of_a_crowd_are_released_without_noise_or_budget(
    run: LocalRun, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a day that is over, put there as such days are kept."""
    over = epoch_at(now(), "day") - 5
    drawn = draw(run.bundle.metric("met").randomizer, [0, 2], [525, 175], default_rng(5))
    totals = WindowTotals(
        cells=np.array(drawn.cells, dtype=np.int64), counted=PEOPLE, batch_reports=PEOPLE, at=1
    )
    write_history([Day(Window("met", over), totals)], run.aggregator_redis, run.shuffler_redis)
    date, home = epoch_date(over, 86_400), ["--home", str(run.home)]
    first = document_of(capsys, "release", "met", "--epoch", date, *home, "--format", "json")
    assert (first["epsilon"], first["promised"], first["promised_delta"]) == (0, 1, 1e-8)
    query = {"metric": "met", "query": "histogram", "dates": date, "by": "Bob"}
    over_http = web.post(f"{run.endpoints.page}v1/releases", json=query).json()
    assert (over_http["again"], over_http["promised"]) == (True, 1)
    assert over_http["values"] == first["values"]
    estimates = {
        value["value"]: value for value in run.endpoints.connection.estimates("met", epochs=date)
    }
    for value in first["values"]:
        assert value["estimate"] == pytest.approx(estimates[value["value"]]["estimate"])
        assert value["stderr"] == pytest.approx(estimates[value["value"]]["stderr"], rel=1e-6)
        assert value["noise"] == 0
    output = output_of(capsys, "release", "met", "mode", "--epoch", date, *home)
    assert "the most common value: red" in output
    assert "published as it is" in output
    assert "nothing is charged" in output
    assert main(["release", "met", "count", "--value", "blue", "--epoch", date, *home]) == 0
    assert "central epsilon 1 at delta 1e-08" in capsys.readouterr().out
    record = document_of(capsys, "release", *home, "--format", "json")
    assert len(record["records"]) == 3
    assert record["together"]["best"] == pytest.approx(1.0, rel=1e-3), "once, however often told"
    output = output_of(capsys, "release", *home)
    assert "the epsilons paid add up to 0" in output
    assert "What each purpose may spend" not in output, "there is none"
    assert main(["release", "met", "--purpose", "fun", *home]) == 2
    assert "and a metric with a crowd needs none; leave the purpose out" in capsys.readouterr().err
    errors = refusal_of(capsys, "release", "sure", *home)
    assert re.search(r'"sure": \S+ has no final totals; .*, this one at', errors), (
        "and not that none came"
    )


def test_the_commands_that_the_page_prints_run_in_any_folder(run: LocalRun, tmp_path: Path) -> None:
    page = f"{run.endpoints.page}v1/metrics/met"
    response, estimates = web.get(f"{page}/commands").json(), web.get(f"{page}/estimates").json()
    [red] = [value for value in estimates["values"] if value["value"] == "red"]
    assert response["shell"].startswith("hubbub query met "), "no path of the service's machine"
    assert f"{red['estimate']:,.0f}" in in_shell(response["shell"], tmp_path)
    assert red in in_notebook(response["notebook"])["values"]


def test_a_refusal_names_withheld_reports(
    run: LocalRun, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the real shuffler: a hundred people too few came."""
    error = refusal_of(capsys, "query", "missed", "--home", str(run.home))
    assert "an answer needs its minimum batch of 800" in error
    assert "the shuffler withheld 700 reports" in error
    assert "whose crowds were smaller than 800" in error


def test_an_answer_shows_its_central_epsilon_and_assumption(
    run: LocalRun, capsys: pytest.CaptureFixture[str]
) -> None:
    estimates = estimate(run.endpoints, "met")
    values = {value.value: value.estimate for value in estimates.values}
    mechanism = build("grr", epsilon=estimates.epsilon, categories=3)
    for name, true in (("red", 525), ("blue", 175), ("green", 0)):
        assert abs(values[name] - true) <= SIGMAS * sqrt(mechanism.variance(true, PEOPLE))
    assert estimates.epsilon > 2
    assert 0.5 < estimates.shuffled.epsilon <= 1.0
    assert estimates.shuffled.reports == PEOPLE
    assert "releases the crowd whole" in estimates.shuffled.assumption
    assert "if the shuffler colludes with the aggregator, a report reveals epsilon" in output_of(
        capsys, "query", "met", "--home", str(run.home)
    )
    assert (
        document_of(capsys, "query", "met", "--home", str(run.home), "--format", "json")[
            "shuffled"
        ]["epsilon"]
        == estimates.shuffled.epsilon
    )
