"""Which operator a device trusts, what it was promised, and who can change either."""

import base64
import json
import multiprocessing
import os
import shutil
import sys
import zipfile
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hubbub.bundles import Bundle, read_bundle
from hubbub.bundles.key_handover import MAX_HANDOVERS, Handover, hand_over
from hubbub.catalog.limits_and_budgets import Limits
from hubbub.client import Client, FolderState, Outcome
from hubbub.client.startup import program_name
from hubbub.client.trust import Pin, Trust, _temporary_path, folder_of, lock_store
from hubbub.errors import BadParameter, BundleRefused
from hubbub.signing.sign_bundle import sign_bundle
from tests.support.bundles import Signed
from tests.support.client_parts import client_state, disconnect, store_reports
from tests.support.commands import output_of
from tests.support.moment import now
from tests.support.programs import run_program

pytestmark = pytest.mark.slow

if sys.platform != "win32":
    import fcntl

OURS, STRANGER, NEXT, LAST = (
    Ed25519PrivateKey.from_private_bytes(bytes([n]) * 32) for n in range(4)
)


def public(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes_raw()


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "xdg" / "hubbub"


class App:
    """One app on one device: ships a bundle of whoever signs it, starts, reports and ends."""

    def __init__(self, folder: Path, bundle: Bundle) -> None:
        self.path = folder / "app.hubbub"
        self.bundle = bundle

    def ship(self, key: Ed25519PrivateKey, **changes: Any) -> None:
        self.path.write_bytes(sign_bundle(replace(self.bundle, **changes), key))

    def start(self, **options: Any) -> Client:
        return Client.from_bundle(self.path, **{"insecure": True, "strict": False, **options})

    def is_refused(self, says: str = ".", **options: Any) -> None:
        with pytest.raises(BundleRefused, match=says):
            self.start(**options)

    def report(self, metric: str = "theme", **options: Any) -> Outcome:
        client = self.start(**options)
        try:
            outcome = client.report(metric, "yes" if metric == "crashed" else "dark")
            store_reports(client)
            client_state(client).take(9, 1 << 20, now())  # spent, and written down
            return outcome
        finally:
            disconnect(client)  # there is nobody to send to
            client.close(0)


@pytest.fixture
def app(signed: Signed, tmp_path: Path) -> App:
    return App(tmp_path, replace(signed.bundle, operator=b"", signed=b""))


@pytest.fixture(params=["own", "given"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """The user's own folder, or one that the app gives."""
    return {} if request.param == "own" else {"state_dir": tmp_path / "given" / "state"}


def test_the_first_operator_is_trusted_and_no_other(app: App, where: dict[str, Any]) -> None:
    app.ship(OURS)
    assert app.report(**where) is Outcome.QUEUED
    app.ship(STRANGER, shuffler="127.0.0.1:9")
    for _ in range(2):
        app.is_refused("pass operator=KEY", **where)
    app.ship(OURS)
    assert app.report(**where) is Outcome.ALREADY_REPORTED


def test_lost_files_beside_the_trust_do_not_make_a_stranger_trusted(
    app: App, where: dict[str, Any], home: Path
) -> None:
    for damage in (b"", b"{", b"\xff" * 100, b'{"version":1}', None):
        app.ship(OURS)
        app.report(**where)
        place = where.get("state_dir", home / "x").parent
        for file in place.glob("*trust.json"):
            if damage is None:
                file.unlink()
            else:
                file.write_bytes(damage)
        app.ship(STRANGER)
        app.is_refused("not by", **where)
        app.ship(OURS)
        assert app.report(**where) is Outcome.ALREADY_REPORTED


def test_a_flipped_bit_in_the_trust_refuses_no_bundle_and_resets_no_limit(
    app: App, where: dict[str, Any], home: Path
) -> None:
    app.ship(OURS)
    app.report(**where)
    place = where.get("state_dir", home / "x").parent
    (file,) = place.glob("*trust.json")
    content = file.read_bytes()
    for position in range(0, len(content), 11):
        flipped = bytearray(content)
        flipped[position] ^= 1 << position % 8
        file.write_bytes(flipped)
        client = app.start(**where)
        assert client.report("theme", "dark") is Outcome.ALREADY_REPORTED, position
        disconnect(client)
        client.close(0)
        assert file.read_bytes() == content or b'"sum"' not in flipped


def test_a_lost_state_keeps_the_trust(app: App, where: dict[str, Any], home: Path) -> None:
    import shutil

    app.ship(OURS)
    app.report(**where)
    shutil.rmtree(where.get("state_dir", home / folder_of(public(OURS))))
    app.ship(STRANGER)
    app.is_refused("not by", **where)


def test_trust_and_state_lost_at_once_still_know_a_stranger(app: App, home: Path) -> None:
    app.ship(OURS)
    app.report()
    for file in (home / "trust.json", *home.glob("*/hubbub.sqlite3*")):
        file.write_bytes(b"garbage" * 999)
    app.ship(STRANGER, history={})
    app.is_refused("not by who used the state there is")
    app.ship(OURS)
    assert app.report() is not Outcome.QUEUED


def test_apps_have_a_trust_each_and_share_the_ledger_of_one_operator(app: App, home: Path) -> None:
    app.ship(OURS)
    assert app.report(app="one") is Outcome.QUEUED
    assert app.report(app="other") is Outcome.ALREADY_REPORTED
    app.ship(STRANGER)
    app.is_refused('the app "one" trusts', app="one")
    assert app.report(app="third") is Outcome.QUEUED, "another program, another operator"
    assert len(list(home.glob("*/hubbub.sqlite3"))) == 2
    assert (home / "trust.json").stat().st_mode & 0o777 == 0o600


def test_an_explicit_operator_changes_the_trust_and_keeps_consent(
    app: App, where: dict[str, Any]
) -> None:
    app.ship(OURS)
    assert app.report(**where) is Outcome.QUEUED
    client = app.start(**where)
    client.prefer(0.5)
    client.close(0)
    app.ship(STRANGER)
    assert app.report(operator=public(STRANGER), **where) is Outcome.DECLINED, "0.5 is below 1"
    client = app.start(**where)
    assert client.report("crashed", "yes") is Outcome.QUEUED, "it has a tier"
    (theme, *_) = client.ledger().metrics
    assert theme.spent == pytest.approx(1.0, rel=1e-3), "what was spent stays spent"
    disconnect(client)
    client.close(0)
    app.ship(OURS)
    app.is_refused("not by", **where)


def test_an_opt_out_applies_to_the_next_operator(app: App, where: dict[str, Any]) -> None:
    app.ship(OURS)
    client = app.start(**where)
    client.report("theme", "dark")
    client.disable()
    client.close(0)
    app.ship(STRANGER)
    assert app.report(operator=public(STRANGER), **where) is Outcome.DISABLED
    assert app.report(**where) is Outcome.DISABLED


def test_waiting_reports_are_not_sent_to_another_operator(app: App, tmp_path: Path) -> None:
    app.ship(OURS)
    app.report(state_dir=tmp_path / "s")
    app.ship(STRANGER)
    client = app.start(operator=public(STRANGER), state_dir=tmp_path / "s")
    assert client.waiting == 0
    assert client.ledger().counts["operator_changed"] == 1
    client.close(0)


def test_a_process_of_the_former_operator_stops_after_a_change(app: App, tmp_path: Path) -> None:
    app.ship(OURS)
    former = app.start(state_dir=tmp_path / "s", hold_seconds=None)
    assert former.report("theme", "dark") is Outcome.QUEUED
    app.ship(STRANGER)
    other = app.start(operator=public(STRANGER), state_dir=tmp_path / "s", hold_seconds=None)
    assert other.report("crashed", "yes") is Outcome.QUEUED
    store_reports(other)
    store_reports(former)
    assert former.dropped == {"operator_changed": 1}
    assert former.report("theme", "dark") is Outcome.NO_STATE
    assert client_state(former).take(9, 1 << 20, now()) == ([], []), "another's report is not sent"
    assert len(client_state(other).take(9, 1 << 20, now())[0]) == 1
    for client in (former, other):
        disconnect(client)
        client.close(0)


def test_an_app_that_pins_an_operator_accepts_no_other(app: App, where: dict[str, Any]) -> None:
    app.ship(STRANGER)
    app.is_refused("not by the pinned operator", operator=public(OURS), **where)
    with pytest.raises(BadParameter, match="32 bytes"):
        app.start(operator=b"short", **where)


# Handovers


def chain(*keys: Ed25519PrivateKey) -> tuple[Handover, ...]:
    return tuple(hand_over(old, public(new)) for old, new in pairwise(keys))


def test_a_handover_keeps_folder_secret_ledger_and_consent(
    app: App, where: dict[str, Any], home: Path
) -> None:
    app.ship(OURS, serial=1)
    assert app.report(**where) is Outcome.QUEUED
    folder = where.get("state_dir", home / folder_of(public(OURS)))
    with closing(FolderState(folder)) as state:
        secret, waiting = state.device_state().secret, state.waiting()
    app.ship(NEXT, serial=2, handovers=chain(OURS, NEXT))
    assert app.report(**where) is Outcome.ALREADY_REPORTED
    with closing(FolderState(folder)) as state:
        assert (state.device_state().secret, state.waiting()) == (secret, waiting)
    app.ship(NEXT, serial=3)  # the chain was left out: this device knows the key
    assert app.report(**where) is Outcome.ALREADY_REPORTED
    for serial in (1, 9):
        app.ship(OURS, serial=serial)
        app.is_refused("handed over to another key on this device", **where)
        app.is_refused("handed over to another key on this device", operator=public(OURS), **where)


def test_an_app_that_pins_the_old_key_accepts_its_handover(app: App, where: dict[str, Any]) -> None:
    app.ship(OURS)
    assert app.report(operator=public(OURS), **where) is Outcome.QUEUED
    app.ship(NEXT, handovers=chain(OURS, NEXT))
    for _ in range(2):
        assert app.report(operator=public(OURS), **where) is Outcome.ALREADY_REPORTED
    app.ship(LAST, handovers=chain(OURS, NEXT, LAST))
    assert app.report(operator=public(OURS), **where) is Outcome.ALREADY_REPORTED


def test_the_old_key_cannot_take_over_devices_after_a_handover(
    app: App, where: dict[str, Any]
) -> None:
    app.ship(OURS)
    app.report(**where)
    app.ship(NEXT, handovers=chain(OURS, NEXT))
    app.report(**where)
    app.ship(STRANGER, serial=99, handovers=chain(OURS, STRANGER))
    for word in (None, public(OURS)):
        app.is_refused(operator=word, **where)
    app.ship(OURS, serial=99, handovers=chain(STRANGER, OURS))
    app.is_refused(**where)


def test_a_new_device_trusts_no_key_that_handed_over(app: App) -> None:
    app.ship(OURS)
    app.report(app="one")
    app.report(app="slow")
    app.ship(NEXT, handovers=chain(OURS, NEXT))
    app.report(app="one")
    app.ship(OURS)
    assert app.report(app="slow") is Outcome.ALREADY_REPORTED, "it has not heard of it yet"
    app.is_refused("handed over", app="new")
    app.ship(NEXT)
    assert app.report(app="new") is Outcome.ALREADY_REPORTED, "the same operator's ledger"


def test_after_one_app_saw_a_handover_every_app_refuses_a_fork_of_it(app: App) -> None:
    app.ship(OURS)
    for name in ("one", "slow"):
        app.report(app=name)
    app.ship(NEXT, handovers=chain(OURS, NEXT))
    app.report(app="one")
    app.ship(STRANGER, handovers=chain(OURS, STRANGER))
    for name in ("one", "slow", "new"):
        for word in (None, public(OURS)):
            app.is_refused("handed over", app=name, operator=word)
    app.ship(LAST, handovers=chain(OURS, NEXT, LAST))
    app.report(app="one")
    app.ship(NEXT, handovers=chain(OURS, NEXT))
    assert app.report(app="slow") is Outcome.ALREADY_REPORTED, "it is behind, and on the way"
    app.ship(LAST, handovers=chain(OURS, NEXT, LAST))
    assert app.report(app="new", operator=public(OURS)) is Outcome.ALREADY_REPORTED


def test_an_operator_may_hand_over_to_a_former_key(app: App, where: dict[str, Any]) -> None:
    app.ship(OURS)
    app.report(**where)
    app.ship(NEXT, handovers=chain(OURS, NEXT))
    app.report(**where)
    app.ship(OURS, handovers=chain(NEXT, OURS))
    assert app.report(**where) is Outcome.ALREADY_REPORTED
    app.ship(NEXT)
    app.is_refused("handed over", **where)


@pytest.mark.parametrize(
    ("signer", "handovers", "says"),
    [
        (NEXT, lambda: chain(OURS, LAST), "do not lead step by step to the key"),
        (LAST, lambda: (*chain(OURS, NEXT), *chain(STRANGER, LAST)), "do not lead"),
        (OURS, lambda: chain(OURS, NEXT, OURS), "return to a key"),
        (LAST, lambda: chain(NEXT, OURS, NEXT, LAST), "return to a key"),
    ],
    ids=["truncated", "with a gap", "a loop", "a loop on the way"],
)
def test_a_chain_of_handovers_to_another_key_is_refused(
    app: App, signer: Ed25519PrivateKey, handovers: Any, says: str
) -> None:
    body = replace(app.bundle, operator=b"", handovers=handovers())
    app.path.write_bytes(sign_bundle(body, signer))
    with pytest.raises(BundleRefused, match=says):
        read_bundle(app.path)


def test_a_forged_handover_is_refused() -> None:
    word = hand_over(OURS, public(NEXT))
    for forged in (
        {"signature": bytes(64)},
        {"signature": OURS.sign(public(NEXT))},
        {"signature": STRANGER.sign(b"hubbub/1 handover\n" + word.old + word.new)},
        {"signature": OURS.sign(b"hubbub/1 bundle\n" + word.old + word.new)},
        {"old": public(STRANGER)},
        {"new": public(LAST)},
        {"new": bytes(32)},
        {"old": word.new, "new": word.new},
    ):
        with pytest.raises(BadParameter):
            replace(word, **forged)


def test_a_chain_of_handovers_has_the_limit_of_a_bundle(app: App) -> None:
    keys = [Ed25519PrivateKey.generate() for _ in range(MAX_HANDOVERS + 2)]
    app.ship(keys[MAX_HANDOVERS], handovers=chain(*keys[: MAX_HANDOVERS + 1]))
    assert len(read_bundle(app.path, operator=public(keys[0])).line) == MAX_HANDOVERS + 1
    app.path.write_bytes(sign_bundle(replace(app.bundle, handovers=chain(*keys)), keys[-1]))
    with pytest.raises(BundleRefused, match="handovers are too many"):
        read_bundle(app.path)


# What was promised


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"epsilon": 12.0}, "epsilon raised from 1 to 12"),
        ({"epsilon": 0.5}, "its definition changed"),
        ({"values": ("light", "dark")}, "its definition changed"),
        ({"epoch": "hour"}, "its definition changed"),
        ({"limits": Limits(1, 500.0)}, "lifetime_epsilon raised from 50 to 500"),
        ({"limits": Limits(2, 50.0)}, "reports_per_epoch raised from 1 to 2"),
    ],
)
def test_a_newer_bundle_that_takes_more_under_an_old_name_is_refused(
    app: App, where: dict[str, Any], change: dict[str, Any], says: str
) -> None:
    app.ship(OURS, serial=1)
    app.report(**where)
    theme = replace(app.bundle.metric("theme"), **change)
    metrics = {**app.bundle.metrics, "theme": theme}
    history = {**app.bundle.history, "theme": theme.digest()}
    app.ship(OURS, serial=2, metrics=metrics, history=history)
    for _ in range(2):
        app.is_refused(f'metric "theme": {says}; .*a new name', **where)
    app.ship(OURS, serial=3)
    assert app.report(**where) is Outcome.ALREADY_REPORTED


