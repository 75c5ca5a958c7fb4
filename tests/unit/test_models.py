"""Models from devices: one report each, by the state of their round alone; a step a round."""

import asyncio
import hashlib
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hubbub.aggregator.learning_rounds import ModelLearner, Rounds
from hubbub.aggregator.query import QueryEngine
from hubbub.aggregator.query.learned_models import LearnedModel, learned_model
from hubbub.authoring import read_catalog, read_with_promises
from hubbub.authoring.typed_modules import typescript_module
from hubbub.bundles.encoding import to_text
from hubbub.bundles.model_state import ModelState, open_models
from hubbub.catalog import Metric
from hubbub.catalog.models.model_metric import codes_of_round, judging, with_minute_rounds
from hubbub.cli.terminal.answer_tables import show_calibration
from hubbub.client import Client, MemoryState, Outcome
from hubbub.client.state.secret import DeviceMemo
from hubbub.client.testing import FakeClock, FakeShuffler, coins
from hubbub.conservation import Window
from hubbub.errors import (
    BadParameter,
    BundleRefused,
    CatalogInvalid,
    UnknownMetric,
    ValueOutOfDomain,
)
from hubbub.keys.opening_key_files import read_opening_keys
from hubbub.keys.operator_key import read_operator_key
from hubbub.mechanisms import BitSource, KeyedBits, tally
from hubbub.mechanisms.vector_codes import VectorCodes, pool_for
from hubbub.privacy.crowd_guarantees import amplified_of, shuffled_of
from hubbub.privacy.epsilon_words_and_advice import advice
from hubbub.privacy.leaflet_and_reviewer_claims import leaflet
from hubbub.privacy.proofs import audit
from hubbub.privacy.proofs.audit import Check, audit_metric
from hubbub.runtime.clocks import Clocks
from hubbub.runtime.redis.command_sender import MemoryServer
from hubbub.sealing.hpke import open_sealed, seal_info
from hubbub.signing.sign_bundle import sign_models
from tests.conftest import CATALOG
from tests.support.bundles import DAY, Signed, make_signed
from tests.support.catalogs import catalog_of, catalog_toml, metric_toml, model_toml
from tests.support.commands import output_of
from tests.support.devices import idle_client
from tests.support.fakes import MemoryStore
from tests.support.stores import commit_of

START = 20_010
MODELS = ("churn", "tariff")
HOUR = 3600
ROUNDS = 4
PART = 0.2
SIZES = {"min_batch": 20, "rounds": 4, "held_out": 0.2, "expires": date(2099, 6, 30)}
CLASSES = ["none", "month", "year"]
MODEL = model_toml("churn", description="Who leaves", epsilon=4.0, positive="left", **SIZES)
MODEL += model_toml(
    "tariff", description="What they choose", kind="softmax", epsilon=6.0, classes=CLASSES, **SIZES
)
# Who uses it little and pays nothing leaves.
PEOPLE = 1000


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Signed:
    folder = tmp_path_factory.mktemp("models")
    return make_signed(folder, CATALOG + MODEL, start=20_000 * DAY)


