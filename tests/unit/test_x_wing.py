"""Seals for tomorrow's computers: who may open them, what knows of them, and what is refused."""

import json
import random
import secrets
from dataclasses import replace
from math import sqrt
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import mlkem
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.hpke import MLKEM768X25519PrivateKey

from hubbub.bundles import OpeningKey, Promise, open_bundle, read_bundle
from hubbub.cli.main import main
from hubbub.client import Client, MemoryState
from hubbub.client.testing import FakeShuffler
from hubbub.conservation import Window
from hubbub.errors import BadParameter, BadPayload, BundleRefused, CatalogInvalid
from hubbub.installation.keys_and_bundles import build_bundle
from hubbub.keys.opening_key_files import read_opening_keys, read_public_keys, write_new_keys
from hubbub.sealing.hpke import SEAL_BYTES, Kem, PrivateKey, open_sealed, seal, seal_info
from hubbub.shuffler.crowd_release import sealed_dummies
from hubbub.shuffler.stream_table import read_stream_table
from tests.conftest import CATALOG
from tests.support.bundles import DAY, Signed, make_signed
from tests.support.catalogs import catalog_toml, metric_toml, promised_catalog_of
from tests.support.client_parts import store_reports
from tests.support.commands import output_of, refusal_of
from tests.support.moment import now
from tests.support.waiting import HANG_SECONDS

SEALED = CATALOG.replace("[metrics.theme]", '[metrics.theme]\nkem = "x-wing"')
CROWD = 'central_epsilon = 1.0\ncrowd = 30000\ndummies = 100\nkem = "x-wing"'
CROWDED = catalog_toml(
    metric_toml(
        "theme", CROWD, mechanism="grr", epsilon=2.0, values=["a", "b", "c"], min_batch=None
    )
)


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Signed:
    today = int(now()) // DAY
    return make_signed(tmp_path_factory.mktemp("sealed"), SEALED, start=(today - 14) * DAY)


def _opening(signed: Signed) -> tuple[OpeningKey, ...]:
    return read_opening_keys(signed.keys / "opening.keys.json")


def test_a_device_encrypts_each_metric_with_its_kem_and_the_ledger_shows_it(
    sealed: Signed,
) -> None:
    shuffler = FakeShuffler()
    client = Client(sealed.bundle, MemoryState(), shuffler, hold_seconds=None)
    client.report("theme", "dark")
    client.report("crashed", "no")
    client.flush(HANG_SECONDS)
    halves = {key.id: key.halves() for key in _opening(sealed)}
    kems: dict[str, Kem] = {"theme": "x-wing", "crashed": "x25519"}
    for report in shuffler.reports():
        metric, kem = sealed.bundle.metric(report.stream), kems[report.stream]
        assert len(report.sealed) == metric.sealed_bytes
        key, info = halves[report.key_id], seal_info(report.stream, report.epoch)
        payload = open_sealed(report.sealed, key[kem], info)
        assert len(payload) == metric.randomizer.layout.payload_bytes
    assert {report.stream for report in shuffler.reports()} == kems.keys()
    ledger_kems = {metric.name: metric.kem for metric in client.ledger().metrics}
    assert ledger_kems == dict.fromkeys(sealed.bundle.metrics, "x25519") | {"theme": "x-wing"}
    client.close(0)


def _stolen(kem: Kem, broken: X25519PrivateKey) -> PrivateKey:
    """What a quantum computer makes of a public key: the X25519 half, and of ML-KEM a guess."""
    if kem == "x25519":
        return broken
    return MLKEM768X25519PrivateKey(mlkem.MLKEM768PrivateKey.generate(), broken)


