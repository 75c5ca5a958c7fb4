"""How a client is told things, and that none of it can hurt the app."""

import asyncio
import contextlib
import dataclasses
import errno
import io
import logging
import re
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

import hubbub.client
from hubbub.client import (
    Client,
    FolderState,
    MemoryState,
    Outcome,
    Settings,
    TryAgain,
    default_client,
)
from hubbub.client.doctor import device_checks, examine
from hubbub.client.startup import WRONG_FILE
from hubbub.client.state_inspection import peek
from hubbub.client.testing import FakeShuffler
from hubbub.errors import (
    BadParameter,
    BundleRefused,
    HubbubError,
    StateUnusable,
    UnknownMetric,
    ValueOutOfDomain,
)
from tests.support.bundles import DAY, Signed, make_signed
from tests.support.catalogs import catalog_toml, metric_toml
from tests.support.client_parts import client_state, disconnect, store_reports
from tests.support.devices import idle_client
from tests.support.moment import now
from tests.support.waiting import HANG_SECONDS


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    for name in ("BUNDLE", "STATE_DIR", "DISABLED", "STRICT", "SHUFFLER", "LOG"):
        monkeypatch.delenv(f"HUBBUB_{name}", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    log = logging.getLogger("hubbub.client")
    handlers, level = list(log.handlers), log.level
    yield
    if default_client._client:
        default_client._client.close(0)
        default_client.end()
    log.handlers, log.level = handlers, level


def test_an_argument_overrides_the_environment_which_overrides_the_default() -> None:
    environment = {"HUBBUB_STATE_DIR": "env", "HUBBUB_HOLD_SECONDS": "1.5", "HUBBUB_LOG": "DEBUG"}
    settings = Settings.read(environment, state_dir="argument")
    assert settings.state_dir == Path("argument").absolute(), "wherever the app goes from here"
    assert (settings.hold_seconds, settings.log) == (1.5, "debug")
    assert settings.bundle == Path("app.hubbub")
    assert Settings.read(environment).state_dir == Path("env").absolute()


def test_an_argument_of_zero_or_false_overrides_the_environment_too() -> None:
    environment = {"HUBBUB_HOLD_SECONDS": "60", "HUBBUB_DISABLED": "1"}
    settings = Settings.read(environment, hold_seconds=0.0, disabled=False)
    assert (settings.hold_seconds, settings.disabled) == (0.0, False)


@pytest.mark.parametrize("text", ["", " "])
def test_an_empty_environment_variable_counts_as_unset(text: str) -> None:
    names = [field.name.upper() for field in dataclasses.fields(Settings)]
    assert Settings.read({f"HUBBUB_{name}": text for name in names}) == Settings.read({})


@pytest.mark.parametrize("text", ["1", "true", "Yes", " on "])
def test_a_switch_is_understood(text: str) -> None:
    assert Settings.read({"HUBBUB_DISABLED": text}).disabled


@pytest.mark.parametrize(
    ("variable", "text", "remedy"),
    [
        ("DISABLED", "maybe", "HUBBUB_DISABLED is not understood; write 1 or 0"),
        ("HOLD_SECONDS", "soon", "HUBBUB_HOLD_SECONDS is not understood; write a number"),
        ("HOLD_SECONDS", "-1", r"HUBBUB_HOLD_SECONDS -1.0 is outside \[0, 86400\]"),
        ("HOLD_SECONDS", "nan", "HUBBUB_HOLD_SECONDS nan is outside"),
        ("MAX_EPSILON", "-2", "HUBBUB_MAX_EPSILON -2.0 must be 0 or more, in nats"),
        ("MAX_EPSILON", "nan", "HUBBUB_MAX_EPSILON nan"),
        ("TRANSPORT", "grcp", "HUBBUB_TRANSPORT 'grcp' is not one of grpc, http"),
        ("APP", "a\nb", "HUBBUB_APP is not a valid name"),
        ("LOG", "loud", "HUBBUB_LOG 'loud' is not one of debug, info, warning, error"),
    ],
)
def test_a_wrong_setting_is_named_with_the_remedy(variable: str, text: str, remedy: str) -> None:
    with pytest.raises(BadParameter, match=remedy):
        Settings.read({f"HUBBUB_{variable}": text})


@pytest.mark.parametrize(
    ("name", "address", "problem"),
    [
        ("shuffler", "a.example", "'a.example' is not an address; write HOST:PORT or https://"),
        ("shuffler", "ftp://u:p@a:1", "'ftp://...@a:1': ftp:// is not supported; write HOST:PORT"),
        ("shuffler", "http://a.example", "is not on this machine: insecure is only for loopback"),
        ("relay", "a.example:443", "'a.example:443' is not an address; write https://HOST:PORT"),
    ],
)
def test_an_address_of_the_environment_is_refused_by_its_variable(
    name: str, address: str, problem: str
) -> None:
    with pytest.raises(BadParameter, match=f"^HUBBUB_{name.upper()} .*{re.escape(problem)}"):
        Settings.read({f"HUBBUB_{name.upper()}": address})
    with pytest.raises(BadParameter, match=f"^{name} .*{re.escape(problem)}"):
        Settings.read({}, **{name: address})


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        ({"disable": True}, "'disable' is not a setting; there are path, app, .*mean \"disabled\""),
        ({"pubic": {}}, "'pubic' is not a setting.*public, persons; did you mean \"public\""),
        ({"log": "warn1ng"}, "log 'warn1ng' is not one of debug.*did you mean \"warning\""),
        ({"max_epsilon": "0.1"}, "max_epsilon is not understood; give a number"),
        ({"hold_seconds": "soon"}, "hold_seconds is not understood; give a number"),
        ({"disabled": "maybe"}, "disabled is not understood; give True or False"),
        ({"strict": "no"}, "strict is not understood; give True or False"),
        ({"local": 3}, "local is not understood; give True or False"),
        ({"max_epsilon": True}, "max_epsilon is not understood; give a number"),
        ({"shuffler": 5}, "shuffler is not understood; give a text"),
        ({"hold_seconds": -1}, "^hold_seconds -1 is outside"),
    ],
)
def test_an_unknown_setting_is_refused(arguments: dict[str, Any], remedy: str) -> None:
    with pytest.raises(BadParameter, match=remedy):
        Client.from_bundle("app.hubbub", **arguments)


