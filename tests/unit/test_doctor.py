"""The doctor of a device: it finds what is broken, goes on past it, and shows no value."""

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import hubbub.client.doctor
from hubbub.client import Client, Outcome, SealedReport, Submitted
from hubbub.client.doctor import Finding, device_checks, examine, show
from hubbub.client.testing import FakeShuffler
from hubbub.errors import BundleRefused
from hubbub.signing.sign_bundle import sign_bundle
from tests.support.bundles import Signed
from tests.support.programs import run_program


class Answering(FakeShuffler):
    """Answers with a clock that differs from this machine's, in seconds."""

    apart = 0.0

    def submit(self, reports: Sequence[SealedReport], timeout_seconds: float) -> Submitted:
        results = super().submit(reports, timeout_seconds).results
        return Submitted(results, time=int(time.time() + self.apart))


@pytest.fixture
def shuffler(monkeypatch: pytest.MonkeyPatch) -> Answering:
    answering = Answering()
    monkeypatch.setattr(hubbub.client.doctor, "transport_of", lambda *_, **__: answering)
    return answering


def start(signed: Signed, folder: Path, **options: Any) -> Client:
    """A client whose shuffler is away."""
    address = "http://127.0.0.1:1"
    return Client.from_bundle(signed.path, state_dir=folder, shuffler=address, **options)


def findings_of(bundle: Path, folder: Path) -> dict[str, Finding]:
    checks = device_checks(bundle=bundle, state_dir=folder)
    return {finding.subject: finding for finding in examine(checks)}


@pytest.mark.usefixtures("shuffler")
def test_the_doctor_finds_a_reporting_device_healthy_and_shows_no_value(
    signed: Signed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "device"
    with start(signed, folder) as client:
        client.report("theme", "dark")
        client.close(timeout=0)
    findings = findings_of(signed.path, folder)
    assert {finding.verdict for finding in findings.values()} == {"ok"}
    assert "of what it remembers 0 sent, 1 waiting" in findings["state"].text
    assert show([*findings.values()], as_json=False) == 0
    assert "dark" not in capsys.readouterr().out


@pytest.mark.parametrize(("apart", "verdict"), [(0, "ok"), (3700, "fault"), (-3700, "fault")])
def test_a_clock_that_is_wrong_is_a_fault(
    signed: Signed, tmp_path: Path, shuffler: Answering, apart: float, verdict: str
) -> None:
    shuffler.apart = apart
    assert findings_of(signed.path, tmp_path / "none")["clock"].verdict == verdict


@pytest.mark.usefixtures("shuffler")
def test_the_doctor_shows_an_opt_out(signed: Signed, tmp_path: Path) -> None:
    folder = tmp_path / "device"
    with start(signed, folder) as client:
        client.disable()
    assert findings_of(signed.path, folder)["state"].verdict == "note"


@pytest.mark.usefixtures("shuffler")
def test_another_operators_bundle_is_a_fault_that_changes_nothing(
    signed: Signed, tmp_path: Path
) -> None:
    folder = tmp_path / "device"
    start(signed, folder).close(0)
    trust = (tmp_path / "device.trust.json").read_bytes()
    other = tmp_path / "other.hubbub"
    theme = replace(signed.bundle, metrics={"theme": signed.bundle.metrics["theme"]})
    other.write_bytes(sign_bundle(theme, Ed25519PrivateKey.generate()))
    assert ", 1 metric, signed by" in findings_of(other, folder)["bundle"].text
    finding = findings_of(other, folder)["trust"]
    assert finding.verdict == "fault"
    assert "signed by" in finding.text
    assert (tmp_path / "device.trust.json").read_bytes() == trust
    assert findings_of(signed.path, folder)["trust"].verdict == "ok"


@pytest.mark.usefixtures("shuffler")
def test_trust_that_cannot_be_read_is_not_called_missing(signed: Signed, tmp_path: Path) -> None:
    folder, path = tmp_path / "device", tmp_path / "device.trust.json"
    start(signed, folder).close(0)
    path.write_bytes(b"{")
    finding = findings_of(signed.path, folder)["trust"]
    assert finding == Finding(
        "trust",
        "note",
        f"{path}: damaged; the next start sets it aside, and goes by the state folders",
    )
    assert path.read_bytes() == b"{"
    path.unlink()
    path.mkdir()
    finding = findings_of(signed.path, folder)["trust"]
    assert finding.verdict == "fault"
    assert f"apps report nothing: {path}" in finding.text
    with pytest.raises(BundleRefused, match="cannot be read"):
        start(signed, folder, strict=True)
    assert start(signed, folder).report("theme", "dark") is Outcome.DISABLED


@pytest.mark.usefixtures("shuffler")
def test_another_apps_refusal_names_the_option_and_is_no_fault_beside_an_app_that_accepts(
    signed: Signed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hubbub.client.startup, "state_home", lambda: tmp_path)
    monkeypatch.setattr(hubbub.client.doctor, "state_home", lambda: tmp_path)
    other = tmp_path / "other.hubbub"
    other.write_bytes(sign_bundle(signed.bundle, Ed25519PrivateKey.generate()))

    def trust_of(bundle: Path, app: str | None = None) -> list[tuple[str, bool]]:
        findings = examine(device_checks(bundle=bundle, app=app))
        return [(f.verdict, "--app NAME" in f.text) for f in findings if f.subject == "trust"]

    away = "http://127.0.0.1:1"
    Client.from_bundle(other, app="a game", shuffler=away).close(0)
    assert trust_of(signed.path) == [("fault", True)]
    assert trust_of(signed.path, "a game") == [("fault", False)]
    Client.from_bundle(signed.path, app="shop", shuffler=away).close(0)
    assert trust_of(signed.path) == [("ok", False), ("note", True)]
    states = [f.text for f in examine(device_checks(bundle=signed.path)) if f.subject == "state"]
    assert sorted("of another operator" in text for text in states) == [False, True]


@pytest.mark.usefixtures("shuffler")
def test_keys_that_end_soon_are_noted_and_keys_that_ended_are_a_fault(
    signed: Signed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = signed.bundle.keys[-1].end
    for moment, verdict in ((end - 86_400, "note"), (end + 1, "fault")):
        monkeypatch.setattr("time.time", lambda moment=moment: moment)
        assert findings_of(signed.path, tmp_path)["keys"].verdict == verdict


def test_the_doctor_names_a_fault_and_examines_the_rest(tmp_path: Path) -> None:
    folder = tmp_path / "device"
    folder.mkdir()
    (folder / "hubbub.sqlite3").write_bytes(b"no database")
    program = [sys.executable, "-m", "hubbub.client.doctor", str(tmp_path / "none"), "--json"]
    run = run_program(*program, "--state-dir", str(folder))
    verdicts = {entry["subject"]: entry["verdict"] for entry in json.loads(run.stdout)}
    assert (run.returncode, run.stderr) == (1, "")
    assert verdicts == {"versions": "ok", "bundle": "fault", "state": "fault"}


def test_a_shuffler_that_is_away_is_a_fault(signed: Signed, tmp_path: Path) -> None:
    away = {"state_dir": tmp_path / "none", "shuffler": "https://127.0.0.1:1"}
    findings = examine(device_checks(bundle=signed.path, **away))
    finding = {finding.subject: finding for finding in findings}["shuffler"]
    assert (finding.verdict, "unavailable" in finding.text) == ("fault", True)