def test_a_name_is_remembered_when_it_is_retired_and_limits_never_grow_again(
    app: App, where: dict[str, Any]
) -> None:
    app.ship(OURS, serial=1)
    app.report(**where)
    rest = {name: metric for name, metric in app.bundle.metrics.items() if name != "theme"}
    app.ship(OURS, serial=2, metrics=rest)
    app.report("crashed", **where)
    raised = replace(app.bundle.metric("theme"), limits=Limits(1, 51.0))
    app.ship(OURS, serial=3, metrics={**rest, "theme": raised})
    app.is_refused("from 50 to 51", **where)
    lowered = replace(raised, limits=Limits(1, 20.0))
    app.ship(OURS, serial=3, metrics={**rest, "theme": lowered})
    app.report(**where)
    app.ship(OURS, serial=4)
    app.is_refused("from 20 to 50", **where)


def test_a_name_known_from_the_history_alone_keeps_its_meaning(app: App) -> None:
    rest = {name: metric for name, metric in app.bundle.metrics.items() if name != "theme"}
    app.ship(OURS, serial=1, metrics=rest)
    app.report("crashed")
    other = replace(app.bundle.metric("theme"), values=("a", "b"))
    history = {**app.bundle.history, "theme": other.digest()}
    app.ship(OURS, serial=2, metrics={**rest, "theme": other}, history=history)
    app.is_refused("its definition changed")