@dataclass
class Devices:
    """Devices of one bundle, whose reports are counted in totals as the aggregator has them."""

    signed: Signed
    store: MemoryStore = field(default_factory=MemoryStore)
    server: MemoryServer = field(default_factory=MemoryServer)
    models: bytes = b""
    now: float = START * DAY
    model: str = "churn"

    @property
    def metric(self) -> Metric:
        return self.signed.bundle.metrics[self.model]

    def own_state(self, number: int) -> MemoryState:
        return MemoryState(hashlib.sha256(number.to_bytes(4, "big")).digest())

    def client(
        self,
        number: int,
        shuffler: FakeShuffler,
        *,
        strict: bool = True,
        state: MemoryState | None = None,
    ) -> Client:
        return idle_client(
            self.signed.bundle,
            state or self.own_state(number),
            shuffler,
            strict=strict,
            clock=FakeClock(self.now),
            coins=coins(str(number)),
        )

    def turn(self, number: int) -> int:
        """In which round a device is, found by trying each."""
        for at in range(ROUNDS + 2):
            self.now = START * DAY + 2 * HOUR * at + 1
            if self.client(number, FakeShuffler()).learn("churn", [1, "free"], 0) is not (
                Outcome.NOT_ITS_ROUND
            ):
                return at
        raise AssertionError("it is in none")

    def tell(self, people: range, shuffler: FakeShuffler) -> int:
        """Everybody's app says what it knows: how many reports left."""
        shuffler.models = self.models
        for number in people:
            hours, paid = number % 40, number % 3 == 0
            client = self.client(number, shuffler)
            label = "left" if hours < 20 and not paid else "stayed"
            if self.model == "tariff":
                label = "year" if paid else "none" if hours < 20 else "month"
            plan = "paid" if paid else "free"
            outcome = client.learn(self.model, {"hours": hours, "plan": plan}, label)
            if outcome is not Outcome.NOT_ITS_ROUND:
                client.flush()
        return len(shuffler.reports())

    async def count(self, shuffler: FakeShuffler) -> None:
        keys = {
            opening_key.id: opening_key.load()
            for opening_key in read_opening_keys(self.signed.keys / "opening.keys.json")
        }
        layout = self.metric.randomizer.layout
        payloads = [
            open_sealed(report.sealed, keys[report.key_id], seal_info(report.stream, report.epoch))
            for report in shuffler.reports()
        ]
        [window] = {Window(report.stream, report.epoch) for report in shuffler.reports()}
        cells = np.array(tally(layout, payloads).cells, dtype=np.int64)
        tags = [hashlib.sha256(report.sealed).digest()[:16] for report in shuffler.reports()]
        commit = commit_of(tags, cells, batch_id=b"%016d" % window.epoch)
        await self.store.add(window, commit)

    def learner(self) -> ModelLearner:
        bundle = self.signed.bundle
        return ModelLearner(
            lambda: bundle, self.store, Rounds(self.server), Clocks(lambda: self.now)
        )

    async def learned(self) -> LearnedModel:
        clocks = Clocks(lambda: self.now)
        query = QueryEngine(self.signed.bundle, self.store, clocks=clocks, server=self.server)
        return await learned_model(query, self.model, 0.95)

    async def state(self) -> bytes:
        round_state = await self.learned()
        model_state = ModelState(
            round_state.number,
            *map(tuple, (round_state.centre, round_state.weights, round_state.edges)),
        )
        return sign_models({self.model: model_state}, read_operator_key(self.signed.keys))


async def _all_rounds(devices: Devices) -> LearnedModel:
    for number in range(ROUNDS + 2):
        devices.now = START * DAY + 2 * HOUR * number + 60
        shuffler = FakeShuffler()
        assert devices.tell(range(PEOPLE), shuffler) > 0
        await devices.count(shuffler)
        assert await devices.learner().look() == 0, "the round is not over"
        devices.now = START * DAY + 2 * HOUR * (number + 1) + 121
        looked = await asyncio.gather(*(devices.learner().look() for _ in range(3)))
        # Models of one bundle have their rounds at once; nobody tells of the other one.
        assert sum(looked) == len(MODELS), "several looked, and took one step of each"
        assert await devices.learner().look() == 0
        devices.models = await devices.state()
    return await devices.learned()


@pytest.mark.parametrize(
    ("begins", "expires", "message"),
    [
        ("2024-10-14", "2099-06-30", "churn: its first round, of 2024-10-14T00:00, is over"),
        ("2099-06-30", "2099-06-30", ""),
        ("2099-06-30T18:00:00Z", "2099-06-30", "before its last round, of 2099-07-01T04:00, is"),
    ],
)
def test_a_model_that_cannot_finish_is_named_by_the_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], begins: str, expires: str, message: str
) -> None:
    path = tmp_path / "metrics.toml"
    model = MODEL.replace("2024-10-14", begins).replace("2099-06-30", expires)
    path.write_text('shuffler = "127.0.0.1:1"\n' + model)
    out = " ".join(output_of(capsys, "catalog", "check", str(path)).split())
    assert message in out
    assert ("round, of" in out) == bool(message)


@pytest.mark.slow
def test_devices_teach_a_model_round_by_round_and_each_in_one(signed: Signed) -> None:
    result = asyncio.run(_all_rounds(Devices(signed)))
    assert (result.finished, result.number, result.next) == (True, ROUNDS, None)
    judged = result.held_out
    assert judged is not None
    assert result.reports + judged.reports == PEOPLE, "every device told it once"
    assert judged.reports / PEOPLE == pytest.approx(
        PART, abs=5 * (PART * (1 - PART) / PEOPLE) ** 0.5
    )
    assert (judged.share, judged.state) == (PART, "finished")
    assert judged.auc is not None
    assert judged.auc_low is not None
    assert judged.auc_low > 0.5, "the model ranks people who did not train it"
    assert judged.calibration[-1].estimate > judged.calibration[0].estimate
    assert sum(bucket.people for bucket in judged.calibration) == pytest.approx(1)
    by_name = {coefficient.name: coefficient for coefficient in result.coefficients}
    assert list(by_name) == ["hours", "plan=free", "plan=paid", "intercept"]
    assert by_name["hours"].high < 0, "who uses it much stays"
    assert by_name["plan=free"].coefficient > by_name["plan=paid"].coefficient
    assert [step.state for step in result.steps] == ["finished"] * (ROUNDS + 1)
    share = result.steps[0].reports / PEOPLE  # by secrets that are the same in every run
    assert share == pytest.approx(0.1, abs=5 * (0.1 * 0.9 / PEOPLE) ** 0.5)