@pytest.mark.parametrize("path", ["", "a\0b", "\ud800", b"bytes", 7, ["a"]])
@pytest.mark.parametrize("name", ["bundle", "state_dir"])
def test_a_path_setting_that_is_no_path_is_refused(name: str, path: Any) -> None:
    with pytest.raises(BadParameter, match=f"{name} is not a path"):
        Settings.read({}, **{name: path})


@pytest.mark.parametrize("name", ["bundle", "state_dir"])
def test_a_path_that_only_a_shell_reads_is_refused(name: str) -> None:
    with pytest.raises(BadParameter, match=f"^HUBBUB_{name.upper()} begins with ~"):
        Settings.read({f"HUBBUB_{name.upper()}": "~/app/state"})


@pytest.mark.parametrize("folder", ["x" * 255, "x" * 231, f"{'x' * 300}/state"])
def test_a_folder_whose_name_leaves_no_room_for_files_beside_it_is_named(folder: str) -> None:
    with pytest.raises(BadParameter, match="HUBBUB_STATE_DIR is too long for files beside it"):
        Settings.read({"HUBBUB_STATE_DIR": folder})


@pytest.mark.parametrize("folder", ["state", "/dev/null"])
def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path, folder: str) -> None:
    (tmp_path / "state").touch()
    with pytest.raises(BadParameter, match="HUBBUB_STATE_DIR is a file; give a folder"):
        Settings.read({"HUBBUB_STATE_DIR": str(tmp_path / folder)})


