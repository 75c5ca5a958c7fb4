"""Bundles and keys: signed, pinned, and never silently changed."""

import base64
import itertools
import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hubbub.authoring import Catalog
from hubbub.bundles import Bundle, key_at, read_bundle
from hubbub.bundles.key_handover import MAX_HANDOVERS
from hubbub.bundles.opening_keys import OpeningKey
from hubbub.catalog import epoch_at, epoch_start
from hubbub.catalog.limits_and_budgets import Limits
from hubbub.cli.main import main
from hubbub.errors import BadParameter, BadPayload, BundleRefused, KeysUnusable, UnknownMetric
from hubbub.installation.keys_and_bundles import build_bundle, make_keys
from hubbub.keys.opening_key_files import read_opening_keys, read_public_keys
from hubbub.keys.operator_key import hand_over_to_new, read_operator_key
from hubbub.sealing.hpke import open_sealed, seal, seal_info
from hubbub.signing.metric_changes import differences, refuse_changes
from hubbub.signing.sign_bundle import sign_bundle
from tests.conftest import CatalogFiles


def _build(
    catalog_files: CatalogFiles,
    keys: Path,
    out: Path,
    now: Callable[[], float] = time.time,
    **changes: Any,
) -> Bundle:
    theme = replace(catalog_files.bundle.metric("theme"), **changes)
    metrics = {**catalog_files.bundle.metrics, "theme": theme}
    catalog = Catalog(shuffler="127.0.0.1:1", metrics=metrics)
    streams = out.with_name("streams.json")
    return build_bundle(catalog, keys, out=out, streams=streams, previous=out, roots=None, now=now)


def test_a_bundle_reads_back_as_it_was_signed(catalog_files: CatalogFiles) -> None:
    again = read_bundle(catalog_files.path, operator=catalog_files.bundle.operator)
    assert again == catalog_files.bundle
    assert again.metric("theme").values == ("light", "dark", "system")
    with pytest.raises(
        UnknownMetric, match='"colour" is not in the bundle; it has crashed, editor'
    ):
        again.metric("colour")
    with pytest.raises(UnknownMetric, match='did you mean "editor"'):
        again.metric("edtor")
    for part in ("edtor@os=linux", "edtor@os=linux/0.5", "edtor/0.5"):
        with pytest.raises(UnknownMetric, match=r'"edtor" is not in the bundle.*mean "editor"'):
            again.metric(part)


def test_one_altered_byte_is_refused(catalog_files: CatalogFiles, tmp_path: Path) -> None:
    content = catalog_files.path.read_bytes()
    body = content.index(b"\n") + 1
    for at in (body + 10, len(content) // 2, len(content) - 3):
        altered = tmp_path / "altered.hubbub"
        altered.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        with pytest.raises(BundleRefused, match="the signature does not match: altered"):
            read_bundle(altered)


def test_an_app_that_pins_one_operator_refuses_another(
    catalog_files: CatalogFiles, tmp_path: Path
) -> None:
    make_keys(tmp_path / "keys")
    forged = tmp_path / "forged.hubbub"
    forged.write_bytes(sign_bundle(catalog_files.bundle, read_operator_key(tmp_path / "keys")))
    read_bundle(forged)
    with pytest.raises(BundleRefused, match="not by the pinned operator"):
        read_bundle(forged, operator=catalog_files.bundle.operator)
    with pytest.raises(BadParameter, match=r"give base64\.b64decode"):
        read_bundle(forged, operator="text")  # type: ignore[arg-type]  # as errors show a key


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"{}\n{}", b"a\nb\nc", b'{"operator":"!"}\n{}', b"\xff\n\xff"]
)
def test_a_file_that_is_no_bundle_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "app.hubbub"
    path.write_bytes(content)
    with pytest.raises(BundleRefused, match="not a bundle; make one: hubbub catalog build"):
        read_bundle(path)
    with pytest.raises(BundleRefused, match=r"cannot be read: .*; give the bundle of"):
        read_bundle(tmp_path / "absent")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BundleRefused, match="not a bundle"):
        read_bundle(tmp_path / "pipe")


