"""Models in a crowd: devices in so many rounds, whose central promises compose to one."""

import hashlib
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hubbub.aggregator.learning_rounds import step
from hubbub.authoring import read_with_promises
from hubbub.bundles.model_state import ModelState
from hubbub.catalog import Metric
from hubbub.catalog.models.model_metric import codes_of_round
from hubbub.client import MemoryState, Outcome
from hubbub.client.ledger import Account, charge
from hubbub.client.state.secret import DeviceMemo
from hubbub.client.testing import FakeClock, FakeShuffler, coins
from hubbub.errors import BadParameter, CatalogInvalid
from hubbub.keys.operator_key import read_operator_key
from hubbub.mechanisms import KeyedBits, tally
from hubbub.mechanisms.even_lies import even_lies
from hubbub.mechanisms.vector_codes import VectorCodes, pool_for, words_for
from hubbub.privacy.card import metric_card
from hubbub.privacy.crowd_guarantees import promise_epsilon_of
from hubbub.privacy.leaflet_and_reviewer_claims import leaflet
from hubbub.privacy.many_epochs import composed_epsilon
from hubbub.privacy.proofs import audit
from hubbub.privacy.proofs.audit import audit_metric
from hubbub.privacy.shuffled_histogram import central_epsilon
from hubbub.signing.sign_bundle import sign_models
from tests.support.bundles import DAY, Signed, make_signed
from tests.support.catalogs import model_toml, promised_catalog_of
from tests.support.commands import Capture, document_of, refusal_of
from tests.support.crowds import crowd_of
from tests.support.devices import idle_client

pytestmark = pytest.mark.slow

START = 20_010  # days since 1970: 2024-10-14
HOUR = 3600
ROUNDS, EACH, CENTRAL, DELTA, CROWD = 4, 2, 2.0, 1e-6, 300
CATALOG = 'shuffler = "127.0.0.1:1"\n'
MODEL = model_toml(
    "churn",
    "rounds = 4\nrounds_each = 2\nheld_out = 0.2\n",
    central_epsilon=2.0,
    delta=1e-6,
    crowd=300,
    positive="left",
)
TARIFF = (
    MODEL.replace('positive = "left"', 'classes = ["none", "month", "year"]')
    .replace("churn", "tariff")
    .replace('"logistic"', '"softmax"')
)


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Signed:
    folder = tmp_path_factory.mktemp("crowds")
    return make_signed(
        folder, CATALOG + MODEL + TARIFF, start=20_000 * DAY, reader=read_with_promises
    )


@pytest.fixture
def churn(signed: Signed) -> Metric:
    return signed.bundle.metrics["churn"]


def test_the_local_epsilon_is_the_largest_whose_rounds_together_keep_the_promise(
    churn: Metric,
) -> None:
    assert churn.mix == "epoch"
    assert churn.min_batch == CROWD
    assert (churn.limits.lifetime_epsilon, churn.limits.lifetime_central_epsilon) == (
        EACH * churn.epsilon,
        CENTRAL,
    )

    def together(epsilon: float) -> float:
        codes = VectorCodes(epsilon=epsilon, dimensions=4, words=words_for(epsilon), books=1)
        lies = even_lies(codes, epsilon)
        crowd = crowd_of(CROWD, lies.categories, epsilon, honest=0.9)
        return composed_epsilon([(crowd, EACH)], DELTA)

    assert together(churn.epsilon) <= CENTRAL < together(churn.epsilon + 0.01)
    assert 0.97 * CENTRAL < promise_epsilon_of(churn) <= CENTRAL
    judges = crowd_of(CROWD, 16, churn.epsilon, honest=0.9)
    assert central_epsilon(judges, DELTA) <= CENTRAL, "a crowd of those who judge keeps it, too"


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("crowd = 300\n", "", '"crowd": is missing; write crowd = 30000'),
        ("central_epsilon = 2.0\n", "", '"central_epsilon": is missing; write central_epsilon'),
        ("central_epsilon = 2.0\ndelta = 1e-06\ncrowd = 300\n", "", '"epsilon": is missing; write'),
        (
            "central_epsilon = 2.0\ndelta = 1e-06\ncrowd = 300\n",
            "epsilon = 2.0\nmin_batch = 20\n",
            '"rounds_each": needs a crowd; write central_epsilon and crowd',
        ),
        (
            "crowd = 300\n",
            "crowd = 300\nepsilon = 7.5\n",
            "7.5 reveals more than central_epsilon 2",
        ),
        (
            "crowd = 300\n",
            "crowd = 300\nepsilon = 0.1\n",
            "or with half of the words near: nothing",
        ),
        ("crowd = 300\n", "crowd = 300\nmin_batch = 20\n", "must be the crowd, 300; leave it out"),
        ("rounds_each = 2", "rounds_each = 6", "above 5, the number of rounds including round 0"),
        ("rounds_each = 2", "rounds_each = 0", '"rounds_each": must be a whole number in'),
        ("crowd = 300\n", 'crowd = 300\ncentral_period = "30d"\n', "is not known of a model"),
        ("central_epsilon = 2.0", "central_epsilon = 0.1", "the smallest possible: gather"),
    ],
)
def test_an_impossible_promise_is_refused_with_the_cause(before: str, after: str, why: str) -> None:
    crowd = "crowd = 10" if "0.1" in after else "crowd = 300"
    with pytest.raises(CatalogInvalid, match=why):
        promised_catalog_of(CATALOG + MODEL.replace(before, after).replace("crowd = 300", crowd))


