"""A signed notice asks less of all devices: never more, never of one alone, never by others."""

import json
from collections.abc import Mapping
from dataclasses import replace
from math import sqrt
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hubbub.bundles import Notice, open_notice
from hubbub.bundles.encoding import to_text
from hubbub.bundles.key_handover import hand_over
from hubbub.bundles.reduction_notice import LARGEST_NOTICE_BYTES, Step
from hubbub.cli.main import main
from hubbub.client import Client, FolderState, MemoryState, Outcome, State, SystemClock, TryAgain
from hubbub.client.reporter import Reporter
from hubbub.client.testing import FakeShuffler, coins
from hubbub.errors import BadParameter, NoticeRefused
from hubbub.keys.operator_key import read_operator_key
from hubbub.mechanisms import Totals
from hubbub.mechanisms.layout import OneHot
from hubbub.signing.sign_bundle import sign_notice
from tests.conftest import CATALOG
from tests.support.bundles import DAY, Signed, make_signed
from tests.support.catalogs import catalog_toml, metric_toml
from tests.support.client_parts import refresh, store_reports
from tests.support.commands import Capture, output_of
from tests.support.devices import idle_client
from tests.support.waiting import HANG_SECONDS

TODAY = 20_010
NOON = TODAY * DAY + DAY // 2
BRIEFLY = 0.05  # it is turned away, and would wait a minute
Steps = Mapping[str, tuple[Step, ...]]


@pytest.fixture
def signed(tmp_path: Path) -> Signed:
    text = CATALOG.replace("[metrics.theme]", "[metrics.theme]\nsampling = 0.5")
    return make_signed(tmp_path, text.replace('"unary.oue"', '"grr"'), start=20_000 * DAY)


class Operator:
    """Who signs notices, and devices with that operator's bundle."""

    def __init__(self, signed: Signed) -> None:
        self.bundle = signed.bundle
        self.key = read_operator_key(signed.keys)
        self.public = self.key.public_key().public_bytes_raw()

    def unsigned(self, number: int, steps: Steps, until: int = NOON + 30 * DAY) -> Notice:
        return Notice(number=number, until=until, steps=steps, operator=self.public)

    def notice(self, number: int, steps: Steps) -> bytes:
        return sign_notice(self.unsigned(number, steps), self.key)

    def client(
        self, shuffler: FakeShuffler, state: State | None = None, moment: float = NOON
    ) -> Client:
        return idle_client(self.bundle, state, shuffler, clock=SystemClock(lambda: moment))


@pytest.fixture
def operator(signed: Signed) -> Operator:
    return Operator(signed)


def _shuffler(notice: bytes) -> FakeShuffler:
    shuffler = FakeShuffler()
    shuffler.notice = notice
    return shuffler


def _submit_once(state: State, notice: bytes, operator: Operator) -> None:
    """A device with this state submits something, and hears what is said to everybody."""
    with operator.client(_shuffler(notice), state) as client:
        assert client.report("crashed", "no") is Outcome.QUEUED
        assert client.flush(HANG_SECONDS)


def test_a_notice_says_what_was_signed(operator: Operator) -> None:
    steps = {"theme": ((NOON, 0.1), (NOON + 5, 0.25)), "crashed": ((NOON, 0.0),)}
    signed = operator.notice(7, steps)
    notice = open_notice(signed, operator=operator.public)
    assert (notice.number, notice.steps) == (7, steps)
    assert len(signed) < 400


def test_a_notice_with_another_signature_or_content_is_refused(operator: Operator) -> None:
    signed = operator.notice(7, {"theme": ((NOON, 0.1),)})
    stranger = Ed25519PrivateKey.generate()
    theirs = replace(operator.unsigned(8, {}), operator=stranger.public_key().public_bytes_raw())
    foreign = sign_notice(theirs, stranger)
    head, body, _ = signed.split(b"\n")
    newer = json.dumps({**json.loads(body), "epsilon": 2}).encode()
    later = to_text(operator.key.sign(b"hubbub/1 notice\n" + newer))
    grown = json.dumps({**json.loads(head), "signature": later}).encode() + b"\n" + newer
    for wrong, why in {
        signed.replace(b"0.1", b"0.2"): "the signature does not match",
        foreign: "never handed over",
        grown: "not readable by this version",
        signed[:50]: "not a notice",
        operator.bundle.signed: "(the signature does not match|larger than)",
        signed + bytes(LARGEST_NOTICE_BYTES): "larger than 16 KiB",
    }.items():
        with pytest.raises(NoticeRefused, match=why):
            open_notice(wrong, operator=operator.public)