def test_tiers_sampling_and_the_words_may_change(app: App) -> None:
    app.ship(OURS, serial=1)
    app.report()
    theme = replace(
        app.bundle.metric("theme"), tiers=(0.5,), sampling=0.5, min_batch=40, description="Theme"
    )
    app.ship(OURS, serial=2, metrics={**app.bundle.metrics, "theme": theme})
    assert app.report() in {Outcome.ALREADY_REPORTED, Outcome.NOT_SAMPLED}


def test_an_older_bundle_put_back_is_refused(app: App, where: dict[str, Any]) -> None:
    for serial in (0, 0, 7, 7, 9):
        app.ship(OURS, serial=serial)
        app.report(**where)
    for serial in (8, 0):
        app.ship(OURS, serial=serial)
        app.is_refused(f"serial {serial}, below 9", **where)
    if not where:
        assert app.report(app="other") is Outcome.ALREADY_REPORTED, "each app has its own bundles"


def test_a_process_with_the_older_bundle_continues_beside_a_newer_one(app: App) -> None:
    app.ship(OURS, serial=1)
    older = app.start()
    app.ship(OURS, serial=2)
    newer = app.start()
    assert newer.report("theme", "dark") is Outcome.QUEUED
    store_reports(newer)
    store_reports(older)
    assert older.report("theme", "dark") is Outcome.ALREADY_REPORTED
    assert older.report("crashed", "yes") is Outcome.QUEUED
    store_reports(older)
    assert newer.waiting == 2, "one outbox"
    app.ship(OURS, serial=1)
    app.is_refused("older")
    for client in (older, newer):
        disconnect(client)
        client.close(0)


