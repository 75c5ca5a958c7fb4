"""`hubbub simulate` and `hubbub plan` of models, as a user asks them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.commands import Capture, document_of, output_of, refusal_of

pytestmark = pytest.mark.thorough

MODELS = """
[models.churn]
kind = "logistic"
epsilon = 4.0
label = "left"
positive = "yes"
features = { age = [18, 90], hours = [0, 1, 5, 24], plan = ["free", "paid"] }

[models.tariff]
kind = "softmax"
epsilon = 6.0
label = "tariff"
classes = ["none", "month", "year"]
held_out = 0.2
features = { age = [18, 90], plan = ["free", "paid"] }

[models.plain]
kind = "logistic"
epsilon = 4.0
label = "left"

[models.spent]
kind = "linear"
epsilon = 4.0
label = "money"
range = [0, 100]
features = { age = [18, 90] }
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("metrics.toml").write_text(MODELS)
    chance = np.random.default_rng(1)
    for name, people in (("train.csv", 4_000), ("test.csv", 1_000)):
        lines = ["age,hours,plan,left,money,tariff"]
        for _ in range(people):
            age, hours, paid = (
                chance.integers(18, 95),
                chance.integers(0, 24),
                chance.random() < 0.4,
            )
            churn = chance.random() < (0.2 if paid else 0.7)
            spent = min(100, max(0, 2 * (age - 18)))
            cells = ("paid" if paid else "free", "yes" if churn else "no")
            tariff = "none" if not paid else "year" if age > 50 else "month"
            lines.append(f"{age},{hours},{cells[0]},{cells[1]},{spent},{tariff}")
        Path(name).write_text("\n".join(lines) + "\n")
    return tmp_path


def _refused(capsys: Capture, *words: str) -> str:
    return refusal_of(capsys, *words)


TRAIN = ("--values", "train.csv", "--seed", "1", "--runs", "2")


@pytest.mark.usefixtures("folder")
def test_a_model_is_rehearsed(capsys: Capture) -> None:
    document: dict[str, Any] = json.loads(
        output_of(capsys, "simulate", "churn", *TRAIN, "--test", "test.csv", "--json")
    )
    assert document["people"] == 4000
    assert document["tested"] == 1000
    assert document["held_out"] is True
    assert document["clipped"] > 0
    assert 3.99 < document["epsilon"] <= 4.0
    assert document["summary"]["auc"]["low"] > 0.6
    assert document["without_privacy"]["auc"] > document["summary"]["auc"]["mean"] - 0.02
    assert len(document["runs"]) == 2
    names = [row["name"] for row in document["runs"][0]["coefficients"]]
    assert names[:3] == ["age", "hours in [0, 1)", "hours in [1, 5)"]
    assert names[-3:] == ["plan=free", "plan=paid", "intercept"]
    for run in document["runs"]:
        row = {coefficient["name"]: coefficient for coefficient in run["coefficients"]}
        assert row["plan=free"]["coefficient"] > row["plan=paid"]["coefficient"]
        assert all(
            weight["low"] < weight["coefficient"] < weight["high"] for weight in row.values()
        )
        assert sum(group["people"] for group in run["calibration"]) == 1000
    again = json.loads(
        output_of(capsys, "simulate", "churn", *TRAIN, "--test", "test.csv", "--json")
    )
    assert again["runs"] == document["runs"]


@pytest.mark.usefixtures("folder")
def test_a_model_is_shown(capsys: Capture) -> None:
    output = output_of(capsys, "simulate", "churn", *TRAIN)
    assert "churn: logistic, 4,000 people in" in output
    assert "without privacy" in output
    assert "AUC: 0." in output
    assert "the same people: --test has others" in output
    assert "R squared: 0." in output_of(capsys, "simulate", "spent", *TRAIN)