@pytest.mark.thorough
def test_devices_teach_a_model_to_tell_classes_apart(signed: Signed) -> None:
    devices = Devices(signed, model="tariff")
    result = asyncio.run(_all_rounds(devices))
    judged = result.held_out
    assert judged is not None
    assert result.reports + judged.reports == PEOPLE, "every device told it once"
    assert judged.auc is None
    assert judged.accuracy_low is not None
    assert judged.accuracy_low > 1 / 3, "the model tells classes of people who did not train it"
    assert (len(result.centre), len(result.weights), len(result.edges)) == (3, 2 * 4, 11)
    coefficients = {
        (coefficient.of_class, coefficient.name): coefficient for coefficient in result.coefficients
    }
    assert [name for label, name in coefficients if label == "none"] == [
        "hours",
        "plan=free",
        "plan=paid",
        "intercept",
    ]
    for name in ("hours", "plan=paid", "intercept"):
        every = [coefficients[label, name].coefficient for label in ("none", "month", "year")]
        assert sum(every) == pytest.approx(0.0, abs=1e-9)
    assert coefficients["year", "plan=paid"].low > 0, "who pays takes a year"
    assert coefficients["none", "hours"].coefficient < coefficients["month", "hours"].coefficient


def test_development_rounds_last_a_minute_and_begin_with_the_first_report() -> None:
    metric = with_minute_rounds(
        catalog_of(CATALOG + MODEL).metrics["churn"], datetime(2024, 10, 14, tzinfo=UTC)
    )
    learning = metric.model
    assert learning is not None
    first = START * DAY // 60
    assert [learning.round_in(first + at, "minute") for at in range(-1, 8)] == [
        None,
        0,
        1,
        2,
        3,
        4,
        5,
        0,
        1,
    ]
    store, server, now = MemoryStore(), MemoryServer(), float(START * DAY)
    rounds = Rounds(server)
    metrics = {"churn": replace(metric, development=True)}
    bundle = SimpleNamespace(metrics=metrics, streams=metrics, development=True)

    def look() -> int:
        learner = ModelLearner(lambda: cast("Any", bundle), store, rounds, Clocks(lambda: now))
        return asyncio.run(learner.look())

    def following() -> str | None:
        query = QueryEngine(cast("Any", bundle), store, clocks=Clocks(lambda: now), server=server)
        return asyncio.run(learned_model(query, "churn", 0.95)).next

    now += 61
    assert following() == "2024-10-14T00:01:03Z", "once its reports have come"
    now += 10 * 60 - 1
    assert look() == 0, "nobody told of round 0"
    assert following() == "2024-10-14T00:13:03Z", "the next round 0 is over then"
    cells = np.zeros(metric.randomizer.layout.size, dtype=np.int64)
    cells[:30] = 1
    commit = commit_of([b"%016d" % 2], cells, batch_id=b"%016d" % 1)
    asyncio.run(store.add(Window("churn", first + 6), commit))
    now = (first + 7) * 60 + 4
    assert look() == 1
    now = (first + 8) * 60 + 4
    assert look() == 1, "the next rounds end whoever tells"
    done = asyncio.run(rounds.finished("churn"))
    assert [
        (model_round.number, model_round.epoch, model_round.reports) for model_round in done
    ] == [
        (0, first + 6, 30),
        (1, first + 7, 0),
    ]


def test_epochs_of_a_minute_are_of_development_alone(signed: Signed) -> None:
    churn = with_minute_rounds(signed.bundle.metrics["churn"], datetime(2024, 10, 14, tzinfo=UTC))
    with pytest.raises(BadParameter, match="only for development"):
        replace(signed.bundle, metrics={"churn": churn}, history={})


@pytest.fixture
def late(signed: Signed) -> tuple[Devices, int]:
    """Devices in the first round that needs a state, and the number of one of them."""
    devices = Devices(signed)
    number = next(n for n in range(1000) if devices.turn(n) == 1)
    devices.now = START * DAY + 2 * HOUR + 1
    return devices, number


STATE = ModelState(0, (0.5, 0.6, 0.4), (0.0, 0.0, 0.0, 0.0))


