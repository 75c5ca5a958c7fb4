"""A model tells the same on every face; its rounds are written once, in Redis as in memory."""

import asyncio
import csv
import io
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import expect

import hubbub.notebook
from hubbub.aggregator.learning_rounds import Rounds
from hubbub.bundles.model_state import open_models
from hubbub.cli.main import main
from hubbub.errors import TotalsUnreadable
from hubbub.runtime.redis.client import connect_redis
from hubbub.runtime.redis.command_sender import MemoryServer
from tests.interfaces.browser import Watched
from tests.interfaces.running_aggregator import TAUGHT, House
from tests.support import web
from tests.support.commands import Capture, document_of, output_of, refusal_of


def test_every_interface_shows_the_same_model(home: House, capsys: Capture) -> None:
    response = web.get(f"{home.page}/v1/models/churn").json()
    judged = web.get(f"{home.page}/v1/models/stays").json()
    classes = web.get(f"{home.page}/v1/models/tariff").json()
    assert web.get(f"{home.page}/v1/models").json() == {"models": [response, judged, classes]}
    assert document_of(capsys, "model", "churn", "--url", home.page, "--format", "json") == response
    assert (response["number"], response["rounds"], response["reports"]) == (3, 4, 690)
    names = [coefficient["name"] for coefficient in response["coefficients"]]
    assert names == ["hours", "plan=free", "plan=paid", "intercept"]
    # The mean of the second and third round's, per hour.
    assert response["coefficients"][0]["coefficient"] == pytest.approx(-1.25 / 40)
    assert response["weights"] == TAUGHT[-1].weights
    assert main(["model", "churn", "--url", home.page, "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [float(row["low"]) for row in rows] == [
        coefficient["low"] for coefficient in response["coefficients"]
    ]
    assert main(["model", "churn", "--url", home.page]) == 0
    assert "next state: 2099-01-01T10:02:00Z" in capsys.readouterr().out
    answer = hubbub.notebook.connect(home.page).model("churn")
    assert [dict(row) for row in answer] == response["coefficients"]
    assert "churn: 690 reports" in answer._repr_html_()


def test_every_interface_shows_the_same_quality_of_a_model(home: House, capsys: Capture) -> None:
    response = web.get(f"{home.page}/v1/models/stays").json()
    holdout = response["held_out"]
    assert (response["finished"], response["number"], response["reports"]) == (True, 3, 690)
    assert (holdout["share"], holdout["date"], holdout["state"]) == (
        0.2,
        "2099-01-01T08:00",
        "finished",
    )
    assert holdout["reports"] == 220
    assert 0.8 < holdout["auc_low"] < holdout["auc"] < holdout["auc_high"] <= 1
    assert [bucket["estimate"] < 0.4 for bucket in holdout["calibration"]] == [True] * 4 + [
        False
    ] * 4
    output = output_of(capsys, "model", "stays", "--url", home.page)
    assert f"AUC {holdout['auc']:.3f}, 95% interval {holdout['auc_low']:.3f} to" in output
    assert "calibration, by 220 devices that did not train it" in output
    answer = hubbub.notebook.connect(home.page).model("stays")
    assert f"AUC {holdout['auc']:.3f}" in answer._repr_html_()


def test_every_interface_shows_the_same_model_of_classes(home: House, capsys: Capture) -> None:
    response = web.get(f"{home.page}/v1/models/tariff").json()
    assert (response["kind"], len(response["weights"]), len(response["edges"])) == ("softmax", 8, 7)
    holdout = response["held_out"]
    assert holdout["auc"] is None
    # 176 of 240 said that the likeliest class is theirs, by grr of 16 categories.
    keep = math.exp(4) / (math.exp(4) + 15)
    other = (1 - keep) / 15
    assert holdout["accuracy"] == pytest.approx((176 / 240 - 8 * other) / (keep - other), abs=1e-6)
    assert holdout["accuracy_low"] < holdout["accuracy"] < holdout["accuracy_high"] < 1
    rows = response["coefficients"]
    assert [row["of_class"] for row in rows] == [*["none"] * 4, *["month"] * 4, *["year"] * 4]
    assert sum(row["coefficient"] for row in rows if row["name"] == "hours") == pytest.approx(0)
    output = " ".join(output_of(capsys, "model", "tariff", "--url", home.page).split())
    assert "class column coefficient 95% interval" in output
    assert (
        f"accuracy {holdout['accuracy']:.3f}, 95% interval {holdout['accuracy_low']:.3f} to"
        in output
    )
    assert main(["model", "tariff", "--url", home.page, "--format", "csv"]) == 0
    items = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["of_class"] for row in items] == [row["of_class"] for row in rows]
    answer = hubbub.notebook.connect(home.page).model("tariff")
    html = answer._repr_html_()
    assert f"accuracy {holdout['accuracy']:.3f}" in html
    assert "<th>class</th>" in html.replace(' scope="col"', "")
    classifier = answer.to_sklearn()
    people = pd.DataFrame([[0.0, 1.0, 0.0], [40.0, 0.0, 1.0]], columns=classifier.feature_names_in_)
    score = np.array([[row["coefficient"] for row in rows[4 * k : 4 * k + 4]] for k in range(3)])
    parts = np.exp(people.to_numpy() @ score[:, :3].T + score[:, 3])
    assert classifier.predict_proba(people) == pytest.approx(
        parts / parts.sum(axis=1, keepdims=True)
    )
    assert set(classifier.predict(people)) <= {"none", "month", "year"}


