"""The testing API that apps use, used as an app would."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import grpc
import pytest

import hubbub.client
from hubbub.client import Client, Outcome
from hubbub.client.testing import (
    FakeClock,
    FakeServer,
    FakeShuffler,
    capture,
    coins,
    memory_client,
)
from hubbub.client.testing.memory_clients import Captured
from hubbub.client.testing.pytest_plugin import hubbub_reports
from hubbub.errors import BadParameter, CatalogInvalid, ValueOutOfDomain
from hubbub.signing.testing import make_bundle
from tests.conftest import CATALOG
from tests.support.bundles import Signed
from tests.support.waiting import HANG_SECONDS, eventually

__all__ = ["hubbub_reports"]


def app_start(bundle: Path) -> None:
    """An app's own code: it makes its client itself."""
    client = Client.from_bundle(bundle, state_dir="/nonexistent/never/used")
    client.report("theme", "dark")
    client.report("theme", "light")


def test_reports_are_captured_by_raw_value(hubbub_reports: Captured, signed: Signed) -> None:
    app_start(signed.path)
    hubbub.client.init(signed.path)
    hubbub.client.report("editor", "vi")
    assert hubbub_reports.values("theme") == ["dark"]
    assert hubbub_reports.values("editor") == ["vi"]
    assert [report.outcome for report in hubbub_reports.reports] == [
        Outcome.QUEUED,
        Outcome.ALREADY_REPORTED,
        Outcome.QUEUED,
    ]
    with pytest.raises(ValueOutOfDomain):
        hubbub.client.report("theme", "plaid")


def test_capturing_ends(signed: Signed) -> None:
    before = Client.report, Client.from_bundle
    with capture() as captured:
        app_start(signed.path)
    assert (Client.report, Client.from_bundle) == before
    assert len(captured.reports) == 2


def test_the_same_seed_gives_the_same_payloads(signed: Signed) -> None:
    def payloads(seed: str) -> list[bytes]:
        client = memory_client(signed.path, seed=seed)
        for metric, value in (("theme", "dark"), ("homepage", "a.example"), ("editor", "vi")):
            client.report(metric, value)
        client.flush()
        return [payload.payload for payload in client.ledger().payloads]

    assert payloads("a") == payloads("a")
    assert any(payloads("a") != payloads(other) for other in "bcdefgh")
    assert coins("x").below(1 << 60) == coins("x").below(1 << 60) != coins("y").below(1 << 60)


@pytest.mark.slow
def test_a_fake_server_opens_what_a_real_client_sends(tmp_path: Path) -> None:
    (tmp_path / "metrics.toml").write_text(CATALOG)
    with FakeServer() as nobody:
        bundle = make_bundle(tmp_path / "metrics.toml", shuffler=nobody.address)
    with FakeServer(bundle.opening) as server:
        (tmp_path / "app.hubbub").write_bytes(bundle.signed)
        client = Client.from_bundle(
            tmp_path / "app.hubbub",
            state_dir=tmp_path / "state",
            shuffler=server.address,
            insecure=True,
            hold_seconds=0,
        )
        client.report("editor", "vi")
        server.failing, server.retry_ms = grpc.StatusCode.RESOURCE_EXHAUSTED, 10
        with ThreadPoolExecutor(1) as aside:
            flushed = aside.submit(client.flush, HANG_SECONDS)
            # The server's hint is taken: at the client's own pace more than five would take hours.
            eventually(lambda: server.calls > 12)
            server.failing = None
            assert flushed.result()
        sent = [payload.payload for payload in client.ledger().payloads]
        assert server.payloads("editor") == sent
        client.close()


def test_a_catalog_that_is_wrong_fails_the_test(tmp_path: Path) -> None:
    (tmp_path / "metrics.toml").write_text("nonsense")
    with pytest.raises(CatalogInvalid):
        make_bundle(tmp_path / "metrics.toml")


def test_files_are_named_as_docs_name_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A str does, as `make_bundle("metrics.toml")` in docs/client.md has it."""
    (tmp_path / "metrics.toml").write_text(CATALOG)
    monkeypatch.chdir(tmp_path)
    bundle = make_bundle("metrics.toml")
    (tmp_path / "app.hubbub").write_bytes(bundle.signed)
    with memory_client("app.hubbub") as client:
        client.report("theme", "dark")
        assert client.flush()
    assert repr(bundle.signed) not in repr(bundle), "a failing test prints it"


def test_a_fake_clock_takes_seconds_or_a_datetime_with_a_time_zone() -> None:
    day = datetime(2026, 11, 22, tzinfo=UTC)
    clock = FakeClock(day)
    assert clock.now() == FakeClock(day.timestamp()).now() == 1_795_305_600
    clock.set(datetime(2026, 11, 23, 1, tzinfo=timezone(timedelta(hours=1))))
    assert clock.now() == day.timestamp() + 86_400
    without_zone = datetime(2026, 11, 22)  # noqa: DTZ001 it is refused
    wrong_times: list[Any] = [without_zone, date(2026, 11, 22), "2026-11-22", True]
    for wrong in wrong_times:
        with pytest.raises(BadParameter, match="seconds since 1970, or a datetime with a"):
            FakeClock(wrong)


def test_a_fake_shuffler_asks_for_time() -> None:
    with pytest.raises(Exception, match="deadline_exceeded"):
        FakeShuffler().submit([], 0)