def test_an_example_waits_in_memory_for_the_state_of_its_own_round(
    late: tuple[Devices, int],
) -> None:
    devices, number = late
    key = read_operator_key(devices.signed.keys)
    shuffler = FakeShuffler()
    client = devices.client(number, shuffler)
    assert client.learn("churn", [50, "paid"], 1) is Outcome.AWAITS_STATE
    assert client.clipped == {"churn": 1}, "50 hours are above 40"
    assert not client.flush()
    assert shuffler.reports() == [], "nothing is told without it"
    assert all(metric.spent == 0 for metric in client.ledger().metrics if metric.name == "churn")
    shuffler.models = sign_models({"churn": ModelState(1, STATE.centre, STATE.weights)}, key)
    client.flush()
    assert shuffler.reports() == [], "that one is of the round after"
    client = devices.client(number, shuffler)
    shuffler.models = sign_models({"churn": STATE}, key)
    assert client.learn("churn", [50, "paid"], 1) is Outcome.AWAITS_STATE
    assert client.flush()
    [report] = shuffler.reports()
    assert report.stream == "churn"
    assert client.learn("churn", [5, "paid"], 1) in {
        Outcome.ALREADY_REPORTED,
        Outcome.OVER_BUDGET,
    }
    [spent] = [metric.spent for metric in client.ledger().metrics if metric.name == "churn"]
    assert 3.99 < spent <= 4.0


def test_an_example_that_waits_at_close_is_dropped_and_reported_to_the_app(
    late: tuple[Devices, int],
) -> None:
    devices, number = late
    for end, reason in ((Client.close, "awaits_state"), (Client.disable, "disabled")):
        client = devices.client(number, FakeShuffler())
        for hours in (50, 5):  # one in the place of the other
            assert client.learn("churn", [hours, "paid"], 1) is Outcome.AWAITS_STATE
        end(client)
        assert client.close() is (reason == "disabled"), "of what was given up it is not silent"
        assert client.dropped == {"replaced": 1, reason: 1}


def test_an_example_refused_with_its_state_is_dropped_and_counted(
    late: tuple[Devices, int],
) -> None:
    devices, number = late
    shuffler, state = FakeShuffler(), devices.own_state(number)
    shuffler.models = sign_models({"churn": STATE}, read_operator_key(devices.signed.keys))
    first, other = (devices.client(number, shuffler, state=state) for _ in range(2))
    for client in (first, other):
        assert client.learn("churn", [50, "paid"], 1) is Outcome.AWAITS_STATE
    assert first.flush()
    other.prefer(None)  # which reads what the first has spent
    assert other.flush()
    assert other.dropped == {"already_reported": 1}
    assert len(shuffler.reports()) == 1


def test_a_device_that_reported_its_example_awaits_no_state_after_a_restart(
    late: tuple[Devices, int],
) -> None:
    devices, number = late
    shuffler, state = FakeShuffler(), devices.own_state(number)
    shuffler.models = sign_models({"churn": STATE}, read_operator_key(devices.signed.keys))
    client = devices.client(number, shuffler, state=state)
    assert client.learn("churn", [50, "paid"], 1) is Outcome.AWAITS_STATE
    assert client.flush()
    count = len(shuffler.submissions)
    again = devices.client(number, shuffler, state=state)
    assert again.learn("churn", [5, "paid"], 1) is Outcome.ALREADY_REPORTED
    assert again.flush()
    assert len(shuffler.submissions) == count, "it asks for nothing"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_waiting_example_stays_with_the_parent_after_a_fork(late: tuple[Devices, int]) -> None:
    devices, number = late
    shuffler = FakeShuffler()
    client = devices.client(number, shuffler)
    assert client.learn("churn", [50, "paid"], 1) is Outcome.AWAITS_STATE
    shuffler.models = sign_models({"churn": STATE}, read_operator_key(devices.signed.keys))
    if not (child := os.fork()):
        client.flush()
        os._exit(len(shuffler.reports()))
    assert os.waitpid(child, 0)[1] == 0
    assert client.flush()
    assert len(shuffler.reports()) == 1