def _start(path: Path, home: str) -> str:
    os.environ["XDG_STATE_HOME"] = home
    try:
        Client.from_bundle(path, insecure=True, app="many").close(0)
    except BundleRefused:
        return "refused"
    return "taken"


def test_the_first_of_two_simultaneous_operators_is_trusted(app: App, tmp_path: Path) -> None:
    paths = []
    for number, key in enumerate((OURS, STRANGER) * 2):
        app.ship(key)
        paths.append(app.path.rename(tmp_path / f"{number}.hubbub"))
    context = multiprocessing.get_context("spawn")
    with context.Pool(len(paths)) as pool:
        outcomes = pool.starmap(_start, [(path, str(tmp_path / "many")) for path in paths])
    assert outcomes.count("taken") == 2
    assert len(set(outcomes[::2])) == len(set(outcomes[1::2])) == 1


# What version 0.1 left, and places that cannot be written


def _left_by_0_1(folder: Path, app: App, key: Ed25519PrivateKey) -> None:
    """A state as version 0.1 kept it: the operator and the last bundle are in the file alone."""
    app.ship(key)
    state = FolderState(folder)
    state.remember(public(key), app.path.read_bytes())
    state.prefer(0.25, 0.25)
    state.close()


def test_a_state_of_version_0_1_continues_and_vouches_for_its_operator(
    app: App, where: dict[str, Any], home: Path
) -> None:
    _left_by_0_1(where.get("state_dir", home / folder_of(public(OURS))), app, OURS)
    app.ship(STRANGER)
    app.is_refused("not by", **where)
    raised = replace(app.bundle.metric("theme"), limits=Limits(1, 51.0))
    app.ship(OURS, serial=1, metrics={**app.bundle.metrics, "theme": raised})
    app.is_refused("from 50 to 51", **where)
    app.ship(NEXT, serial=1, handovers=chain(OURS, NEXT))
    assert app.report(**where) is Outcome.DECLINED, "its preference"