def test_a_forbidden_notice_cannot_be_built(operator: Operator) -> None:
    half: tuple[Step, ...] = ((NOON, 0.5),)
    operator.unsigned(1, {"theme": half})
    wrong: list[tuple[str, int, Steps]] = [
        ("is 0 or in", 1, {"theme": ((NOON, 1.5),)}),
        ("do not ascend", 1, {"theme": ((NOON, 0.5), (NOON, 0.1))}),
        ("outside \\[1, 16\\]", 1, {"theme": ()}),
        ("contains an invalid metric", 1, {"theme/0.5": half}),
        ("must be whole", 0, {}),
        ("16384", 1, {f"m{n}": half for n in range(1000)}),
    ]
    for why, number, steps in wrong:
        with pytest.raises(BadParameter, match=why):
            operator.notice(number, steps)


def test_an_epoch_has_one_chance_from_its_beginning_to_its_end(operator: Operator) -> None:
    """What changes at noon holds from tomorrow on; a stop at once, to the end of its day."""
    theme, crashed = (operator.bundle.metrics[name] for name in ("theme", "crashed"))
    steps = {"theme": ((NOON, 0.1), (NOON + 2 * DAY, 0.9), (NOON + 4 * DAY, 0.0))}
    notice = operator.unsigned(1, steps, NOON + 6 * DAY)
    chances = [notice.sampling(theme, TODAY + day) for day in range(-1, 9)]
    #       the bundle's, lowered, 0.9 is above the bundle's, stopped, lapsed
    assert chances[:2] == [0.0, 0.0]  # of an epoch that is over nothing is reported any more
    lowered = replace(notice, steps={"theme": steps["theme"][:2]})
    chances = [lowered.sampling(theme, TODAY + day) for day in range(-1, 9)]
    assert chances == [0.5, 0.5, 0.1, 0.1, *[0.5] * 6]
    stopped = replace(notice, steps={"theme": ((NOON, 0.0), (NOON + 2 * DAY, 1.0))})
    chances = [stopped.sampling(theme, TODAY + day) for day in range(5)]
    assert chances == [0.0, 0.0, 0.0, 0.5, 0.5]
    assert notice.sampling(crashed, TODAY * 24) == crashed.sampling


def test_a_stop_holds_at_once_and_drops_waiting_reports(operator: Operator) -> None:
    shuffler = _shuffler(operator.notice(1, {"theme": ((NOON, 0.0),), "unheard_of": ((1, 0.0),)}))
    while True:  # a device that its own coin lets take part
        client = operator.client(shuffler)
        if client.report("theme", "dark") is Outcome.QUEUED:
            break
    shuffler.answers = [{}]
    assert client.flush(HANG_SECONDS)  # it had not heard of it yet
    assert [r.stream for r in shuffler.reports()] == ["theme"]
    assert client.report("theme", "dark") is Outcome.STOPPED
    client.report("crashed", "no")  # others go on
    assert client.flush(HANG_SECONDS)
    assert {r.stream for r in shuffler.reports()} == {"theme", "crashed"}
    assert client.outcomes[Outcome.STOPPED] == 1


def test_a_refused_device_receives_the_notice_too(operator: Operator) -> None:
    notice = operator.notice(1, {"crashed": ((NOON, 0.0),)})
    shuffler = FakeShuffler(TryAgain("resource_exhausted", 60.0, notice))
    client = operator.client(shuffler)
    assert client.report("crashed", "yes") is Outcome.QUEUED
    assert not client.flush(BRIEFLY)
    assert client.report("crashed", "no") is Outcome.STOPPED
    assert client.flush(HANG_SECONDS), "what waits of it is given up"
    assert client.dropped == {"stopped": 1}


def test_waiting_reports_of_a_stopped_metric_never_leave(operator: Operator) -> None:
    state = MemoryState()
    shuffler = FakeShuffler()
    client = operator.client(shuffler, state)
    assert client.report("crashed", "yes") is Outcome.QUEUED
    store_reports(client)
    notice = operator.notice(1, {"crashed": ((NOON, 0.0),)})
    state.keep_notice(notice, lambda _former_notice: True)
    refresh(client)
    assert client.flush(HANG_SECONDS)
    assert (shuffler.reports(), client.dropped) == ([], {"stopped": 1})
    [payload] = client.ledger().payloads
    assert payload.fate == "stopped"


def test_the_first_of_two_notices_with_one_number_stays(operator: Operator) -> None:
    state = MemoryState()
    _submit_once(state, operator.notice(5, {"theme": ((NOON, 0.0),)}), operator)
    _submit_once(state, operator.notice(5, {}), operator)
    with operator.client(FakeShuffler(), state, NOON + DAY / 4) as client:
        assert client.report("theme", "dark") is Outcome.STOPPED