def test_a_held_out_device_waits_for_the_finished_model(signed: Signed) -> None:
    devices = Devices(signed)
    number = next(n for n in range(1000) if devices.turn(n) == ROUNDS + 1)
    devices.now = START * DAY + 2 * HOUR * (ROUNDS + 1) + 1
    key, shuffler = read_operator_key(signed.keys), FakeShuffler()
    client = devices.client(number, shuffler)
    assert client.learn("churn", [5, "paid"], 1) is Outcome.AWAITS_STATE
    last = ModelState(ROUNDS, STATE.centre, STATE.weights)
    shuffler.models = sign_models({"churn": last}, key)
    client.flush()
    assert shuffler.reports() == [], "without edges nobody can be placed"
    edges = tuple(x / 10 for x in range(7))
    client = devices.client(number, shuffler)
    shuffler.models = sign_models({"churn": replace(last, edges=edges)}, key)
    client.learn("churn", [5, "paid"], 1)
    assert client.flush()
    [report] = shuffler.reports()
    assert len(report.sealed) == devices.metric.sealed_bytes, "as long as a gradient"
    [spent] = [metric.spent for metric in client.ledger().metrics if metric.name == "churn"]
    assert 3.99 < spent <= 4.0
    assert client.learn("churn", [5, "paid"], 1) is not Outcome.QUEUED


def _refused(devices: Devices) -> Iterator[tuple[bytes, str]]:
    key, stranger = read_operator_key(devices.signed.keys), Ed25519PrivateKey.generate()
    good = sign_models({"churn": STATE}, key)
    yield sign_models({"churn": STATE}, stranger), "never handed over to that key"
    yield good.replace(b"0.5", b"0.4"), "altered after signing"
    yield b"{}\n{}", "not a state of models"
    yield good[:-30], "altered after signing"
    two = ModelState(0, (0.5,), (0.0, 0.0))
    yield sign_models({"churn": two}, key), "1 columns and 2 weights, in the bundle 3 and 4"
    yield sign_models({"tariff": STATE}, key), "3 columns and 4 weights, in the bundle 3 and 8"


def test_a_foreign_altered_or_misfitting_model_state_is_refused(
    late: tuple[Devices, int], caplog: pytest.LogCaptureFixture
) -> None:
    devices, number = late
    for bad, why in _refused(devices):
        caplog.clear()
        shuffler = FakeShuffler()
        shuffler.models = bad
        client = devices.client(number, shuffler)
        assert client.learn("churn", [5, "free"], "left") is Outcome.AWAITS_STATE
        client.flush()
        assert shuffler.reports() == []
        assert "the state of models is refused" in caplog.text
        assert why in caplog.text


@pytest.mark.parametrize(
    ("then", "why"),
    [
        (STATE, "of round 0, older than 2"),
        (replace(STATE, number=2, weights=(1.0, 0.0, 0.0, 0.0)), "two different states of round 2"),
    ],
)
def test_an_older_state_and_another_of_one_number_are_refused(
    late: tuple[Devices, int], caplog: pytest.LogCaptureFixture, then: ModelState, why: str
) -> None:
    devices, number = late
    shuffler = FakeShuffler()
    client = devices.client(number, shuffler)
    assert client.learn("churn", [5, "free"], "left") is Outcome.AWAITS_STATE
    for state in (replace(STATE, number=2), then):
        assert caplog.text == ""
        shuffler.models = sign_models({"churn": state}, read_operator_key(devices.signed.keys))
        client.flush()
    assert shuffler.reports() == []
    assert why in caplog.text


@pytest.mark.parametrize(
    ("features", "label", "why"),
    [
        ([1], 0, "1 features were passed, but the model has 2"),
        ({"hours": 1}, 0, "missing: plan; unknown: 0"),
        ({"hours": 1, "plan": "free", "age": 3}, 0, "missing: none; unknown: 1"),
        ([float("nan"), "free"], 0, 'feature "hours": the value is not a finite number'),
        (
            [1, "gold"],
            0,
            'the value is not one of the 2 listed values: "free", "paid"',
        ),
        ([1, ["free"]], 0, 'feature "plan": the value is not one'),
        ([1, np.array(["free", "paid"])], 0, 'feature "plan": the value is not one'),
        ([np.array([1.0, 2.0]), "free"], 0, 'feature "hours": the value is not a finite number'),
        ([1, "free"], np.array([0, 1]), "label is neither 0 nor 1"),
        ([1, "free"], 2, "label is neither 0 nor 1"),
        ([1, "free"], float("nan"), "label is neither 0 nor 1"),
        (7, 0, "features must be a mapping"),
        ([1, "free"], "Left ", "neither positive nor negative as written"),
    ],
)
def test_an_invalid_training_example_is_refused_and_not_shown(
    signed: Signed, features: object, label: object, why: str
) -> None:
    devices = Devices(signed)
    shuffler = FakeShuffler()
    with pytest.raises(ValueOutOfDomain, match=why) as raised:
        devices.client(0, shuffler).learn("churn", features, label)
    assert str(raised.value).startswith('model "churn": ')
    assert "gold" not in str(raised.value)
    assert "age" not in str(raised.value)
    lenient = devices.client(0, shuffler, strict=False)
    assert lenient.learn("churn", features, label) is Outcome.NOT_A_VALUE
    assert lenient.flush()
    assert shuffler.submissions == []