@pytest.mark.usefixtures("folder")
def test_a_model_of_classes_is_rehearsed_and_shown(capsys: Capture) -> None:
    arguments = ("simulate", "tariff", *TRAIN, "--test", "test.csv")
    document = document_of(capsys, *arguments, "--json")
    assert document["summary"]["accuracy"]["low"] > 0.6, "the most frequent class is that of 60%"
    assert document["summary"]["auc"] is None
    assert document["without_privacy"]["accuracy"] > 0.95
    last = document["runs"][-1]
    coefficients = {
        (coefficient["of_class"], coefficient["name"]): coefficient["coefficient"]
        for coefficient in last["coefficients"]
    }
    assert len(coefficients) == 3 * 4
    assert coefficients["none", "plan=free"] > coefficients["year", "plan=free"]
    judged = last["told_by_held_out"]["accuracy"]
    assert judged["low"] < last["accuracy"] < judged["high"]
    output = " ".join(output_of(capsys, *arguments).split())
    assert "class column coefficient 95% of coins" in output
    assert "none plan=free" in output
    assert "accuracy by their reports: 0." in output
    Path("wrong.csv").write_text("age,plan,tariff\n33,free,secret\n")
    refused = _refused(capsys, "simulate", "tariff", "--values", "wrong.csv")
    assert (
        'line 2, column "tariff": the label is not one of the classes as written: "none",'
        in refused
    )
    assert "secret" not in refused


@pytest.mark.usefixtures("folder")
def test_mistakes_in_training_files_are_named_without_a_persons_value(capsys: Capture) -> None:
    def of(line: str, model: str = "churn") -> str:
        Path("wrong.csv").write_text(f"age,hours,plan,left,money\n{line}\n")
        return _refused(capsys, "simulate", model, "--values", "wrong.csv")

    assert 'line 2, column "age": the value is not a finite number' in of("nan,1,free,yes,1")
    secret = of("77,1,secret-plan,yes,1")
    assert 'column "plan": the value is not one of the 2 listed' in secret
    assert "secret-plan" not in secret
    assert "3 fields, 5 expected" in of("77,1,free")
    assert "1 people are too few for a model" in of("77,1,free,yes,1")
    assert "has no people" in of("")
    assert 'column "plan": the value is not a finite number' in of("77,1,free,1,1", "plain")
    Path("short.csv").write_text("age,left\n1,yes\n")
    assert 'has no column "hours"' in _refused(capsys, "simulate", "churn", "--values", "short.csv")
    assert "cannot be read" in _refused(capsys, "simulate", "churn", "--values", "none.csv")
    Path("headless.csv").write_text("33,secret-plan\n")
    headless = _refused(capsys, "simulate", "churn", "--values", "headless.csv")
    assert "its first line has 2 others" in headless
    assert "secret" not in headless
    assert 'column "left": the value is missing' in of("77,1,free,,1")
    assert 'column "left": label is neither positive' in of("77,1,free,YES,1")
    alike = of("\n".join(["77,1,free,no,1"] * 200))
    assert "is the same for everybody" in alike
    sure = ("simulate", "churn", "--values", "wrong.csv", "--confidence", "2")
    assert "confidence 2.0 is outside [1e-06, 0.999999999]; 2% is 0.02" in _refused(capsys, *sure)
    Path("metrics.toml").write_text(
        MODELS.replace('label = "left"\nfeatures', 'labels = "left"\nfeatures')
    )
    Path("odd.toml").write_text(
        '[models.m]\nkind = "logistic"\nepsilon = 1\nlabel = "l"\nodd = 1\n'
    )
    odd = _refused(capsys, "simulate", "m", "--catalog", "odd.toml", "--values", "train.csv")
    assert 'models.m has no field "odd"' in odd