def test_a_tier_whose_fewer_words_reveal_more_is_refused(tmp_path: Path) -> None:
    """From 2.5 down a book has half the words, of which relatively more are near."""
    path = tmp_path / "metrics.toml"
    text = CATALOG + MODEL.replace("rounds_each = 2\nheld_out = 0.2\n", "rounds_each = 1\n")
    text = text.replace("central_epsilon = 2.0", "central_epsilon = 1.089")
    path.write_text(text)
    largest = read_with_promises(path).metrics["churn"]
    assert largest.epsilon > 2.5
    assert promise_epsilon_of(largest) <= 1.089
    parameters = {"dimensions": 4, **pool_for(2.5)}
    limits = replace(largest.limits, lifetime_epsilon=2.5)
    larger = replace(largest, epsilon=2.5, parameters=parameters, limits=limits)
    assert promise_epsilon_of(larger) > 1.089
    path.write_text(text.replace("crowd = 300", "crowd = 300\nepsilon = 2.5"))
    with pytest.raises(CatalogInvalid, match=r"2\.5 makes books of fewer words, .* 2\.51 does"):
        read_with_promises(path)
    path.write_text(text.replace("crowd = 300", "crowd = 300\nepsilon = 2.4"))
    assert promise_epsilon_of(read_with_promises(path).metrics["churn"]) <= 1.089


def test_a_model_in_a_crowd_has_twelve_rounds_by_default(tmp_path: Path) -> None:
    path = tmp_path / "metrics.toml"
    path.write_text(CATALOG + MODEL.replace("rounds = 4\nrounds_each = 2\n", ""))
    model = read_with_promises(path).metrics["churn"].model
    assert model is not None
    assert (model.rounds, model.rounds_each) == (12, 4)


def test_a_bundle_whose_crowd_reveals_more_is_refused(churn: Metric) -> None:
    assert churn.model is not None
    with pytest.raises(BadParameter, match="a model's limits"):
        replace(churn, limits=replace(churn.limits, lifetime_epsilon=3 * churn.epsilon))
    alone = replace(churn.limits, lifetime_epsilon=churn.epsilon)
    with pytest.raises(BadParameter, match="rounds_each must be set for a model in a crowd"):
        replace(churn, model=replace(churn.model, rounds_each=0), limits=alone)


def test_a_device_is_in_the_stated_number_of_equally_likely_rounds(churn: Metric) -> None:
    model, people = churn.model, 4000
    assert model is not None
    turns = [model.turns(coins(str(number))) for number in range(people)]
    judges = sum(turn == {ROUNDS + 1} for turn in turns)
    assert {len(turn) for turn in turns if turn != {ROUNDS + 1}} == {EACH}
    pairs = Counter(tuple(sorted(turn)) for turn in turns if len(turn) == EACH)
    assert len(pairs) == 10, "every two of the rounds and that of columns"
    for count, chance in [(judges, 0.2), *((number, 0.08) for number in pairs.values())]:
        assert abs(count - people * chance) < 5.5 * (people * chance * (1 - chance)) ** 0.5


def test_a_device_reports_in_each_of_its_rounds_and_is_charged_for_both_promises(
    signed: Signed, churn: Metric
) -> None:
    key = read_operator_key(signed.keys)
    states = {n: MemoryState(hashlib.sha256(b"%d" % n).digest()) for n in range(12)}
    counts: Counter[int] = Counter()
    last: dict[int, tuple[float, float]] = {}
    for number in range(ROUNDS + 1):
        shuffler = FakeShuffler()
        if number:
            state = ModelState(number - 1, (0.5, 0.6, 0.4), (0.0, 0.0, 0.0, 0.0))
            shuffler.models = sign_models({"churn": state}, key)
        for device, device_state in states.items():
            client = idle_client(
                signed.bundle,
                device_state,
                shuffler,
                strict=True,
                clock=FakeClock(START * DAY + 2 * HOUR * number + 1),
                coins=coins(f"{device} {number}"),
            )
            outcome = client.learn("churn", [5, "paid"], "left")
            if outcome is not Outcome.NOT_ITS_ROUND:
                client.flush()
                assert client.learn("churn", [5, "paid"], "left") is Outcome.ALREADY_REPORTED
                counts[device] += 1
            [view] = [metric for metric in client.ledger().metrics if metric.name == "churn"]
            last[device] = view.spent, view.central
            assert (view.central_epsilon, view.central_period) == (CENTRAL, "life")
    assert set(counts.values()) == {EACH}
    for device, (spent, central) in last.items():
        each = counts[device] * churn.report_loss
        assert spent == pytest.approx(each)
        assert central == (CENTRAL if counts[device] else 0.0), "once for all rounds"