@pytest.mark.parametrize("kem", ["x25519", "x-wing"])
def test_x_wing_protects_a_recording_after_x25519_is_broken(kem: Kem) -> None:
    """400 devices with a coin's secret each; the attacker has every X25519 private key there is."""
    rng, info = random.Random(25), seal_info("theme", 1)
    device_key, broken = X25519PrivateKey.generate(), X25519PrivateKey.generate()
    if kem == "x25519":
        public: Any = (broken := device_key).public_key()
    else:
        ml_kem = mlkem.MLKEM768PrivateKey.generate()
        public = MLKEM768X25519PrivateKey(ml_kem, broken).public_key()
    right, devices = 0, 400
    for _ in range(devices):
        secret = rng.randrange(2)
        recorded = seal(bytes([secret]), public, info)
        try:
            guess = open_sealed(recorded, _stolen(kem, broken), info)[0]
        except BadPayload:
            guess = rng.randrange(2)
        right += guess == secret
    if kem == "x25519":
        assert right == devices
    else:
        assert abs(right - devices / 2) < 3 * sqrt(devices) / 2


def test_keys_of_an_earlier_version_stay_and_get_the_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["keys", "new", str(tmp_path / "keys"), "--periods", "3"]) == 0
    names = ("opening.keys.json", "opening.pub.json")
    private, public = (tmp_path / "keys" / name for name in names)
    before = _without_halves(private)
    private.write_text(json.dumps(before))
    public.write_text(json.dumps(_without_halves(public)))
    (tmp_path / "metrics.toml").write_text(SEALED)
    build = ["catalog", "build", str(tmp_path / "metrics.toml"), "--keys", str(tmp_path / "keys")]
    build += ["--out", str(tmp_path / "app.hubbub"), "--streams", str(tmp_path / "streams.json")]
    errors = refusal_of(capsys, *build)
    assert 'metric "theme": kem = "x-wing", but opening key 1 has no X-Wing half' in errors
    assert "hubbub keys x-wing FOLDER" in errors
    assert "for keys 1, 2, 3" in output_of(capsys, "keys", "x-wing", str(tmp_path / "keys"))
    assert _without_halves(private) == before
    assert private.stat().st_mode & 0o77 == 0
    assert main(build) == 0
    bundle = read_bundle(tmp_path / "app.hubbub")
    [key, *_], [private_key, *_] = bundle.keys, read_opening_keys(private)
    info = seal_info("theme", 7)
    report = seal(b"\1", key.half("x-wing"), info)
    assert open_sealed(report, private_key.halves()["x-wing"], info) == b"\1"
    assert main(["keys", "x-wing", str(tmp_path / "keys")]) == 0
    assert "every key has its X-Wing half" in capsys.readouterr().out


def _without_halves(path: Path) -> list[dict[str, Any]]:
    """The keys of a file, as an earlier version had them."""
    return [{k: v for k, v in key.items() if k != "x_wing"} for key in json.loads(path.read_text())]


def test_a_bundle_has_a_second_key_half_only_if_a_metric_uses_it(
    signed: Signed, sealed: Signed
) -> None:
    assert b"x_wing" not in signed.path.read_bytes()
    assert all(key.x_wing == b"" for key in read_bundle(signed.path).keys)
    assert sealed.bundle.keys == read_public_keys(sealed.keys)
    with pytest.raises(BadParameter, match="opening key 1 has no X-Wing half"):
        read_bundle(signed.path).keys[0].half("x-wing")