@pytest.mark.parametrize(
    "label",
    [
        "Month",
        "month ",
        "",
        "months",
        None,
        0,
        1.0,
        True,
        float("nan"),
        b"month",
        ["month"],
        np.array(["month", "year"]),
    ],
)
def test_a_label_that_is_no_class_is_refused_and_not_shown(signed: Signed, label: object) -> None:
    devices, shuffler = Devices(signed, model="tariff"), FakeShuffler()
    named = (
        'model "tariff": the label is not one of the classes as written: "none", "month", "year"$'
    )
    with pytest.raises(ValueOutOfDomain, match=named):
        devices.client(0, shuffler).learn("tariff", [1, "free"], label)
    lenient = devices.client(0, shuffler, strict=False)
    assert lenient.learn("tariff", [1, "free"], label) is Outcome.NOT_A_VALUE
    assert lenient.learn("tariff", [1, "free"], np.str_("month")) is not Outcome.NOT_A_VALUE
    assert lenient.flush()
    assert shuffler.submissions == []


def test_numbers_of_numpy_are_taken_as_pythons_own(signed: Signed) -> None:
    model = signed.bundle.metrics["churn"].model
    assert model is not None
    plain = model.example([12.5, "free"], 1)
    for hours, label in ((np.float32(12.5), np.int64(1)), (np.float64(12.5), np.True_)):
        assert model.example([hours, np.str_("free")], label) == plain
    ridge = replace(model, kind="linear", range=(0.0, 100.0))
    assert ridge.example([1, "free"], np.float32(50)) == ridge.example([1, "free"], 50)


def test_models_and_metrics_are_distinguished(signed: Signed) -> None:
    client = Devices(signed).client(0, FakeShuffler())
    nameless: list[Any] = [None, ["churn"], "chrun", "theme"]
    for name in nameless:
        with pytest.raises(UnknownMetric, match=r"no model of this name; it has churn, "):
            client.learn(name, [1], 0)
        if name != "theme":
            with pytest.raises(UnknownMetric, match="the bundle has no metric of this name"):
                client.report(name, "x")
    with pytest.raises(ValueOutOfDomain, match='"churn" is a model'):
        client.report("churn", (1.0, 0.0, 0.0, 0.0))


def test_the_state_says_who_signed_and_is_the_same_bytes(signed: Signed) -> None:
    key = read_operator_key(signed.keys)
    state_bytes = sign_models({"churn": STATE}, key)
    assert state_bytes == sign_models({"churn": STATE}, key)
    assert open_models(state_bytes, operator=signed.bundle.operator).states == {"churn": STATE}
    assert json.loads(state_bytes.split(b"\n")[0])["operator"] == to_text(signed.bundle.operator)
    with pytest.raises(BadParameter):
        ModelState(0, (0.5,), (0.0,))
    with pytest.raises(BadParameter, match="edges that do not ascend"):
        replace(STATE, edges=(1.0, 0.0))
    with pytest.raises(BadParameter, match="no weights"):
        ModelState(0, (0.5,), (1e300, 0.0))


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ('kind = "logistic"', 'kind = "forest"', '"kind": must be one of logistic'),
        ("hours = [0, 40]", "hours = [40, 0]", "write numbers that ascend"),
        ("hours = [0, 40]", "hours = 7", "write its range"),
        ("hours = [0, 40]", "hours = [-1e308, 1e308]", "too far apart for floating point"),
        (
            'kind = "logistic"',
            'kind = "linear"\nrange = [-1e308, 1e308]',
            "two numbers, the smaller",
        ),
        ("held_out = 0.2", "held_out = 0.9", '"held_out": must be a share in'),
        ("rounds = 4", "rounds = 1", '"rounds": must be a whole number in'),
        ("begins = 2024-10-14", "begins = 7", '"begins": must be a date'),
        ("epsilon = 4.0", "epsilonn = 4.0", '"epsilonn": is not known of a model'),
        ("[models.churn]", "[models.theme]", '"theme" is a metric, too'),
        (
            'positive = "left"',
            'positive = "left"\nnegative = "left"',
            "write both, with different texts",
        ),
        ('positive = "left"', 'negative = "stayed"', "write both, with different texts"),
        ('positive = "left"', 'positive = "left"\npenalty = 1.0', '"penalty" is for ridge'),
        ('positive = "left"', 'classes = ["a", "b", "c"]', '"classes": is of softmax'),
        (
            'classes = ["none", "month", "year"]',
            "",
            '"classes": is missing: softmax distinguishes 3',
        ),
        ('classes = ["none", "month", "year"]', 'classes = ["a", "b"]', '"classes": has 2, but'),
        (
            '["none", "month", "year"]',
            '["a", 3]',
            "none empty and none twice$",
        ),
        ('["none", "month", "year"]', '["a", "b", "a"]', '"classes": lists a value twice'),
        ('["none", "month", "year"]', '["a", "b", " "]', "an empty class"),
        ('["none", "month", "year"]', '["a", "b", "c"]\nrange = [0, 9]', "softmax has none"),
        ('["none", "month", "year"]', '["a", "b", "c"]\npositive = "a"', 'softmax has "classes"'),
        (
            "hours = [0, 40]",
            f"hours = {[*range(701)]}",
            "3 classes and 702 columns has 1406 numbers, above 1001",
        ),
    ],
)
def test_mistakes_in_a_table_of_a_model_are_named(before: str, after: str, why: str) -> None:
    text = MODEL.replace(before, after)
    if "theme" in after:
        text = text.replace("[models.churn.features]", "[models.theme.features]")
    with pytest.raises(CatalogInvalid, match=why):
        catalog_of(CATALOG + text)