def test_people_needed_are_planned(capsys: Capture) -> None:
    question = ("plan", "model", "logistic", "--features", "64", "--epsilon", "1")
    document = document_of(capsys, *question, "--format", "json")
    [row] = document["rows"]
    assert abs(row["squared_error"] / 432 - 1) < 0.05
    assert row["people_a_round"] == pytest.approx(row["squared_error"] / 0.04, abs=1)
    assert row["shuffled_epsilon"] < 1
    assert "people for a mean gradient" in output_of(capsys, *question)
    output = output_of(capsys, *question, "--reports", "5000")
    assert "more people, fewer columns" in output
    assert "outside [1, 1000]" in _refused(capsys, "plan", "model", "linear", "--features", "5000")
    for words, refusal in (
        (("plan", "model", "linear"), "the following arguments are required: --features"),
        (("plan", "--features", "5"), "--features is an option of: hubbub plan central"),
    ):
        assert refusal in refusal_of(capsys, *words)
    crowd = ("plan", "central", "--model", "linear", "--reports", "1000", "--epsilon", "1")
    assert "--model needs --features" in _refused(capsys, *crowd)
    crowd = ("plan", "central", "--features", "5", "--reports", "1000", "--epsilon", "1")
    assert "--features goes with --model" in _refused(capsys, *crowd)
    classes = ("plan", "model", "softmax", "--features", "12", "--epsilon", "4")
    assert "softmax needs --classes" in _refused(capsys, *classes)
    assert "--classes 2: classes has 2, but softmax distinguishes 3 to 16" in _refused(
        capsys, *classes, "--classes", "2"
    )
    [wide] = document_of(capsys, *classes, "--classes", "6", "--format", "json")["rows"]
    [narrow] = json.loads(
        output_of(
            capsys,
            "plan",
            "model",
            "logistic",
            "--features",
            "64",
            "--epsilon",
            "4",
            "--format",
            "json",
        )
    )["rows"]
    assert wide["squared_error"] == narrow["squared_error"], "5 rows of 13 are 65 numbers, too"
    assert "12 columns and 6 classes" in output_of(capsys, *classes, "--classes", "6")
    assert "has 1365 numbers, above 1001" in _refused(
        capsys,
        "plan",
        "model",
        "softmax",
        "--features",
        "90",
        "--classes",
        "16",
    )
    assert "classes is of softmax" in _refused(capsys, *question, "--classes", "3")
    arguments = ("plan", "model", "logistic", "--features", "4")
    assert "epsilon nan is outside" in _refused(capsys, *arguments, "--epsilon", "nan")
    assert "--reports 0 is below 1" in _refused(capsys, *arguments, "--reports", "0")
    assert "--features 0 is below 1" in _refused(capsys, *arguments[:-1], "0")


@pytest.mark.usefixtures("folder")
def test_fake_reports_push_a_round_no_farther_than_the_farthest_word(capsys: Capture) -> None:
    Path("metrics.toml").write_text(
        'shuffler = "shuffler.example.org:443"\n'
        + MODELS.partition("[models.tariff]")[0].replace(
            "[models.churn]",
            '[models.churn]\ndescription = "Who leaves"\nowner = "you@example.org"\n'
            'expires = 2099-12-31\nepoch = "day"\nmin_batch = 100\nbegins = 2098-12-01',
        )
    )
    arguments = ("plan", "attack", "metrics.toml", "--fake", "0.01", "--simulate", "100")
    [row] = document_of(capsys, *arguments, "--format", "json")
    assert row["gain"] == pytest.approx(0.01 * row["worth"])
    # The pool's own farthest word is near the median of such pools.
    assert row["measured"] == pytest.approx(row["gain"], rel=0.15)
    assert 1 < row["worth"] < 10
    assert "churn" in output_of(capsys, *arguments)


@pytest.mark.usefixtures("folder")
def test_a_rehearsal_shows_the_quality_that_held_out_devices_would(capsys: Capture) -> None:
    Path("judged.toml").write_text(
        MODELS.replace('label = "left"\npositive', 'held_out = 0.3\nlabel = "left"\npositive', 1)
    )
    words = ("simulate", "churn", *TRAIN, "--catalog", "judged.toml", "--test", "test.csv")
    runs = document_of(capsys, *words, "--json")["runs"]
    for run in runs:
        holdout = run["told_by_held_out"]
        assert holdout["reports"] == 1200
        assert holdout["auc"]["low"] - 0.02 < run["auc"] < holdout["auc"]["high"] + 0.02
        assert sum(bucket["people"] for bucket in holdout["calibration"]) == pytest.approx(1)
    output = output_of(capsys, *words)
    assert "from the randomized reports of 1,200 people held out" in output
    assert "AUC by their reports: 0." in output
    plain = document_of(capsys, "simulate", "churn", *TRAIN, "--json")["runs"]
    assert all(run["told_by_held_out"] is None for run in plain)