def test_a_scikit_learn_model_predicts_at_once(home: House) -> None:
    connection = hubbub.notebook.connect(home.page).model("churn").to_sklearn()
    people = pd.DataFrame([[0.0, 1.0, 0.0], [40.0, 0.0, 1.0]], columns=connection.feature_names_in_)
    scores = connection.decision_function(people)
    assert scores[0] > scores[1]
    assert list(connection.predict(people)) == [int(score > 0) for score in scores]
    assert connection.predict_proba(people)[:, 1] == pytest.approx(1 / (1 + np.exp(-scores)))


def test_a_model_written_as_json_scores_as_that_of_scikit_learn_does(
    home: House, tmp_path: Path
) -> None:
    out = tmp_path / "churn.json"
    words = ["model", "churn", "--url", home.page, "--format", "json", "--out", str(out)]
    assert main(words) == 0
    *columns, intercept = (
        coefficient["coefficient"] for coefficient in json.loads(out.read_text())["coefficients"]
    )
    connection = hubbub.notebook.connect(home.page).model("churn").to_sklearn()
    for person in ([0.0, 1.0, 0.0], [40.0, 0.0, 1.0], [12.5, 1.0, 0.0]):
        score = sum(a * x for a, x in zip(columns, person, strict=True)) + intercept
        people = pd.DataFrame([person], columns=connection.feature_names_in_)
        assert connection.decision_function(people)[0] == pytest.approx(score)


def test_a_metric_that_is_no_model_and_a_model_that_is_no_metric_are_refused(
    home: House, capsys: Capture
) -> None:
    refused = web.get(f"{home.page}/v1/models/theme")
    assert refused.status_code == 404
    assert refused.json()["detail"] == (
        'model "theme" is not in the bundle; it has churn, stays, tariff; "theme" is a metric: '
        "use hubbub query"
    )
    response = web.get(f"{home.page}/v1/metrics/churn/estimates")
    assert response.status_code == 400
    assert "use hubbub model churn" in response.json()["detail"]
    assert "use hubbub model churn" in refusal_of(capsys, "query", "churn", "--url", home.page)


def test_the_state_is_signed_for_devices_once(home: House, tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "models.hubbub"
    words = ["model", "publish", "--keys", str(home.signed.keys), "--url", home.page]
    assert "signed, churn after round 3, stays after round 3, tariff after round 3" in output_of(
        capsys, *words, "--out", str(out)
    )
    states = open_models(out.read_bytes(), operator=home.signed.bundle.operator).states
    finished, state = states["stays"], states["churn"]
    assert finished.weights == pytest.approx((-1.25, 0.4, -0.4, 0.1)), "the mean of two rounds"
    assert (finished.number, len(finished.edges), state.edges) == (3, 7, ())
    assert (state.number, list(state.weights)) == (3, TAUGHT[-1].weights)
    before = out.stat()
    assert "nothing new to sign" in output_of(capsys, *words, "--out", str(out))
    assert out.stat() == before
    assert "the following arguments are required: --out" in refusal_of(capsys, *words)


def test_the_page_shows_coefficients_and_rounds(watched: Watched, home: House) -> None:
    page = watched.open(f"{home.page}/metric?name=churn")
    expect(page.locator("#learned")).to_contain_text("after round 3 of 4, of 690 reports")
    rows = page.locator("#learned table").first.locator("tbody tr")
    expect(rows).to_have_count(4)
    expect(rows.first).to_contain_text("intercept")
    steps = page.locator("#learned table").last.locator("tbody tr")
    expect(steps).to_have_count(5)
    assert not page.is_visible("#controls")
    page = watched.open(home.page)
    expect(page.locator("#metrics")).to_contain_text("A model, after round 3 of 4.")
    expect(page.locator("#metrics")).to_contain_text("A finished model, of AUC")
    page = watched.open(f"{home.page}/metric?name=stays")
    expect(page.locator("#learned")).to_contain_text("on 220 devices that did not train it")
    expect(page.locator("#learned table").nth(1).locator("tbody tr")).to_have_count(8)
    page = watched.open(f"{home.page}/metric?name=tariff")
    expect(page.locator("#learned")).to_contain_text("Accuracy 0.803")
    coefficients = page.locator("#learned table").first
    expect(coefficients.locator("thead th").first).to_have_text("class")
    expect(coefficients.locator("tbody tr")).to_have_count(12)


@pytest.mark.parametrize("backend", ["memory", "redis"])
async def test_a_round_is_written_once(home: House, backend: str) -> None:
    async def body(rounds: Rounds) -> None:
        first, other = TAUGHT[0], replace(TAUGHT[0], reports=7)
        assert await rounds.finished("once") == []
        wrote = await asyncio.gather(
            *(rounds.write("once", candidate) for candidate in (first, other))
        )
        assert sorted(wrote) == [False, True]
        assert not await rounds.write("once", other)
        [winner] = await rounds.finished("once")
        assert winner in (first, other)
        await rounds.write("once", replace(TAUGHT[2]))
        assert await rounds.finished("once") == [winner], "the round between is not over"

    if backend == "memory":
        await body(Rounds(MemoryServer()))
        return
    server = await connect_redis(home.redis_url)
    await body(Rounds(server))
    await server.ask("HSET", "aggregator:model:once", "1", b"{")
    with pytest.raises(TotalsUnreadable, match="is unreadable"):
        await Rounds(server).finished("once")
    await server.ask("UNLINK", "aggregator:model:once")
    await server.close()