def test_a_bundles_text_in_place_of_its_path_is_not_shown_whole(
    catalog_files: CatalogFiles,
) -> None:
    with pytest.raises(BundleRefused, match="cannot be read: ") as refused:
        read_bundle(Path(catalog_files.bundle.signed.decode()))
    assert len(str(refused.value)) < 500


def test_a_signed_body_of_another_version_asks_for_an_upgrade(
    catalog_files: CatalogFiles, tmp_path: Path
) -> None:
    operator = read_operator_key(catalog_files.folder / "keys")
    path = tmp_path / "app.hubbub"
    head, body = sign_bundle(catalog_files.bundle, operator).split(b"\n")[:2]
    changed = json.dumps({**json.loads(body), "version": 4}).encode()
    seal_again = operator.sign(b"hubbub/1 bundle\n" + changed)
    new_head = {**json.loads(head), "signature": base64.b64encode(seal_again).decode()}
    path.write_bytes(json.dumps(new_head).encode() + b"\n" + changed)
    with pytest.raises(BundleRefused, match="version 4; upgrade hubbub"):
        read_bundle(path)


def test_a_metric_never_changes_under_its_name(catalog_files: CatalogFiles) -> None:
    metrics = dict(catalog_files.bundle.metrics)
    assert refuse_changes(metrics, catalog_files.bundle) == catalog_files.bundle.history
    theme = metrics["theme"]
    for change in ({"epsilon": 0.9}, {"values": ("light", "dark")}, {"epoch": "week"}):
        changed = {**metrics, "theme": replace(theme, **change)}
        with pytest.raises(
            BundleRefused, match=f'"theme": {next(iter(change))} changed under an old'
        ):
            refuse_changes(changed, catalog_files.bundle)
    harmless = {**metrics, "theme": replace(theme, description="Theme", min_batch=30)}
    refuse_changes(harmless, catalog_files.bundle)


def test_a_retired_name_keeps_its_meaning(catalog_files: CatalogFiles) -> None:
    metrics = dict(catalog_files.bundle.metrics)
    theme = metrics.pop("theme")
    history = refuse_changes(metrics, catalog_files.bundle)
    promised = catalog_files.bundle.retired_promises(metrics)
    later = replace(catalog_files.bundle, metrics=metrics, history=history, promised=promised)
    refuse_changes({**metrics, "theme": theme}, later)
    with pytest.raises(BundleRefused, match="the definition of this retired name"):
        refuse_changes({**metrics, "theme": replace(theme, epsilon=0.5)}, later)


def test_a_reused_name_has_at_most_its_former_promise(
    catalog_files: CatalogFiles, tmp_path: Path
) -> None:
    operator, first = read_operator_key(catalog_files.folder / "keys"), catalog_files.bundle
    rest = {name: metric for name, metric in first.metrics.items() if name != "theme"}
    theme = first.metrics["theme"]
    raised = Limits(reports_per_epoch=500, lifetime_epsilon=5000.0)
    more = {**rest, "theme": replace(theme, limits=raised)}
    path = tmp_path / "second.hubbub"
    path.write_bytes(
        sign_bundle(replace(first, metrics=rest, promised=first.retired_promises(rest)), operator)
    )
    second = read_bundle(path)
    assert second.promises() == first.promises()
    assert second.retired_promises(rest) == second.promised
    with pytest.raises(BundleRefused, match="reports_per_epoch raised from 1 to 500"):
        refuse_changes(more, second)
    refuse_changes({**rest, "theme": theme}, second)
    (difference,) = (
        difference
        for difference in differences(second, replace(second, metrics=more, promised={}))
        if difference.field != "asked"
    )
    assert difference.after.startswith("reports_per_epoch raised")
    unknown = replace(second, promised={})
    with pytest.raises(BundleRefused, match="that lost its promises"):
        refuse_changes({**rest, "theme": theme}, unknown)


