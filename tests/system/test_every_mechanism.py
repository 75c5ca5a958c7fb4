"""Every mechanism through real processes: catalog, SDK, shuffler, aggregator, Redis, query."""

import math
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hubbub import notebook
from hubbub.authoring import read_catalog
from hubbub.catalog import epoch_at, epoch_start
from hubbub.cli.main import main
from hubbub.conservation import balances, sum_terms
from hubbub.installation.local_run import LocalRun, Ports
from hubbub.mechanisms import REGISTRY
from hubbub.simulation.devices import Person, send_everyone
from tests.support import web
from tests.support.asking import estimate
from tests.support.catalogs import metric_toml
from tests.support.commands import Capture, document_of, output_of, refusal_of
from tests.support.law_terms import report_counts
from tests.support.mixing import pool_counts
from tests.support.moment import now
from tests.support.waiting import eventually

PEOPLE = 150
# Of whom a tenth counts what the others look for; a tree has eleven jobs for them.
SEEKERS = 900
MIN_BATCH = 10
# The least like a bell are those whose errors are judged by their own estimates: more standard
# errors, and the ten reports that are allowed beside them, are passed once in 1e7.
SIGMAS = 6
OWN = {
    "cms": "hashes = 8\nwidth = 32",
    "hcms": "hashes = 8\nwidth = 32",
    "local_hash": "hashes = 8\nwidth = 32",
    "tree": "bits = 72\ncells = 4096",
    "rappor": "bits = 16\nhashes = 1\ncohorts = 4\nf = 0.25\np = 0.2\nq = 0.8",
    "rappor.basic": "f = 0.25\np = 0.2\nq = 0.8",
    "mean.one_bit": "low = 0\nhigh = 24",
    "mean.piecewise": "low = 0\nhigh = 24\nsteps = 100",
    "mean.table": "low = 0\nhigh = 24",
    "buckets": "low = 0\nhigh = 24\nbuckets = 12\nsampled = 4",
    "wave": "low = 0\nhigh = 24\nbuckets = 12",
    "haar": "low = 0\nhigh = 24\nbuckets = 12",
    "long.grr": "permanent_epsilon = 4.0",
    "long.hash": "permanent_epsilon = 4.0",
    "long.unary": "permanent_epsilon = 4.0",
    "auto": "reports = 300",
    "privset": 'kind = "set"\nmost = 2',
    "vector.codes": "max_length = 2.0\nwords = 128\nbooks = 256",
}
# What follows a tree needs more reports, or more of each.
EPSILON = {"tree": 12.0}
EPOCHS = {"grr": "month", "unary.oue": "28d", "wave": "week"}
DOMAINS = {
    "categories": 'values = ["red", "green", "blue"]',
    "strings": 'domain = "string"',
    "numbers": 'domain = "number"',
    "vectors": 'kind = "vector"\ncoordinates = ["speed", "ease"]',
}


DISCOVERING = "".join(
    metric_toml(name, more, epsilon=6.0, discover=0.9, min_batch=MIN_BATCH)
    for name, more in (
        ("listed", 'mechanism = "grr"\nvalues = ["seldom.example"]\nother = true'),
        ("looked_for", 'mechanism = "hcms"\nhashes = 8\nwidth = 32\ndomain = "string"'),
    )
)


def _kind(name: str) -> str:
    return "categories" if name == "auto" else REGISTRY[name].VALUES


def metric_of(name: str) -> str:
    domain = 'values = ["no", "yes"]' if name == "rr" else DOMAINS[_kind(name)]
    if name == "pairs":
        domain = 'parts = { colour = ["red", "green"], seen = [true, false], size = ["s", "l"] }'
    return metric_toml(
        name.replace(".", "_"),
        f"{domain}\n{OWN.get(name, '')}",
        epoch=EPOCHS.get(name, "day"),
        mechanism=name,
        epsilon=EPSILON.get(name, 3.0),
        min_batch=MIN_BATCH,
    )