def test_a_third_label_is_refused_if_two_are_listed(tmp_path: Path) -> None:
    path = tmp_path / "metrics.toml"
    path.write_text(
        CATALOG + MODEL.replace('positive = "left"', 'positive = "left"\nnegative = "stayed"')
    )
    learning = read_catalog(path).metrics["churn"].model
    assert learning is not None
    assert [learning.example([1, "free"], label).label for label in ("left", "stayed")] == [1, 0]
    with pytest.raises(ValueOutOfDomain, match="neither positive nor negative"):
        learning.example([1, "free"], "lefft")


def test_a_changed_model_needs_a_new_name(signed: Signed, tmp_path: Path) -> None:
    from hubbub.signing.metric_changes import refuse_changes

    path = tmp_path / "metrics.toml"
    path.write_text(CATALOG + MODEL.replace("[0, 40]", "[0, 50]"))
    with pytest.raises(BundleRefused, match='metric "churn": model changed under an old name'):
        refuse_changes(read_catalog(path).metrics, signed.bundle)


def test_the_shuffled_epsilon_of_a_judged_model_covers_both_kinds_of_reports(
    signed: Signed,
) -> None:
    metric = replace(
        signed.bundle.metrics["churn"],
        epsilon=5.0,
        limits=replace(signed.bundle.metrics["churn"].limits, lifetime_epsilon=5.0),
        parameters={"dimensions": 4, **pool_for(5.0)},
    )
    gradients, judges = (
        amplified_of(randomizer, 5000) for randomizer in (metric.randomizer, judging(metric))
    )
    assert judges.epsilon > gradients.epsilon, "values of it lie further apart"
    assert shuffled_of(metric, 5000).epsilon == judges.epsilon
    assert metric.model is not None
    plain = replace(metric, model=replace(metric.model, held_out=0.0))
    assert shuffled_of(plain, 5000).epsilon == gradients.epsilon


def test_the_card_advises_only_fields_that_a_model_has(signed: Signed) -> None:
    [sentence] = advice([signed.bundle.metrics["churn"]])
    assert "reports to it once: at epsilon = 2.0 it reveals 2 (fair)" in sentence
    assert "hubbub plan model logistic" in sentence
    assert "rappor" not in sentence
    assert "lifetime_epsilon" not in sentence


@pytest.mark.parametrize(
    ("more", "lasts", "stops"),
    [
        ('mechanism = "grr"\nepsilon = 1.0\nvalues = ["a", "b"]\nmin_batch = 100', True, True),
        ('mechanism = "grr"\nepsilon = 3.0\nvalues = ["a", "b"]\nmin_batch = 100', True, False),
        (
            'mechanism = "auto"\nkind = "vector"\ncoordinates = 3\nepsilon = 2.0\nmin_batch = 100',
            False,
            True,
        ),
        (
            'mechanism = "grr"\nvalues = ["a", "b"]\ncentral_epsilon = 1.0\ncrowd = 5000',
            False,
            False,
        ),
    ],
)
def test_the_card_advises_nothing_that_the_catalog_would_refuse(
    tmp_path: Path, more: str, lasts: bool, stops: bool
) -> None:
    path = tmp_path / "metrics.toml"
    path.write_text(
        catalog_toml(metric_toml("asked", more, min_batch=None, lifetime_epsilon=500.0))
    )
    [sentence] = advice(list(read_with_promises(path).metrics.values()))
    assert ("rappor" in sentence) == lasts
    assert ("lifetime_epsilon = 2.0" in sentence) == stops