def test_the_root_of_all_files_is_no_folder_for_state() -> None:
    with pytest.raises(
        BadParameter, match="HUBBUB_STATE_DIR is the root of all files; give a folder"
    ):
        Settings.read({"HUBBUB_STATE_DIR": "/"})


def test_an_unreadable_folder_is_named_but_is_no_wrong_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, **_: Any) -> NoReturn:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    for name in ("stat", "lstat"):
        monkeypatch.setattr(Path, name, refuse)
    assert Settings.read({"HUBBUB_STATE_DIR": str(tmp_path)}).state_dir == tmp_path
    with pytest.raises(
        StateUnusable, match=r"hubbub\.sqlite3: cannot be read: .*Permission denied"
    ):
        peek(tmp_path)


def test_a_folder_of_the_longest_name_keeps_state_and_trust(signed: Signed, tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 230)
    with Client.from_bundle(signed.path, state_dir=folder, hold_seconds=None) as client:
        assert client.report("theme", "dark") is Outcome.QUEUED
        disconnect(client)  # there is no shuffler to flush to
    assert {".json", ".witness"} <= {path.suffix for path in tmp_path.glob("x*.*")}


def test_the_environment_alone_starts_a_client(
    signed: Signed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUBBUB_BUNDLE", str(signed.path))
    monkeypatch.setenv("HUBBUB_STATE_DIR", str(tmp_path / "here"))
    with Client.from_bundle(insecure=True) as client:
        assert client.report("theme", "dark") is Outcome.QUEUED
        disconnect(client)  # there is no shuffler to flush to
    assert (tmp_path / "here" / "hubbub.sqlite3").exists()


def test_without_a_state_dir_the_state_is_in_the_users_folder(
    signed: Signed, tmp_path: Path
) -> None:
    Client.from_bundle(signed.path, insecure=True).close(0)
    (state_file,) = (tmp_path / "xdg" / "hubbub").glob("*/hubbub.sqlite3")
    assert len(state_file.parent.name) == 16, "by operator: apps of two operators do not meet"


def test_a_client_disabled_by_the_environment_reports_and_stores_nothing(
    signed: Signed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUBBUB_DISABLED", "1")
    client = Client.from_bundle(signed.path, insecure=True)
    assert client.report("theme", "dark") is Outcome.DISABLED
    assert client.close()
    assert not (tmp_path / "xdg").exists()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("APP", "a\x01"),
        ("STATE_DIR", "/"),
        ("DISABLED", "maybe"),
        ("LOCAL", "2"),
        ("STRICT", "often"),
        ("SHUFFLER", "http://shuffler.example.org"),
        ("TRANSPORT", "smoke"),
        ("RELAY", "https://relay.example.org"),
        ("MAX_EPSILON", "nan"),
        ("HOLD_SECONDS", "1e99"),
        ("LOG", "loud"),
    ],
)
def test_an_invalid_variable_disables_the_client_and_raises_only_if_strict(
    name: str,
    text: str,
    signed: Signed,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv(f"HUBBUB_{name}", text)
    with caplog.at_level(logging.WARNING, "hubbub.client"):
        client = default_client.init(signed.path)
    assert client
    assert client.report("theme", "dark") is Outcome.DISABLED
    assert client.flush() and client.close()  # noqa: PT018 neither raises
    assert caplog.text.count(f"nothing is reported: HUBBUB_{name} ") == 1
    if name != "STRICT":
        with pytest.raises(BadParameter, match=f"^HUBBUB_{name} "):
            default_client.init(signed.path, strict=True)


@pytest.mark.parametrize("text", ["~/app.hubbub", "missing.hubbub", "/" + "a" * 5000])
def test_a_wrong_variable_of_the_bundle_disables_the_client(
    text: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HUBBUB_BUNDLE", text)
    with caplog.at_level(logging.WARNING, "hubbub.client"):
        client = Client.from_bundle(strict=False)
    assert client.report("theme", "dark") is Outcome.DISABLED
    assert client.learn("churn", {}, 1) is Outcome.DISABLED
    assert client.flush() and client.close()  # noqa: PT018 neither raises
    assert "nothing is reported: HUBBUB_BUNDLE" in caplog.text
    assert "used wrongly" not in caplog.text
    with pytest.raises(StateUnusable, match="no state of this device: HUBBUB_BUNDLE"):
        client.enable()
    with pytest.raises(HubbubError, match=r"^HUBBUB_BUNDLE"):
        Client.from_bundle(strict=True)


@pytest.mark.parametrize("name", ["STATE_DIR", "APP"])
def test_an_opt_out_without_a_valid_folder_is_stored_in_no_other_one(
    name: str,
    signed: Signed,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv(f"HUBBUB_{name}", "~/a\x01")
    client = Client.from_bundle(signed.path)
    with caplog.at_level(logging.WARNING, "hubbub.client"):
        client.disable()
        client.close()
    assert "continuing in memory" in caplog.text
    assert not [*tmp_path.rglob("*.sqlite3")]


def test_the_operators_bundle_is_refused_if_strict_and_warned_of_otherwise(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fields = {"mechanism": "grr", "epsilon": 1.0, "values": ["a", "b"], "keep": "400d"}
    signed = make_signed(tmp_path, catalog_toml(metric_toml("theme", **fields)), start=DAY)
    with pytest.raises(BundleRefused, match="operator's bundle, for the aggregator"):
        Client.from_bundle(signed.path, strict=True)
    with caplog.at_level(logging.WARNING, "hubbub.client"):
        Client.from_bundle(signed.path, strict=False).close(0)
    assert caplog.text.count("ship app.hubbub") == 1
    findings = examine(device_checks(bundle=signed.path)[1:2])
    assert ("fault", WRONG_FILE) in [(finding.verdict, finding.text) for finding in findings]


def test_a_decision_in_a_disabled_run_is_stored(
    signed: Signed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start() -> Client:
        return Client.from_bundle(signed.path, insecure=True, state_dir=tmp_path / "s")

    for disable in (True, False):
        with monkeypatch.context() as patched:
            patched.setenv("HUBBUB_DISABLED", "1")
            client = start()
            client.disable() if disable else client.enable()
            assert client.report("theme", "dark") is Outcome.DISABLED, "the operator's goes first"
            assert client.ledger().on != disable
            assert client.close()
        client = start()
        outcome = Outcome.DISABLED if disable else Outcome.QUEUED
        assert client.report("theme", "dark") is outcome
        disconnect(client)  # nothing to flush to
        client.close(0)


def test_strict_raises_for_mistakes_and_production_counts_them(
    signed: Signed, caplog: pytest.LogCaptureFixture
) -> None:
    strict = idle_client(signed.bundle, strict=True)
    with pytest.raises(UnknownMetric):
        strict.report("colour", "dark")
    with pytest.raises(ValueOutOfDomain):
        strict.report("theme", "plaid-77")
    production = idle_client(signed.bundle, strict=False)
    with caplog.at_level(logging.WARNING, "hubbub.client"):
        for _ in range(3):
            assert production.report("colour", "dark") is Outcome.UNKNOWN_METRIC
            assert production.report("theme", "plaid-77") is Outcome.NOT_A_VALUE
            for thing in (None, 7, b"dark", object(), ["dark"], float("nan")):
                assert production.report("theme", thing) is Outcome.NOT_A_VALUE
                assert production.report("homepage", thing) is Outcome.NOT_A_VALUE
            names: list[Any] = [None, 7, ["theme"], {}]
            for name in names:
                assert production.report(name, "dark") in {
                    Outcome.UNKNOWN_METRIC,
                    Outcome.FAILED,
                }
    assert production.outcomes[Outcome.NOT_A_VALUE] == 39
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == len(set(messages)), "said once"
    assert not any("plaid" in message or "dark" in message for message in messages)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"on_drop": 5}, "on_drop is not understood; give a function"),
        ({"insecure": "yes"}, "insecure is not understood; give True or False"),
        ({"shuffler": 5}, "shuffler is not understood; give a text"),
        ({"hold_seconds": -1}, "^hold_seconds -1 is outside"),
        ({"account": 5}, "account is not understood; give the key of an account"),
        ({"account": "x", "strict": True}, "account is given, but .* need no tokens; leave it out"),
    ],
)
def test_a_client_of_a_wrong_argument_does_not_start(
    arguments: dict[str, Any], problem: str, signed: Signed
) -> None:
    with pytest.raises(BadParameter, match=problem):
        Client.from_bundle(signed.path, **arguments)


def test_a_needless_account_setting_is_logged_in_production(
    signed: Signed, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "hubbub.client"):
        client = Client.from_bundle(signed.path, account="x", hold_seconds=None, strict=False)
    client.close(0)
    assert "account is given, but" in caplog.text


@pytest.mark.parametrize("wrong", ["x", [1], True, {}])
def test_a_persons_wrong_choice_is_named(wrong: Any, signed: Signed) -> None:
    client = idle_client(signed.bundle, strict=False)
    with pytest.raises(BadParameter, match="max_epsilon is not understood; give a number"):
        client.prefer(wrong)
    with pytest.raises(BadParameter, match="max_local is not understood; give a number"):
        client.prefer(1.0, max_local=wrong)
    assert client.report("theme", "dark") is Outcome.QUEUED
    if wrong is not True:
        with pytest.raises(BadParameter, match="forget is not understood; give True or False"):
            client.disable(forget=wrong)
        assert client.report("theme", "dark") is Outcome.DISABLED, "this process has stopped"


@pytest.mark.parametrize("wrong", ["x", None, True, [1]])
def test_a_wrong_timeout_raises_if_strict_and_is_logged_in_production(
    wrong: Any, signed: Signed, caplog: pytest.LogCaptureFixture
) -> None:
    strict = idle_client(signed.bundle, strict=True)
    for end in (strict.flush, strict.close):
        with pytest.raises(BadParameter, match="timeout is not understood; give a number"):
            end(wrong)
    production = idle_client(signed.bundle, strict=False)
    with caplog.at_level(logging.WARNING, "hubbub.client"):
        assert production.flush(wrong)
        assert production.close(wrong)
    assert [record.getMessage() for record in caplog.records] == [
        "timeout is not understood; give a number"
    ]


def test_a_fault_of_our_own_is_an_outcome_in_production(
    signed: Signed, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        def chance(self, *_: object) -> bool:
            raise RuntimeError("secret-value")

        mask = below = chance

    production = idle_client(signed.bundle, strict=False, coins=Broken())
    with caplog.at_level(logging.WARNING, "hubbub.client"):
        assert production.report("theme", "dark") is Outcome.FAILED
    assert "report() failed: RuntimeError" in caplog.text
    assert "secret-value" not in caplog.text
    with pytest.raises(RuntimeError):
        idle_client(signed.bundle, strict=True, coins=Broken()).report("theme", "dark")


def test_an_object_that_raises_is_no_value_and_its_text_is_not_logged(
    signed: Signed, caplog: pytest.LogCaptureFixture
) -> None:
    class Hostile:
        def tolist(self) -> list[float]:
            raise RuntimeError("secret-value")

        __class__ = property(tolist)

    with pytest.raises(ValueOutOfDomain, match='metric "theme": cannot be read: RuntimeError'):
        idle_client(signed.bundle, strict=True).report("theme", Hostile())
    production = idle_client(signed.bundle, strict=False)
    with caplog.at_level(logging.WARNING, "hubbub.client"):
        assert production.report("theme", Hostile()) is Outcome.NOT_A_VALUE
    assert "secret-value" not in caplog.text


def test_a_value_passed_as_a_name_is_never_logged_and_warned_of_once(
    signed: Signed, caplog: pytest.LogCaptureFixture
) -> None:
    production = idle_client(signed.bundle, strict=False)
    with caplog.at_level(logging.WARNING, "hubbub.client"):
        for number in range(100):
            outcome = production.report(f"secret-{number}", "theme")
            assert outcome is Outcome.UNKNOWN_METRIC
            production.report(f"theme/secret-{number}", "dark")
            production.report("theme", f"secret-{number}")
    assert len(caplog.records) == 2
    assert "secret" not in caplog.text
    assert "pass the name first, then the value" in caplog.text


def test_a_report_during_another_report_does_not_hang(signed: Signed) -> None:
    """As of a signal's handler: it comes in between any two steps of the thread it interrupts."""
    inner: list[Outcome] = []

    class Interrupted:
        def chance(self, *_: object) -> bool:
            inner.append(client.report("editor", "vi"))
            return True

        def mask(self, *_: object) -> int:
            return 0

        below = mask

    client = idle_client(signed.bundle, coins=Interrupted())
    assert client.report("theme", "dark") is Outcome.QUEUED
    assert inner == [Outcome.OVERFLOWED]
    assert client.report("editor", "vi") is Outcome.QUEUED


def test_a_drop_callback_that_raises_ends_nothing(signed: Signed) -> None:
    def on_drop(metric: str, reason: str) -> None:
        raise ValueError(metric + reason)

    shuffler = FakeShuffler({0: "refused_expired"})
    client = Client(signed.bundle, MemoryState(), shuffler, hold_seconds=None, on_drop=on_drop)
    client.report("theme", "dark")
    assert client.flush(HANG_SECONDS)
    assert client.dropped == {"refused_expired": 1}


def test_a_raising_log_handler_of_the_app_ends_no_call(signed: Signed) -> None:
    class Raising(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise ValueError(record)

    shuffler = FakeShuffler(TryAgain("unavailable"), {0: "refused_expired"})
    client = Client(signed.bundle, MemoryState(), shuffler, hold_seconds=None, strict=False)
    handler, log = Raising(), logging.getLogger("hubbub.client")
    log.addHandler(handler)
    try:
        assert client.report("theme", "no such colour") is Outcome.NOT_A_VALUE
        client.report("theme", "dark")
        assert client.flush(HANG_SECONDS)
    finally:
        log.removeHandler(handler)
    assert client.dropped == {"refused_expired": 1}


def test_an_unusable_folder_is_logged_once_and_the_client_works_in_memory(
    signed: Signed, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way")
    with caplog.at_level(logging.WARNING, "hubbub.client"):
        client = Client.from_bundle(signed.path, state_dir=tmp_path / "file" / "x", insecure=True)
        assert client.report("theme", "dark") is Outcome.QUEUED
        assert client.report("theme", "dark") is Outcome.ALREADY_REPORTED
    assert len([r for r in caplog.records if "continuing in memory" in r.getMessage()]) == 1
    store_reports(client)
    client_state(client).take(1, 1000, now())
    client.close(0)
    again = Client.from_bundle(signed.path, state_dir=tmp_path / "file" / "x", insecure=True)
    assert again.report("theme", "dark") is Outcome.ALREADY_REPORTED, "its limits outlive it"
    again.close(0)


@pytest.mark.slow
def test_a_damaged_state_raises_nothing(signed: Signed, tmp_path: Path) -> None:
    for damage in ("UPDATE ledger SET account = '{'", "DROP TABLE reports", "DELETE FROM meta"):
        client = Client.from_bundle(signed.path, state_dir=tmp_path / "s", insecure=True)
        client.report("theme", "dark")
        store_reports(client)
        client_state(client).take(9, 1000, now())
        disconnect(client)
        client.close(0)
        with contextlib.closing(sqlite3.connect(tmp_path / "s" / "hubbub.sqlite3")) as rows:
            rows.execute(damage)
            rows.commit()
    client = Client.from_bundle(signed.path, state_dir=tmp_path / "s", insecure=True)
    assert client.report("theme", "dark") is Outcome.ALREADY_REPORTED
    assert client.report("crashed", "yes") is Outcome.QUEUED
    disconnect(client)
    client.close(0)


def test_without_a_writable_place_nothing_is_reported(
    signed: Signed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "file"))
    client = Client.from_bundle(signed.path, state_dir=tmp_path / "file" / "x", insecure=True)
    assert client.report("theme", "dark") is Outcome.NO_STATE
    client.close(0)


def test_a_small_program_reports_without_a_client_object(
    signed: Signed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert hubbub.client.report("theme", "dark") is Outcome.CLOSED
    client = hubbub.client.init(signed.path, state_dir=tmp_path / "s", insecure=True)
    assert client
    assert hubbub.client.report("theme", "dark") is Outcome.QUEUED
    assert hubbub.client.report("theme", "dark") is Outcome.ALREADY_REPORTED
    assert hubbub.client.report("colour", "dark") is Outcome.UNKNOWN_METRIC
    disconnect(client)  # nothing to flush to
    second = hubbub.client.init(signed.path, state_dir=tmp_path / "s2", insecure=True)
    assert client.report("crashed", "yes") is Outcome.CLOSED, "one client a program"
    assert second
    disconnect(second)
    assert hubbub.client.init(tmp_path / "none") is None
    assert hubbub.client.report("theme", "dark") is Outcome.CLOSED
    monkeypatch.setenv("HUBBUB_STRICT", "1")
    with pytest.raises(BadParameter, match=r"call hubbub\.client\.init\(\) first"):
        hubbub.client.report("theme", "dark")
    with pytest.raises(BundleRefused):
        hubbub.client.init(tmp_path / "none")


def test_strict_is_the_default_of_development_mode() -> None:
    assert Settings.read({}).is_strict() == sys.flags.dev_mode
    assert Settings.read({}).is_strict(development=True)
    assert Settings.read({"HUBBUB_STRICT": "1"}).is_strict()
    assert not Settings.read({"HUBBUB_STRICT": "0"}).is_strict(development=True)


def test_the_log_is_silent_unless_asked(
    signed: Signed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stderr = io.StringIO()
    monkeypatch.setattr("sys.stderr", stderr)
    (tmp_path / "file").write_text("")
    for level, expected in ((None, ""), ("warning", "hubbub.client WARNING continuing in memory")):
        client = Client.from_bundle(
            signed.path, state_dir=tmp_path / "file" / "x", insecure=True, log=level
        )
        client.close(0)
        assert expected in stderr.getvalue()
        assert bool(expected) == bool(stderr.getvalue())


async def test_async_with_closes_without_blocking_the_loop(signed: Signed) -> None:
    shuffler = FakeShuffler()
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            beats += 1
            await asyncio.sleep(0)

    heart = asyncio.create_task(beat())
    async with Client(signed.bundle, MemoryState(), shuffler, hold_seconds=None) as client:
        assert client.report("theme", "dark") is Outcome.QUEUED
        before = beats
    heart.cancel()
    assert len(shuffler.reports()) == 1
    assert beats > before


def test_two_clients_of_one_app_share_the_limits(signed: Signed, tmp_path: Path) -> None:
    shuffler = FakeShuffler()
    first, other = (
        Client(signed.bundle, FolderState(tmp_path / "s"), shuffler, hold_seconds=None)
        for _ in range(2)
    )
    assert first.report("theme", "dark") is Outcome.QUEUED
    assert other.report("theme", "dark") is Outcome.QUEUED, "drawn, and not entered yet"
    assert first.close(HANG_SECONDS)
    assert other.close(HANG_SECONDS)
    assert len(shuffler.reports()) == 1
    assert other.dropped == {"already_reported": 1}
