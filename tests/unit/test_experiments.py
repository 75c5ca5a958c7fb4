"""Experiments: what a catalog may say of them, which arm a device has, and what its reports say."""

from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hubbub.authoring import read_catalog
from hubbub.bundles import Bundle, Notice
from hubbub.catalog.experiments import Experiment
from hubbub.cli.main import main
from hubbub.client import Client, Outcome
from hubbub.client.state.memory import MemoryState
from hubbub.client.state.secret import DeviceMemo
from hubbub.client.testing import FakeClock, FakeShuffler
from hubbub.errors import BadParameter, BundleRefused, CatalogInvalid, UnknownMetric
from hubbub.signing.metric_changes import refuse_changes
from hubbub.signing.sign_bundle import sign_notice
from hubbub.signing.testing import make_bundle
from tests.support.bundles import DAY, make_signed
from tests.support.catalogs import catalog_toml, metric_toml
from tests.support.client_parts import drawn_reports
from tests.support.devices import idle_client

SIGNING = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))

CATALOG = catalog_toml(
    "[experiments.new_menu]\narms = { control = 1, new = 1 }\n",
    metric_toml(
        "saved",
        kind="boolean",
        mechanism="rr",
        epsilon=1.0,
        experiment="new_menu",
        reports_per_epoch=9,
    ),
    shuffler="localhost:7000",
)
TWO = CATALOG + CATALOG.partition("[metrics.saved]")[2].join(("[metrics.liked]", ""))


def _catalog_file(folder: Path, text: str) -> Path:
    path = folder / "metrics.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ("control = 1, new = 1", "control = 0, new = 0", "sums to 0"),
        (", new = 1", "", "has 1 of 2 to 10 arms"),
        ("new = 1", "new = 0.5", "not a whole number in"),
        ("new = 1", "New = 1", "names an arm that does not match"),
        ("arms =", "arm =", 'did you mean "arms"'),
        ('"new_menu"', '"new_men"', r'"new_menu"\? or add \[experiments.new_men\]'),
        (
            "[experiments.new_menu]\narms = { control = 1, new = 1 }",
            "",
            r"the catalog has none; add \[experiments.new_menu\]",
        ),
        ('= "new_menu"', '= "new_menu, other"', "must match .* write the name of one"),
        ('= "new_menu"', '= ["new_menu", "other"]', "must name one experiment"),
        ('experiment = "new_menu"', "", "no metric names it"),
        (
            "[experiments.new_menu]\narms = { control = 1, new = 1 }",
            "experiments = 1",
            r"has no tables; write each as \[experiments.NAME\]",
        ),
        ("experiment =", 'breakdown = { new_menu = ["a"] }\nexperiment =', "leave it out"),
        ("metrics.saved", 'metrics."new_menu.new"', "by which notices stop an arm"),
    ],
)
def test_an_invalid_experiment_is_refused_with_a_remedy(
    tmp_path: Path, before: str, after: str, problem: str
) -> None:
    assert before in CATALOG
    with pytest.raises(CatalogInvalid, match=problem) as refused:
        read_catalog(_catalog_file(tmp_path, CATALOG.replace(before, after)))
    assert len(str(refused.value).splitlines()) <= 2


@pytest.mark.parametrize(
    ("arms", "then"),
    [("new = 0", "get control"), ("new = 0, big = 1", "draw again among control, big")],
)
def test_the_check_names_the_metrics_of_an_ended_experiment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arms: str, then: str
) -> None:
    path = _catalog_file(tmp_path, CATALOG.replace("new = 1", arms))
    assert main(["catalog", "check", str(path)]) == 0
    sentence = 'saved: the experiment "new_menu" has ended, since an arm has weight 0: devices'
    assert f"{sentence} {then}, and report in no arm" in capsys.readouterr().out