def test_an_older_notice_is_refused_after_a_restart_too(operator: Operator, tmp_path: Path) -> None:
    stop = {"theme": ((NOON, 0.0),)}
    older, newer = operator.notice(5, {}), operator.notice(6, stop)
    folder = tmp_path / "state"
    for notice, outcome in ((newer, True), (older, True), (operator.notice(7, {}), False)):
        state = FolderState(folder)
        with operator.client(_shuffler(notice), state, NOON + 3600) as client:
            client.report("crashed", "no")
            client.flush(HANG_SECONDS)
            assert (client.report("theme", "dark") is Outcome.STOPPED) is outcome
        state = FolderState(folder)
        with operator.client(FakeShuffler(), state, NOON + DAY / 4) as client:  # another start
            assert (client.report("theme", "dark") is Outcome.STOPPED) is outcome


def test_forgetting_keeps_the_notice(operator: Operator, tmp_path: Path) -> None:
    for state in (FolderState(tmp_path / "state"), MemoryState()):
        shuffler = _shuffler(operator.notice(6, {"theme": ((NOON, 0.0),)}))
        with operator.client(shuffler, state) as client:
            client.report("crashed", "no")
            assert client.flush(HANG_SECONDS)
            client.disable(forget=True)
            client.enable()
            assert client.report("theme", "dark") is Outcome.STOPPED


def test_after_a_handover_only_the_new_key_signs_notices(operator: Operator) -> None:
    """An old app believes its operator's newer key; after that, nothing by the key before."""
    key = Ed25519PrivateKey.generate()
    public = key.public_key().public_bytes_raw()
    words = (hand_over(operator.key, public),)
    stop = {"theme": ((NOON, 0.0),)}
    newer = sign_notice(replace(operator.unsigned(1, stop), operator=public, handovers=words), key)
    state = MemoryState()
    for notice in (operator.notice(9, {}), newer, operator.notice(10, {})):
        _submit_once(state, notice, operator)
    assert state.device_state().notice == newer


def test_a_false_shuffler_changes_nothing_and_is_logged(
    operator: Operator, caplog: pytest.LogCaptureFixture
) -> None:
    state = MemoryState()
    _submit_once(state, b"not ours", operator)
    assert state.device_state().notice == b""
    assert "a notice is refused: not a notice" in caplog.text


def test_the_ledger_shows_the_changes_of_a_notice(operator: Operator) -> None:
    state = MemoryState()
    steps = {"theme": ((TODAY * DAY, 0.125),), "editor": ((NOON, 0.0),)}
    _submit_once(state, operator.notice(6, steps), operator)
    with operator.client(FakeShuffler(), state) as client:
        ledger = client.ledger()
    chances = {m.name: (m.sampling, m.lowered) for m in ledger.metrics}
    assert chances["theme"] == (0.125, True)
    assert chances["editor"] == (0.0, True)
    assert chances["crashed"] == (1.0, False)
    assert (ledger.notice, ledger.notice_until) == (6, NOON + 30 * DAY)


@pytest.mark.slow
def test_a_lowered_sampling_selects_devices_independently_of_their_values(
    operator: Operator,
) -> None:
    """Estimates stay what they were: of a part of those who were asked, drawn by coins alone.

    Of 1,500 devices 30% hold dark; those of them that report at 0.2 instead of 0.5 are a subset,
    and the estimate from their reports is within six of its own standard errors: 2e-9.
    """
    notice = operator.notice(6, {"theme": ((TODAY * DAY, 0.2),)})
    theme = operator.bundle.metrics["theme"]
    before: set[int] = set()
    after: set[int] = set()
    dark, payloads = 0, []
    for device in range(1500):
        value = "dark" if device % 10 < 3 else "light"
        for notice_bytes in (b"", notice):
            state = MemoryState(device.to_bytes(32, "big"))
            state.keep_notice(notice_bytes, lambda _former: True)
            reporter = Reporter(operator.bundle, state, coins(f"{device}"), lambda: float(NOON))
            if reporter.report("theme", value) is not Outcome.QUEUED:
                continue
            (after if notice_bytes else before).add(device)
            if notice_bytes:
                dark += value == "dark"
                payloads.append(reporter.pending()[0][1].payload)
    assert after < before
    assert abs(len(before) - 750) < 6 * sqrt(1500 * 0.25)
    assert abs(len(after) - 300) < 6 * sqrt(1500 * 0.16)
    assert abs(dark - 0.3 * len(after)) < 6 * sqrt(len(after) * 0.21)
    layout = theme.randomizer.layout
    assert isinstance(layout, OneHot)
    cells = [payloads.count(layout.encode(code)) for code in range(3)]
    estimate = theme.randomizer.estimate(Totals(cells=cells, reports=len(payloads)))
    assert abs(estimate.values[1] - dark) < 6 * sqrt(estimate.variances[1])