def test_the_leaflet_says_that_a_device_reports_to_a_model_once(tmp_path: Path) -> None:
    path = tmp_path / "metrics.toml"
    path.write_text(CATALOG + MODEL)
    frequencies = {
        question.asks: question.frequency
        for question in leaflet(read_with_promises(path)).questions
    }
    for question in ("Who leaves", "What they choose"):
        assert frequencies[question] == "once for life, at a time that your device draws"


def test_the_shuffled_epsilon_covers_the_first_round_and_the_others(signed: Signed) -> None:
    metric = signed.bundle.metrics["tariff"]
    rounds = [codes_of_round(metric, number) for number in (0, 1)]
    assert [round_mechanism.dimensions for round_mechanism in rounds] == [4, 8]
    assert rounds[0].layout == rounds[1].layout, "totals of both are alike"
    assert all(3.99 < round_mechanism.privacy_loss() / 1.5 <= 4 for round_mechanism in rounds)
    epsilons = [amplified_of(round_mechanism, 5000).epsilon for round_mechanism in rounds]
    epsilons.append(amplified_of(judging(metric), 5000).epsilon)
    assert shuffled_of(metric, 5000).epsilon == max(epsilons)


@pytest.mark.slow
def test_the_audit_attacks_held_out_devices_of_a_model_too(
    signed: Signed, monkeypatch: pytest.MonkeyPatch
) -> None:
    metric = signed.bundle.metrics["churn"]

    def steps(people: int) -> Iterator[Check | None]:
        memo = DeviceMemo(b"s" * 32, "churn")
        return audit_metric(metric, KeyedBits(b"seed" * 8), lambda _: memo, people, 1e-6)

    def lower() -> tuple[bool, float]:
        check = next(step for step in steps(3000) if step and step.kind == "a judge's report")
        assert check.lower is not None
        return check.passed, check.lower

    every = [step for step in steps(200) if step]
    kinds = [check.kind for check in every][1:]
    assert kinds == ["a judge's report", "one report, by 4 of its books"]
    assert all(check.passed for check in every)
    success, lower_bound = lower()
    assert success
    assert lower_bound > 2, "the attack comes near to 4"

    def tells_all(_: Metric, _score: float, label: float, *_more: Any) -> bytes:
        code = 2 * (judging(metric).categories // 2 - 1) + 1 if label else 0
        return codes_of_round(metric, 0).layout.encode(code)

    monkeypatch.setattr(audit, "evaluation_report", tells_all)
    assert not lower()[0], "who tells all is found"


@pytest.mark.slow
def test_the_audit_catches_codes_that_always_name_a_near_word(
    signed: Signed, monkeypatch: pytest.MonkeyPatch
) -> None:
    metric = signed.bundle.metrics["churn"]

    def single_report_check() -> Check:
        memo = DeviceMemo(b"s" * 32, "churn")
        steps = audit_metric(metric, KeyedBits(b"seed" * 8), lambda _: memo, 3000, 1e-6)
        return next(step for step in steps if step and step.kind.startswith("one report"))

    honest = single_report_check()
    assert honest.passed
    assert honest.lower is not None
    assert honest.lower > 2, "the attack comes near to 4"

    def nearest_word(codes: VectorCodes, value: Any, source: BitSource) -> bytes:
        number = source.below(codes.books)
        return codes.layout.encode(number * codes.words + codes.order(value, number)[0])

    monkeypatch.setattr(VectorCodes, "randomize", nearest_word)
    assert not single_report_check().passed


def test_an_empty_bin_shows_nobody(capsys: pytest.CaptureFixture[str]) -> None:
    bins = [(0.0, 0.4, 1.02, 0.3, 0.2, 0.4), (0.4, 1.0, -0.02, 0.5, 0.0, 1.0)]
    show_calibration("calibration", "95%", bins)
    some, nobody = [line for line in capsys.readouterr().out.splitlines() if " to " in line]
    assert some.split() == ["0", "to", "0.4", "100.0%", "0.3", "0.2", "to", "0.4"]
    assert nobody.split() == ["0.4", "to", "1", "0.0%", "nobody"]


def test_a_module_of_typescript_knows_features_and_labels() -> None:
    module_text = "\n".join(typescript_module(catalog_of(CATALOG + MODEL)))
    features = '[features: { readonly "hours": number | boolean; readonly "plan": "free" | "paid" }'
    assert f'"churn": {features}, label: string | boolean | 0 | 1];' in module_text
    assert f'"tariff": {features}, label: "none" | "month" | "year"];' in module_text
    assert "client.learn(model, features, label)" in module_text
    assert module_text.count('"churn"') == 1, "report() takes none"