def test_an_experiment_has_one_definition_in_all_metrics_of_a_bundle(tmp_path: Path) -> None:
    bundle = make_bundle(_catalog_file(tmp_path, TWO)).bundle
    assert bundle.experiments == {
        "new_menu": Experiment(name="new_menu", arms={"control": 1, "new": 1})
    }
    other = Experiment(name="new_menu", arms={"control": 2, "new": 1})
    metrics = {**bundle.metrics, "liked": replace(bundle.metrics["liked"], experiment=other)}
    with pytest.raises(BadParameter, match="has other arms in another metric"):
        replace(bundle, metrics=metrics, history={})


@pytest.mark.parametrize("weights", [(1, 1), (5, 3, 2), (0, 1)])
def test_arms_are_drawn_by_exactly_their_weights(weights: tuple[int, ...]) -> None:
    class Coins:
        def __init__(self, place: int) -> None:
            self.place = place

        def below(self, limit: int, /) -> int:
            assert limit == sum(weights)
            return self.place

    arms = {f"arm{number}": weight for number, weight in enumerate(weights)}
    experiment = Experiment(name="colours", arms=arms)
    drawn = Counter(experiment.draw_arm(Coins(place)) for place in range(sum(weights)))  # type: ignore[arg-type]
    assert drawn == {arm: weight for arm, weight in arms.items() if weight}


@pytest.mark.slow
def test_arms_of_two_experiments_and_of_two_definitions_are_independent() -> None:
    """A chi-square statistic of 3 degrees above 30 has a chance of 1.4e-6; of a fixed seed."""
    tables: dict[str, Counter[tuple[str, str]]] = {"name": Counter(), "weights": Counter()}
    for number in range(4000):
        secret = number.to_bytes(32, "big")
        arms = [_arm_of(secret, name, weight) for name, weight in (("a", 1), ("b", 1), ("a", 2))]
        tables["name"][arms[0], arms[1]] += 1
        tables["weights"][arms[0], arms[2]] += 1
    for table in tables.values():
        assert len(table) == 4
        assert sum((count - 1000) ** 2 / 1000 for count in table.values()) < 30


def _arm_of(secret: bytes, name: str, weight: int) -> str:
    experiment = Experiment(name=name, arms={"one": weight, "two": weight})
    return experiment.draw_arm(DeviceMemo(secret, f"experiment/{name}").coins(experiment.purpose))


def _client(bundle: Bundle, number: int, notice: bytes = b"") -> Client:
    state = MemoryState(number.to_bytes(32, "big"))
    if notice:
        state.keep_notice(notice, lambda _former: True)
    clock = FakeClock(bundle.keys[1].start + 100.0)
    return Client(bundle, state, FakeShuffler(), hold_seconds=None, clock=clock)


def _of_arm(bundle: Bundle, arm: str, notice: bytes = b"") -> Client:
    number = next(n for n in range(99) if _client(bundle, n).arm("new_menu") == arm)
    return _client(bundle, number, notice)


def _stream(client: Client) -> str:
    assert client.report("saved", value=True) is Outcome.QUEUED
    return drawn_reports(client)[-1][1].stream


def test_a_report_names_its_arm_until_the_operator_stops_an_arm(tmp_path: Path) -> None:
    operator = SIGNING.public_key().public_bytes_raw()
    bundle = replace(make_bundle(_catalog_file(tmp_path, CATALOG)).bundle, operator=operator)
    streams = [_stream(_of_arm(bundle, arm)) for arm in ("control", "new")]
    assert streams == ["saved@new_menu=control", "saved@new_menu=new"]
    start = bundle.keys[1].start
    steps = {"new_menu.control": ((start, 0.0),)}
    stop = Notice(number=start, until=start + 9 * DAY, steps=steps, operator=operator)
    for arm in ("control", "new"):
        client = _of_arm(bundle, arm, sign_notice(stop, SIGNING))
        assert client.arm("new_menu") == "new"
        assert _stream(client) == "saved"