def test_a_development_device_reports_in_all_its_rounds(churn: Metric) -> None:
    metric, account = replace(churn, development=True), Account()
    for epoch in (1, 2):
        assert charge({"churn": account}, metric, epoch, "") is None
    assert charge({"churn": account}, metric, 3, "") is Outcome.OVER_BUDGET


def test_models_of_classes_report_columns_with_the_codes_of_all_rounds(signed: Signed) -> None:
    """So that all rounds are accounted for as one kind; what is beyond columns is no centre."""
    tariff = signed.bundle.metrics["tariff"]
    model = tariff.model
    assert model is not None
    codes = codes_of_round(tariff, 0)
    assert codes.dimensions == codes_of_round(tariff, 1).dimensions == 8
    source = KeyedBits(b"seed" * 8)
    vector = (0.0, 0.0, 0.6, 0.0, 0.0, 0.0, 0.8, 0.0)
    payloads = [codes.randomize(vector, source) for _ in range(CROWD)]
    cells = np.array(tally(codes.layout, payloads).cells, dtype=np.int64)
    first = step(tariff, model, [], cells, epoch=0, counted_at=0)
    assert len(first.centre) == 3
    assert first.centre[2] == max(first.centre) > 0
    below = np.array(tally(codes.layout, payloads[1:]).cells, dtype=np.int64)
    for few in (cells * 0, below):
        withheld = step(tariff, model, [], few, epoch=0, counted_at=0)
        assert withheld.centre == [0.0, 0.0, 0.0], "a round that is withheld teaches nothing"


def test_card_and_leaflet_show_both_promises(signed: Signed) -> None:
    sentence = metric_card(signed.bundle.metrics["churn"]).sentence
    local = EACH * signed.bundle.metrics["churn"].epsilon
    assert "All 2 rounds of a device together reveal epsilon 2 at delta 1e-06" in sentence
    assert f"or {local:.3g} to an observer of each single report" in sentence
    [question] = leaflet(promised_catalog_of(CATALOG + MODEL)).questions
    assert question.frequency == "2 times in all, at times that your device draws"


def test_the_audit_attacks_whole_rounds_of_a_model(
    churn: Metric, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "_EPOCHS", 100_000)
    memo = DeviceMemo(b"s" * 32, "churn")
    checks = [
        check
        for check in audit_metric(churn, KeyedBits(b"seed" * 8), lambda _: memo, 1000, 1e-6)
        if check and check.kind.startswith("a whole epoch")
    ]
    assert len(checks) == 4
    assert all(check.passed for check in checks)
    near = [check for check in checks if check.kind.endswith("delta 0.01")]
    assert all(check.lower and check.claim and check.lower > 0.3 * check.claim for check in near)


QUESTION = ["plan", "central", "--model", "linear", "--features", "3", "--epsilon", "2"]


def test_a_plan_shows_the_loss_of_rounds_in_a_crowd(capsys: Capture) -> None:
    rows = document_of(capsys, *QUESTION, "--reports", "600", "--format", "json")["rows"]
    assert {(row["rounds"], row["rounds_each"]) for row in rows} >= {(8, 1), (20, 4)}
    for row in rows:
        mean = 600 * row["rounds_each"] / (row["rounds"] + 1)
        assert row["crowd"] < mean
        assert row["lifetime_epsilon"] == row["rounds_each"] * row["epsilon"]
    assert "required: --reports" in refusal_of(capsys, *QUESTION)
    assert "so few people cannot keep" in refusal_of(capsys, *QUESTION, "--reports", "20")


@pytest.mark.thorough
def test_no_planned_crowd_is_larger_than_a_catalog_takes(capsys: Capture) -> None:
    many = document_of(capsys, *QUESTION, "--reports", "1e8", "--format", "json")["rows"]
    assert {row["crowd"] for row in many} == {1_000_000}


def test_a_model_in_a_crowd_is_rehearsed(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "metrics.toml"
    path.write_text(CATALOG + MODEL.replace("positive", 'label = "gone"\npositive'))
    chance = np.random.default_rng(7)
    lines = [
        f"{hours},{plan},{'left' if hours < 20 and plan == 'free' else 'stayed'}"
        for hours, plan in zip(
            chance.integers(0, 41, 2500).tolist(),
            chance.choice(["free", "paid"], 2500).tolist(),
            strict=True,
        )
    ]
    people = tmp_path / "people.csv"
    people.write_text("hours,plan,gone\n" + "\n".join(lines))
    arguments = ["simulate", "churn", "--catalog", str(path), "--values", str(people), "--json"]
    document = document_of(capsys, *arguments, "--runs", "1", "--seed", "3")
    assert (document["rounds"], document["rounds_each"]) == (ROUNDS, EACH)
    assert document["summary"]["auc"]["mean"] > 0.8
    assert "a crowd of 300 would never leave" in refusal_of(capsys, *arguments, "--reports", "700")