def test_a_promise_for_a_name_that_is_not_retired_is_refused(catalog_files: CatalogFiles) -> None:
    bundle = catalog_files.bundle
    promise = bundle.promises()["theme"]
    for promised in ({"theme": promise}, {"never": promise}):
        with pytest.raises(BadParameter, match="the history lacks"):
            replace(bundle, promised=promised)


def test_build_refuses_a_change_against_the_bundle_it_would_overwrite(
    catalog_files: CatalogFiles, tmp_path: Path
) -> None:
    out = tmp_path / "app.hubbub"
    keys = catalog_files.folder / "keys"
    _build(catalog_files, keys, out)
    before = out.read_bytes()
    with pytest.raises(BundleRefused):
        _build(catalog_files, keys, out, epsilon=0.9)
    assert out.read_bytes() == before


def test_every_epoch_has_one_key_for_everybody(catalog_files: CatalogFiles) -> None:
    keys = catalog_files.bundle.keys
    assert [key.id for key in keys] == list(range(1, 14))
    for key, following in itertools.pairwise(keys):
        assert key.end == following.start
    assert key_at(keys, keys[0].start) == keys[0]
    assert key_at(keys, keys[0].end) == keys[1]
    assert key_at(keys, keys[-1].end) is None
    assert key_at(keys, keys[0].start - 1) is None


def test_a_report_opens_only_where_it_belongs(catalog_files: CatalogFiles) -> None:
    key, private = catalog_files.bundle.keys[0], catalog_files.opening[0].load()
    sealed = seal(b"payload", key.half("x25519"), seal_info("theme", 7))
    assert len(sealed) == 7 + 48
    assert open_sealed(sealed, private, seal_info("theme", 7)) == b"payload"
    for stream, epoch in (("theme", 8), ("themes", 7), ("editor", 7)):
        with pytest.raises(BadPayload):
            open_sealed(sealed, private, seal_info(stream, epoch))
    for hostile in (b"", sealed[:-1], bytes(55), sealed[:-1] + bytes([sealed[-1] ^ 1])):
        with pytest.raises(BadPayload):
            open_sealed(hostile, private, seal_info("theme", 7))
    with pytest.raises(BadPayload):
        open_sealed(sealed, catalog_files.opening[1].load(), seal_info("theme", 7))


def test_secrets_are_for_their_owner_alone(catalog_files: CatalogFiles, tmp_path: Path) -> None:
    make_keys(tmp_path / "keys")
    for name in ("operator.key", "opening.keys.json"):
        path = tmp_path / "keys" / name
        assert path.stat().st_mode & 0o777 == 0o600
        path.chmod(0o644)
    with pytest.raises(KeysUnusable, match="is readable by others; run: chmod 600"):
        read_operator_key(tmp_path / "keys")
    with pytest.raises(KeysUnusable, match="is readable by others"):
        read_opening_keys(tmp_path / "keys" / "opening.keys.json")
    assert "private" not in repr(catalog_files.opening[0])
    assert repr(OpeningKey(1, b"s" * 32)) == "OpeningKey(id=1)"