def _notice_made(folder: Path, *options: str) -> Notice:
    folder.mkdir(exist_ok=True)
    base = folder.parent
    out = folder / "notice.hubbub"
    files = "--keys", str(base / "keys"), "--bundle", str(base / "app.hubbub"), "--out", str(out)
    assert main(["notice", "make", *files, *options]) == 0
    return open_notice(out.read_bytes(), operator=None)


def test_notice_make_extends_the_existing_notice(
    signed: Signed, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "told"
    first = _notice_made(folder, "--stop", "crashed", "--sampling", "theme=0.1")
    chances = {name: steps[-1][1] for name, steps in first.steps.items()}
    assert chances == {"crashed": 0.0, "theme": 0.1}
    second = _notice_made(folder, "--lift", "crashed")
    assert second.follows(first)
    assert second.number > first.number
    assert second.steps["crashed"][-1][1] == 1.0
    assert second.steps["theme"] == first.steps["theme"]
    output = output_of(capsys, "notice", "show", str(folder / "notice.hubbub"))
    assert "as the bundle has it" in output
    assert "0.1 of them" in output
    opened = open_notice((folder / "notice.hubbub").read_bytes(), operator=signed.bundle.operator)
    assert opened.steps == second.steps
    # Of `hubbub up`, without its name.
    monkeypatch.chdir(folder)
    Path(".hubbub").symlink_to(tmp_path)
    assert main(["notice", "make", "--stop", "theme"]) == 0
    assert "the shuffler of .hubbub reads" in (made := capsys.readouterr().out)
    assert "no metric was changed" not in made
    (folder / "notice.hubbub").rename(tmp_path / "elsewhere")
    assert ".hubbub/notice.hubbub: number " in output_of(capsys, "notice", "show")
    (tmp_path / "elsewhere").rename(folder / "notice.hubbub")
    assert _notice_made(folder).steps["theme"] == first.steps["theme"]
    assert "no metric was changed; to change some, give --stop" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ((), "the notice would change no metric; name some: --stop METRIC, --sampling"),
        (("--sampling", "theme=0.6"), "its bundle has 0.5, and a notice never raises"),
        (("--sampling", "theme"), "write METRIC=CHANCE"),
        (("--sampling", "theme=2"), "--sampling theme=2: a chance is at most 1; write 10% as 0.1"),
        (("--sampling", "theme=nan"), "--sampling theme=nan: a chance is at most 1; write 10% as"),
        (("--sampling", "theme=-1"), "is 0 or in"),
        (("--stop", "thme"), "thme"),
        (("--stop", "theme", "--lift", "theme"), "named twice"),
        (("--stop", "theme", "--until", "2020-01-01"), "is outside"),
        (("--stop", "theme", "--bundle", "none"), "none: no such bundle; give --bundle, or --home"),
    ],
)
def test_notice_make_names_impossible_changes(
    options: tuple[str, ...], why: str, signed: Signed, capsys: Capture
) -> None:
    files = ("--keys", str(signed.keys), "--bundle", str(signed.path))
    out = signed.path.with_name("notice.hubbub")
    assert main(["notice", "make", *files, "--out", str(out), *options]) != 0
    assert why in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize(
    ("kind", "epoch"), [('kind = "activity"', "day"), ('kind = "retention"\nweeks = 2', "week")]
)
def test_a_notice_samples_no_metric_that_devices_compute_from_their_reports(
    kind: str, epoch: str, tmp_path: Path, capsys: Capture
) -> None:
    """Of devices that are all there every week, a tenth would seem to come back at .1."""
    text = catalog_toml(metric_toml("use", kind, epoch=epoch, mechanism="grr", epsilon=4.0))
    signed = make_signed(tmp_path, text, start=20_000 * DAY)
    files = "--keys", str(signed.keys), "--bundle", str(signed.path)
    out = tmp_path / "notice.hubbub"
    assert main(["notice", "make", *files, "--out", str(out), "--sampling", "use=0.1"]) != 0
    assert "no device may skip an epoch: write --stop use" in capsys.readouterr().err
    assert not out.exists()
    assert main(["notice", "make", *files, "--out", str(out), "--stop", "use"]) == 0
    assert main(["notice", "make", *files, "--out", str(out), "--lift", "use"]) == 0