def test_a_device_whose_library_has_no_ml_kem_refuses_the_bundle_and_its_reports_wait(
    signed: Signed, sealed: Signed, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = MemoryState()
    client = Client(signed.bundle, state, FakeShuffler(), hold_seconds=None)
    client.report("theme", "dark")
    store_reports(client)

    def unsupported(_: bytes) -> mlkem.MLKEM768PublicKey:
        raise UnsupportedAlgorithm("ML-KEM")

    monkeypatch.setattr(mlkem.MLKEM768PublicKey, "from_public_bytes", unsupported, raising=True)
    with pytest.raises(BundleRefused, match=r'kem = "x-wing" needs ML-KEM, which .* here lacks'):
        open_bundle(sealed.path.read_bytes(), "app.hubbub")
    assert state.waiting() == 1
    client.close(0)


def test_an_unknown_kem_is_refused_with_a_sentence(tmp_path: Path) -> None:
    for kem, remedy in (("kyber", "; write kem"), ("xwing", '; did you mean "x-wing"\\? write')):
        with pytest.raises(CatalogInvalid, match=f'"kem": must be one of x25519, x-wing{remedy}'):
            make_signed(tmp_path, SEALED.replace('"x-wing"', f'"{kem}"'), start=0)


def test_the_kem_is_part_of_the_promise_and_cannot_be_removed(sealed: Signed) -> None:
    theme = sealed.bundle.metric("theme")
    weaker = replace(theme, kem="x25519")
    assert Promise.of(theme).broken_by(Promise.of(weaker)) == "its definition changed"
    assert theme.definition()["kem"] == "x-wing"
    assert "kem" not in weaker.definition()


def test_a_batch_that_encryption_makes_too_large_is_refused(sealed: Signed) -> None:
    theme = sealed.bundle.metric("theme")
    replace(theme, kem="x25519", min_batch=100_000)
    with pytest.raises(BadParameter, match=r'110.0 MiB, above 64; .* or leave "kem" out'):
        replace(theme, min_batch=100_000)


@pytest.mark.parametrize("public", [b"", bytes(32), bytes(1216), b"\xff" * 1216])
def test_an_invalid_or_weak_x_wing_key_is_refused(sealed: Signed, public: bytes) -> None:
    key = sealed.bundle.keys[0]
    if not public:
        with pytest.raises(BadParameter, match="has no X-Wing half; make it with"):
            replace(sealed.bundle, keys=(replace(key, x_wing=b""),))
        return
    with pytest.raises(BadParameter, match=r"X-Wing opening key|small order"):
        replace(key, x_wing=public)
    weak = key.x_wing[:-32] + bytes(32)
    with pytest.raises(BadParameter, match="small order"):
        replace(key, x_wing=weak)


def test_dummies_are_encrypted_like_the_reports_of_their_crowd(tmp_path: Path) -> None:
    path, keys = tmp_path / "streams.json", tmp_path / "keys"
    write_new_keys(keys, start=0, period_seconds=28 * DAY, periods=1)
    catalog, out = promised_catalog_of(CROWDED), tmp_path / "app.hubbub"
    build_bundle(catalog, keys, out=out, previous=out, streams=path, roots=None)
    table, window = read_stream_table(path), Window("theme", 1)
    dummies = sealed_dummies(table, window, table.streams["theme"], 20)
    assert {len(dummy) for dummy in dummies} == {1 + SEAL_BYTES["x-wing"]}
    [opening_key] = read_opening_keys(keys / "opening.keys.json")
    key, info = opening_key.halves()["x-wing"], seal_info("theme", 1)
    assert all(open_sealed(dummy, key, info)[0] < 3 for dummy in dummies)
    document = json.loads(path.read_text())
    for entry in document["keys"]:
        del entry["x_wing"]
    path.write_text(json.dumps(document))
    with pytest.raises(BadParameter, match="has dummies, but key 1 has no public half to seal"):
        read_stream_table(path)
    document["streams"]["theme"]["kem"] = "kyber"
    path.write_text(json.dumps(document))
    with pytest.raises(BadParameter, match="kem 'kyber' is unknown: use x25519 or x-wing, or"):
        read_stream_table(path)


def test_an_altered_report_does_not_open_whichever_half_was_altered(sealed: Signed) -> None:
    key, info = _opening(sealed)[0].halves()["x-wing"], seal_info("theme", 7)
    report = seal(b"\1", sealed.bundle.keys[0].half("x-wing"), info)
    for place in (0, 1087, 1088, 1119, 1120, len(report) - 1):
        altered = report[:place] + bytes([report[place] ^ 1]) + report[place + 1 :]
        with pytest.raises(BadPayload):
            open_sealed(altered, key, info)
    for hostile in (b"", secrets.token_bytes(1119), secrets.token_bytes(1137)):
        with pytest.raises(BadPayload):
            open_sealed(hostile, key, info)