def _value(name: str, person: int) -> Any:
    if name == "rr":
        return "yes" if person % 4 else "no"
    common = person % 4 > 0
    if name == "privset":
        return ["red", "blue"] if common else ["green"]
    if name == "pairs":
        return {"seen": common, "size": "s", "colour": "red" if common else "green"}
    return {
        "categories": "red" if common else "green",
        "strings": "often.example" if common else "seldom.example",
        "numbers": 6 if common else 18.5,
        "vectors": [1.2, 0] if common else [-0.4, 0.8],
    }[_kind(name)]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRun]:
    folder = tmp_path_factory.mktemp("every")
    path = folder / "metrics.toml"
    metrics = "".join(metric_of(name) for name in (*REGISTRY, "auto"))
    metrics += DISCOVERING
    path.write_text(f'shuffler = "127.0.0.1:1"\n{metrics}')
    with LocalRun(folder / "home", read_catalog(path), Ports.free()) as running:
        names = (*REGISTRY, "auto")
        everyone: list[Person] = [
            {
                name.replace(".", "_"): _value(name, n)
                for name in names
                if n < PEOPLE or name == "tree"
            }
            | dict.fromkeys(("listed", "looked_for"), "often.example")
            for n in range(SEEKERS)
        ]
        sent = send_everyone(everyone, running.bundle_path, lambda _: None)
        assert sent.acknowledged == PEOPLE * (len(names) - 1) + SEEKERS * 3

        def all_left_that_may() -> bool:
            """A pool keeps its minimum batch back, and less than as much again."""
            counts = pool_counts(running.shuffler_redis).values()
            return sum_terms(counts)["acknowledged"] == sent.acknowledged and all(
                terms["pooled"] < 2 * MIN_BATCH and not terms["in_flight"] for terms in counts
            )

        eventually(all_left_that_may)
        yield running


@pytest.mark.parametrize("name", [*REGISTRY, "auto"])
def test_a_metric_is_answered_from_end_to_end(run: LocalRun, name: str) -> None:
    """The frequent answer's estimate is within `SIGMAS` standard errors of its share."""
    strings = ["often.example", "seldom.example", "never.example"]
    candidates = strings if _kind(name) == "strings" else []
    estimates = estimate(run.endpoints, name.replace(".", "_"), candidates=candidates)
    length = EPOCHS.get(name, "day")
    assert estimates.reports > PEOPLE - 2 * MIN_BATCH
    begins = epoch_start(epoch_at(now(), length), length)
    assert estimates.since == f"{datetime.fromtimestamp(begins, UTC):%Y-%m-%dT%H:%M:%SZ}"
    assert estimates.epsilon <= EPSILON.get(name, 3.0)
    if name != "auto":
        assert estimates.mechanism == name
    values = {value.value: value for value in estimates.values}
    if estimates.kind == "mean":
        off = values["mean"].estimate - (0.75 * 6 + 0.25 * 18.5)
        assert abs(off) < SIGMAS * values["mean"].stderr
    elif estimates.kind == "vector":
        for coordinate, true in (("speed", 0.8), ("ease", 0.2)):
            off = values[coordinate].estimate - true
            # Which of the people are counted so far is chance too.
            assert abs(off) < SIGMAS * values[coordinate].stderr + 10 * 1.6 / PEOPLE
    elif estimates.kind == "ranges":
        assert len(values) == 12
        six = values["[6, 8)"]
        assert abs(six.estimate - 0.75 * estimates.reports) < SIGMAS * six.stderr + 10
        mean = estimates.mean
        assert abs(mean.estimate - (0.75 * 7 + 0.25 * 19)) < SIGMAS * mean.stderr + 180 / PEOPLE
    else:
        of_many = {"pairs": "colour=red, seen=true", "privset": "red"}
        expected_value = of_many.get(name) or str(_value(name, 1))
        frequent = values[expected_value]
        assert abs(frequent.estimate - 0.75 * estimates.reports) < SIGMAS * frequent.stderr + 10
    assert all(value.low <= value.high for value in estimates.values)


def test_the_law_balances(run: LocalRun) -> None:
    eventually(lambda: all(balances(terms) for terms in report_counts(run.endpoints).values()))


def test_answers_show_a_consistent_histogram_beside_the_estimates(
    run: LocalRun, capsys: Capture
) -> None:
    where = ["--home", str(run.home), "--format", "json"]
    for name in ("grr", "wave", "buckets"):
        document = document_of(capsys, "query", name, *where)
        assert math.isclose(
            sum(value["consistent"] for value in document["values"]), document["reports"]
        )
        assert min(value["consistent"] for value in document["values"]) >= 0
    [mean] = document_of(capsys, "query", "mean_one_bit", *where)["values"]
    assert mean["consistent"] is None