@pytest.mark.parametrize("earlier", [("--stop", "new_menu.control"), ()])
def test_no_notice_stops_every_arm(
    earlier: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = CATALOG if earlier else CATALOG.replace("control = 1", "control = 0")
    signed = make_signed(tmp_path, text, start=20_000 * DAY)
    out = tmp_path / "notice.hubbub"
    make = ["notice", "make", "--keys", str(signed.keys), "--bundle", str(signed.path)]
    make += ["--out", str(out)]
    assert not earlier or main([*make, *earlier]) == 0
    former = out.exists() and out.read_bytes()
    assert main([*make, "--stop", "new_menu.new"]) == 2
    assert "lift one with --lift new_menu.ARM, or stop the metrics" in capsys.readouterr().err
    assert former == (out.exists() and out.read_bytes())
    assert main([*make, "--stop", "saved"]) == 0


def test_an_opted_out_person_is_in_no_experiment(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bundle = make_bundle(_catalog_file(tmp_path, CATALOG)).bundle
    client = _of_arm(bundle, "new")
    client.disable()
    assert client.arm("new_menu") == "control"
    client.enable()
    assert client.arm("new_menu") == "new"
    with pytest.raises(UnknownMetric, match="the catalog has new_menu"):
        client.arm("new_men")
    not_a_text: Any = ["a secret"]
    with pytest.raises(UnknownMetric, match=r"^an experiment is named by a text, not by list$"):
        client.arm(not_a_text)
    assert not client.outcomes, "report() was not called"
    with caplog.at_level("WARNING", "hubbub.client"):
        assert not idle_client(bundle, strict=False).arm("new_men")
    assert "arm() is used wrongly: no experiment is called" in caplog.text


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        (1, 2, "arms changed under an old name"),
        (1, 0, ""),
        (1, 1, ""),
        (0, 1, "ended its arm new"),
    ],
)
def test_arms_change_under_their_name_only_to_end(
    tmp_path: Path, before: int, after: int, problem: str
) -> None:
    def catalog(weight: int) -> Path:
        return _catalog_file(tmp_path, CATALOG.replace("new = 1", f"new = {weight}"))

    bundle = make_bundle(catalog(before)).bundle
    with pytest.raises(BundleRefused, match=problem) if problem else nullcontext():
        refuse_changes(read_catalog(catalog(after)).metrics, bundle)


def test_reordered_arms_of_an_experiment_are_refused(tmp_path: Path) -> None:
    assert "control = 1, new = 1" in CATALOG
    bundle = make_bundle(_catalog_file(tmp_path, CATALOG)).bundle
    turned = CATALOG.replace("control = 1, new = 1", "new = 1, control = 1")
    with pytest.raises(BundleRefused, match="arms changed under an old name"):
        refuse_changes(read_catalog(_catalog_file(tmp_path, turned)).metrics, bundle)


def test_a_metric_does_not_begin_in_an_experiment_that_has_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = make_bundle(_catalog_file(tmp_path, CATALOG))
    previous = tmp_path / "app.hubbub"
    previous.write_bytes(before.signed)
    refuse_changes(read_catalog(_catalog_file(tmp_path, TWO)).metrics, before.bundle)
    path = _catalog_file(tmp_path, TWO.replace("new = 1", "new = 0"))
    refusal = '"liked": the experiment "new_menu" has ended'
    with pytest.raises(CatalogInvalid, match=refusal):
        refuse_changes(read_catalog(path).metrics, before.bundle)
    assert main(["catalog", "check", str(path), "--previous", str(previous)]) == 2
    assert refusal in capsys.readouterr().err
    options = ["--description", "a", "--owner", "b", "--boolean", "--experiment", "new_menu"]
    text = path.read_text()
    assert main(["catalog", "new", "third", "--catalog", str(path), *options]) == 2
    assert refusal.replace("liked", "third") in capsys.readouterr().err
    assert path.read_text() == text