def test_a_copy_beside_a_state_of_version_0_1_is_not_used(app: App, home: Path) -> None:
    """Whatever its name: it was made before the person said something."""
    state_dir = home / folder_of(public(OURS))
    state_dir.mkdir(parents=True)
    with closing(FolderState(state_dir)) as state:
        state.remember(public(OURS), sign_bundle(app.bundle, OURS))
    for name in ("0", "Copy of it", f"{state_dir.name}.bak", f"a {state_dir.name}"):
        shutil.copytree(state_dir, home / name)
    _left_by_0_1(state_dir, app, OURS)
    app.ship(OURS)
    assert app.report() is Outcome.DECLINED
    assert (
        json.loads((home / "trust.json").read_text())["apps"].popitem()[1]["folder"]
        == state_dir.name
    )


def test_a_state_of_version_0_1_does_not_vouch_for_an_app_with_other_metrics(
    app: App, home: Path
) -> None:
    _left_by_0_1(home / folder_of(public(OURS)), app, OURS)
    theme = replace(app.bundle.metric("theme"), name="colour")
    app.ship(STRANGER, metrics={"colour": theme}, history={"colour": theme.digest()})
    app.start().close(0)
    app.ship(OURS)
    assert app.report(app="another") is Outcome.DECLINED, "that folder is its operator's still"