def test_keys_are_never_overwritten_and_damage_is_named(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    make_keys(keys)
    with pytest.raises(KeysUnusable, match="keys are never overwritten"):
        make_keys(keys)
    (keys / "opening.keys.json").write_text('[{"id": 1, "private": "c2hvcnQ="}]')
    with pytest.raises(KeysUnusable, match="not a list of private opening keys") as caught:
        read_opening_keys(keys / "opening.keys.json")
    assert "c2hvcnQ=" not in str(caught.value)
    (keys / "opening.pub.json").write_text("{}}")
    with pytest.raises(KeysUnusable, match="not a list of public"):
        read_public_keys(keys)
    (keys / "operator.key").write_text("nonsense")
    with pytest.raises(KeysUnusable, match="not a PEM private key"):
        read_operator_key(keys)
    with pytest.raises(KeysUnusable, match=r"restore it from a backup.*hubbub keys new FOLDER"):
        read_operator_key(tmp_path / "absent")
    for days, periods in (("0", "1"), ("1", "0"), ("9999", "1"), ("1", "9999"), ("3660", "11")):
        new = ["keys", "new", str(tmp_path / "other"), "--days", days, "--periods", periods]
        assert main(new) == 2
        assert not (tmp_path / "other").exists()


def test_epochs_are_whole_and_of_utc() -> None:
    assert epoch_at(0, "day") == 0
    assert epoch_at(86_399.9, "day") == 0
    assert epoch_at(86_400, "day") == 1
    assert epoch_start(epoch_at(1_700_000_000, "week"), "week") <= 1_700_000_000
    assert epoch_start(5, "hour") == 18_000


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        (Limits(1, 500.0), "lifetime_epsilon raised from 50 to 500 under an old name"),
        (Limits(5, 50.0), "reports_per_epoch raised from 1 to 5 under an old name"),
    ],
)
def test_build_refuses_what_devices_would_refuse(
    catalog_files: CatalogFiles, tmp_path: Path, limits: Limits, says: str
) -> None:
    out = tmp_path / "app.hubbub"
    _build(catalog_files, catalog_files.folder / "keys", out)
    with pytest.raises(BundleRefused, match=says):
        _build(catalog_files, catalog_files.folder / "keys", out, limits=limits)
    _build(catalog_files, catalog_files.folder / "keys", out, limits=Limits(1, 20.0))


def test_every_bundle_is_newer_than_the_one_before(
    catalog_files: CatalogFiles, tmp_path: Path
) -> None:
    out, keys = tmp_path / "app.hubbub", catalog_files.folder / "keys"
    serials = [_build(catalog_files, keys, out).serial for _ in range(3)]
    assert serials == sorted(set(serials))
    back = _build(catalog_files, keys, out, now=lambda: 5.0)
    assert back.serial == serials[-1] + 1, "also where the clock was set back"
    assert catalog_files.bundle.serial == 0, "as of version 0.1"
    assert b'"serial"' not in catalog_files.bundle.signed


@pytest.mark.slow
def test_a_handover_makes_a_key_that_the_old_one_vouches_for(
    catalog_files: CatalogFiles, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keys, out = tmp_path / "keys", tmp_path / "app.hubbub"
    make_keys(keys)
    first = _build(catalog_files, keys, out)
    for number in range(1, MAX_HANDOVERS + 3):
        assert main(["keys", "handover", str(keys)]) == 0
        old_key = keys / f"operator.{number}.key"
        assert (
            old_key.stat().st_mode & 0o777
            == (keys / "operator.key").stat().st_mode & 0o777
            == 0o600
        )
        bundle = _build(catalog_files, keys, out)
        assert len(bundle.line) == min(number, MAX_HANDOVERS) + 1
        assert base64.b64encode(bundle.operator).decode() == (keys / "operator.pub").read_text()
        assert base64.b64encode(bundle.operator).decode() in capsys.readouterr().out
        if number <= MAX_HANDOVERS:
            read_bundle(out, operator=first.operator)
    make_keys(tmp_path / "others")
    with pytest.raises(BundleRefused, match=r"never handed over to .*; hand over there with"):
        _build(catalog_files, tmp_path / "others", out)


def test_an_interrupted_handover_is_repeated(catalog_files: CatalogFiles, tmp_path: Path) -> None:
    keys, out = tmp_path / "keys", tmp_path / "app.hubbub"
    make_keys(keys)
    first = _build(catalog_files, keys, out)
    old = (keys / "operator.key").read_bytes()
    hand_over_to_new(keys)
    (keys / "operator.key").write_bytes(old)  # the word is there, its key is not
    assert _build(catalog_files, keys, out).line == first.line
    hand_over_to_new(keys)
    assert _build(catalog_files, keys, out).line[:-1] == first.line
    (keys / "handovers.json").write_text("[{}]")
    with pytest.raises(KeysUnusable, match="not a list of handovers"):
        _build(catalog_files, keys, out)