def test_strings_that_nobody_listed_are_found(
    run: LocalRun, tmp_path: Path, capsys: Capture
) -> None:
    """It is missed if fewer than three of some 60 reports of a level are of it: 1e-17 in all."""
    where = ["--home", str(run.home)]
    document = document_of(capsys, "discover", "tree", *where, "--format", "json")
    [row] = [value for value in document["values"] if value["value"] == "often.example"]
    assert abs(row["estimate"] - 0.75 * document["reports"]) < 7 * row["stderr"]
    in_all = sum(value["estimate"] for value in document["values"]) + document["others"]["estimate"]
    assert math.isclose(in_all, document["reports"])
    arguments = ["discover", "tree", *where, "--likely", "0.9", "--format", "json"]
    likely = document_of(capsys, *arguments)
    assert likely["values"] == document["values"]
    assert all(string["doubt"] <= 0.9 for string in likely["likely"])
    assert main(["discover", "tree", *where, "--likely", "2"]) == 2
    assert "--likely 2 is outside [0, 1)" in capsys.readouterr().err
    for other in ("hcms", "projective"):
        errors = refusal_of(capsys, "discover", other, *where, "--likely")
        assert f"answered by {other}, which finds no strings, so none are likely" in errors
        assert 'ask a metric with mechanism = "tree", or with discover' in errors
    trend = web.get(f"{run.endpoints.page}v1/metrics/tree/trend?number=5").json()
    [followed] = [series for series in trend["series"] if series["value"] == "often.example"]
    [point] = followed["points"]
    assert abs(point["share"] - 0.75) < 7 * point["stderr"]
    listed = tmp_path / "found.txt"
    output = output_of(capsys, "discover", "tree", *where, "--as-candidates", str(listed))
    assert "other strings" in output
    assert "often.example" in listed.read_text().splitlines()
    assert "finds no strings" in refusal_of(capsys, "discover", "grr", *where)


def test_strings_that_most_devices_find_are_counted_by_the_others(
    run: LocalRun, tmp_path: Path, capsys: Capture
) -> None:
    """Seven standard errors of both parts, and of the shares that each tells.

    At epsilon 6 lies are rare, and no bell: beside four reports more, eight of some 90 lie: 1e-7.
    It is missed if fewer than three of some 67 of a level's reports are of it, and nothing is
    counted if fewer than twenty of some 90 reports are no tree's: less than 1e-13 in all.
    """
    where = ["--home", str(run.home)]
    for name in ("listed", "looked_for"):
        document = document_of(capsys, "discover", name, *where, "--format", "json")
        assert document["metric"] == f"{name}/tree"
        assert (
            abs(document["reports"] - SEEKERS * 0.9) < 7 * (SEEKERS * 0.09) ** 0.5 + 2 * MIN_BATCH
        )
        [row] = [value for value in document["values"] if value["value"] == "often.example"]
        assert abs(row["share"] - 1) < 7 * row["stderr"] / document["reports"]
        counted = document_of(capsys, "query", name, *where, "--format", "json")
        assert SEEKERS - 4 * MIN_BATCH < counted["reports"] + document["reports"] <= SEEKERS
        values = {value["value"]: value for value in counted["values"]}
        other_row = values["other" if name == "listed" else "often.example"]
        assert abs(other_row["share"] - 1) * counted["reports"] < 7 * other_row["stderr"] + 4
        assert counted["lists"] == ([] if name == "listed" else ["catalog", "discovered"])
    listed = tmp_path / "listed.txt"
    listed.write_text("seldom.example\n")
    arguments = ["discover", "listed", *where, "--as-candidates", str(listed), "--append"]
    assert "1 of them new" in output_of(capsys, *arguments)
    assert listed.read_text().splitlines() == ["seldom.example", "often.example"]
    assert "0 of them new" in output_of(capsys, *arguments)
    assert main(["discover", "listed", *where, "--append"]) == 2
    assert "name it with --as-candidates" in capsys.readouterr().err
    answer = web.get(f"{run.endpoints.page}v1/metrics/listed/estimates?tier=tree").json()
    assert answer["mechanism"] == "tree"
    connection = notebook.connect(run.endpoints.page)
    assert connection.discover("listed").document["metric"] == "listed/tree"
    assert connection.discover("tree").document["metric"] == "tree"