def test_an_explicit_operator_overrides_the_trust_of_version_0_1(app: App, home: Path) -> None:
    _left_by_0_1(home / folder_of(public(OURS)), app, OURS)
    app.ship(STRANGER)
    assert app.report(operator=public(STRANGER)) is Outcome.DECLINED, "the preference goes along"


def test_without_a_writable_home_the_first_operator_is_still_remembered(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    app.ship(OURS)
    assert app.report() is Outcome.QUEUED
    app.ship(STRANGER)
    app.is_refused("not by")
    app.is_refused("cannot be moved", operator=public(STRANGER), strict=True)
    assert app.start(operator=public(STRANGER)).report("theme", "dark") is Outcome.DISABLED
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    assert app.report(operator=public(STRANGER), app="x") is Outcome.QUEUED, "another place"


@pytest.mark.skipif(sys.platform == "win32", reason="there a folder has no owner of this kind")
@pytest.mark.parametrize("mode", [0o777, 0o700])
def test_temporary_files_of_other_users_are_not_trusted(
    app: App, home: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    """Nor by root, whose folder there anybody may have made before it."""
    app.ship(OURS)
    app.report(app="a")
    ours, theirs = public(OURS), public(STRANGER)
    planted = Trust({"a": Pin(operator=theirs, folder=folder_of(theirs), before=(ours,))})
    place = _temporary_path(home / "trust.json")
    place.parent.mkdir()
    place.write_text(json.dumps(planted.data()))
    place.parent.chmod(mode)
    if mode == 0o700:  # made by another user: or we are another one
        another = os.getuid() + 1
        monkeypatch.setattr("os.getuid", lambda: another)
        place.parent.rename(place.parent.with_name(f"hubbub-{another}"))
    app.ship(STRANGER)
    app.is_refused("not by", app="a")
    app.ship(OURS)
    assert app.report(app="a") is Outcome.ALREADY_REPORTED


@pytest.mark.parametrize("writable", [True, False])
def test_an_older_bundle_is_refused_if_any_file_knows_a_newer(
    app: App, home: Path, monkeypatch: pytest.MonkeyPatch, *, writable: bool
) -> None:
    app.ship(OURS, serial=1)
    app.report()
    with monkeypatch.context() as patch:
        patch.setattr("os.access", lambda path, _: Path(path) != home)  # to be read alone
        app.ship(OURS, serial=3)
        app.report()
        app.ship(OURS, serial=2)
        if not writable:
            app.is_refused("serial 2, below 3")
    if writable:
        app.is_refused("serial 2, below 3")
        app.ship(OURS, serial=3)
        app.report()
    assert _temporary_path(home / "trust.json").exists() is not writable, "told to its own place"


def test_a_folders_trust_is_found_whether_its_parent_can_be_written_or_not(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state_dir = tmp_path / "given" / "state"
    access = os.access
    for serial, closed in ((3, False), (5, True), (7, False)):
        with monkeypatch.context() as patch:
            patch.setattr(
                "os.access",
                lambda path, mode, closed=closed: (
                    access(path, mode) and not (closed and Path(path) == state_dir.parent)
                ),
            )
            if serial > 3:
                app.ship(OURS, serial=serial - 3)
                app.is_refused(f"below {serial - 2}", state_dir=state_dir)
            app.ship(OURS, serial=serial)
            app.report(state_dir=state_dir)
    assert not (state_dir / "trust.json").exists(), "it is in its own place again"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are none here")
def test_a_pipe_in_place_of_the_trust_file_blocks_no_app(app: App, home: Path) -> None:
    home.mkdir(parents=True)
    os.mkfifo(home / "trust.json")
    app.ship(OURS)
    app.is_refused("is no file", strict=True)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows does not fork")
def test_a_child_forked_at_start_blocks_no_other_process(tmp_path: Path) -> None:
    begin, end = os.pipe()
    with lock_store(tmp_path / "trust.json"):
        child = os.fork()
        if not child:  # it lives on with a copy of the lock
            os.close(end)
            os.read(begin, 1)
            os._exit(0)
    os.close(begin)
    other = _lock_of(tmp_path / "trust.json")
    os.close(end)
    os.waitpid(child, 0)
    assert other, "free as soon as its owner lets go"


def _lock_of(path: Path) -> bool:
    with path.with_name(f"{path.name}.lock").open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def test_an_app_starts_without_any_place_for_temporary_files(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that is full, or to be read alone, everywhere: nothing is sent, nothing raised."""

    def raise_not_found() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr("tempfile.gettempdir", raise_not_found)
    app.ship(OURS)
    assert app.report() is Outcome.QUEUED, "the folder can be used"
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    client = app.start()
    assert client.report("theme", "dark") is Outcome.NO_STATE
    client.close(0)


def test_an_unreadable_trust_file_trusts_nobody(app: App, home: Path) -> None:
    app.ship(OURS)
    app.report()
    (home / "trust.json").unlink()
    (home / "trust.json").mkdir()
    for key in (OURS, STRANGER):
        app.ship(key)
        app.is_refused("the trusted operator cannot be read", strict=True)
        assert app.start().report("theme", "dark") is Outcome.DISABLED


def test_an_unreadable_trust_file_is_not_overwritten(app: App, home: Path) -> None:
    home.mkdir(parents=True)
    newer = json.dumps({"version": 2, "apps": {"other": "in another way"}})
    (home / "trust.json").write_text(newer)
    app.ship(OURS)
    app.is_refused("written by a newer hubbub; upgrade", strict=True)
    assert app.start().report("theme", "dark") is Outcome.DISABLED
    assert app.report(operator=public(OURS)) is Outcome.QUEUED
    assert (home / "trust.json").read_text() == newer


def test_the_name_is_the_programs_own(tmp_path: Path) -> None:
    code = "from hubbub.client.startup import program_name; print(program_name())"
    (tmp_path / "my_app.py").write_text(code)
    package = tmp_path / "packed"
    package.mkdir()
    (package / "__main__.py").write_text(code)
    (package / "__init__.py").touch()
    with zipfile.ZipFile(tmp_path / "zipped.pyz", "w") as file:
        file.writestr("__main__.py", code)
    for arguments, name in (
        (["my_app.py"], "my_app"),
        (["-m", "my_app"], "my_app"),
        (["-m", "packed"], "packed"),
        (["packed"], "packed"),
        (["zipped.pyz"], "zipped"),
        (["-c", code], f"python in {tmp_path}"),
    ):
        run = run_program(sys.executable, *arguments, cwd=tmp_path, check=True)
        assert run.stdout.strip() == name, arguments
    assert program_name() == f"pytest in {Path.cwd()}"


def test_apps_of_two_operators_start_by_one_launcher(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
    for _ in range(2):
        for folder, key in (("first", OURS), ("second", STRANGER)):
            monkeypatch.chdir(tmp_path / folder)
            app.ship(key)
            app.start().close(0)
    app.ship(OURS)
    app.is_refused("on purpose, pass operator=KEY")


def test_trust_stored_under_the_launchers_name_still_holds(app: App, home: Path) -> None:
    app.ship(OURS)
    app.report()
    trust = json.loads((home / "trust.json").read_text())
    trust["apps"] = {"pytest": trust["apps"].pop(program_name())}  # as version 0.2 wrote it
    del trust["sum"]
    (home / "trust.json").write_text(json.dumps(trust))
    app.ship(STRANGER)
    app.is_refused("on purpose, pass operator=KEY")
    app.ship(OURS)
    assert app.report() is Outcome.ALREADY_REPORTED
    assert json.loads((home / "trust.json").read_text())["apps"].keys() == {program_name()}


def test_a_person_sees_whom_each_app_trusts(
    app: App, where: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    app.ship(OURS)
    app.report(**where)
    app.ship(NEXT, handovers=chain(OURS, NEXT))
    app.report(**where)
    arguments = ["--state-dir", str(where["state_dir"])] if where else []
    output = " ".join(output_of(capsys, "ledger", *arguments).split())
    who = "this folder" if where else f'the app "{program_name()}"'
    key = base64.b64encode(public(NEXT)).decode()
    assert f"{who} trusts the operator {key}; key handovers: 1" in output
