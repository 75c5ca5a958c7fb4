"""A notice on its way: made by the command, served by a shuffler that runs, heeded by devices."""

import http.client
import ssl
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hubbub.authoring import Catalog
from hubbub.cli.main import main
from hubbub.client import Client, FolderState, MemoryState, Outcome, State, transport_to
from hubbub.installation.local_run import LocalRun, Ports
from tests.conftest import CatalogFiles
from tests.support.law_terms import total_counts
from tests.support.waiting import HANG_SECONDS, eventually

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def run(
    catalog_files: CatalogFiles, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalRun]:
    theme = catalog_files.bundle.metrics["theme"]
    catalog = Catalog(
        shuffler="127.0.0.1:1", metrics={"theme": theme, "mood": replace(theme, name="mood")}
    )
    with LocalRun(tmp_path_factory.mktemp("told") / "home", catalog, Ports.free()) as local_run:
        yield local_run


def _make(run: LocalRun, *options: str) -> bytes:
    """Make a notice, and wait until the shuffler answers with it."""
    home = run.home
    files = "--keys", str(home / "keys"), "--bundle", str(run.bundle_path)
    out = home / "notice.hubbub"
    assert main(["notice", "make", *files, "--out", str(out), *options]) == 0
    signed = out.read_bytes()
    eventually(lambda: _fetched(run)[2] == signed)
    return signed


def _fetched(run: LocalRun, tag: str = "") -> tuple[int, str, bytes]:
    trust = ssl.create_default_context(cadata=run.bundle.roots)
    connection = http.client.HTTPSConnection(run.http_door, context=trust)
    connection.request("GET", "/v1/notice", headers={"If-None-Match": tag} if tag else {})
    answer = connection.getresponse()
    result = answer.status, answer.headers.get("ETag", ""), answer.read()
    connection.close()
    return result


def _client(run: LocalRun, protocol: str, state: State | None = None) -> Client:
    address = run.bundle.shuffler if protocol == "grpc" else f"https://{run.http_door}"
    transport = transport_to(address, roots=run.bundle.roots)
    return Client(run.bundle, state or MemoryState(), transport, hold_seconds=None)


def test_a_notice_stops_and_restarts_a_metric_without_an_app_release(
    run: LocalRun, tmp_path: Path
) -> None:
    assert _fetched(run)[0] == http.client.NOT_FOUND
    folders = {protocol: tmp_path / protocol for protocol in ("grpc", "http")}
    for protocol, folder in folders.items():  # nothing is known of any notice
        with _client(run, protocol, FolderState(folder)) as client:
            assert client.report("mood", "dark") is Outcome.QUEUED
    signed = _make(run, "--stop", "theme", "--sampling", "mood=0.001")
    for protocol in folders:
        state = MemoryState()
        with _client(run, protocol, state) as client:
            assert client.report("theme", "dark") is Outcome.QUEUED  # it has not heard
            assert client.flush(HANG_SECONDS)
            assert client.report("theme", "dark") is Outcome.STOPPED
            assert state.device_state().notice == signed  # the same bytes over both
            assert {m.name: m.sampling for m in client.ledger().metrics} == {
                "theme": 0.0,
                "mood": 1.0,  # of tomorrow's
            }
    assert total_counts(run.endpoints)["acknowledged"] == 4

    status, tag, body = _fetched(run)
    assert (status, body) == (http.client.OK, signed)
    assert _fetched(run, tag) == (http.client.NOT_MODIFIED, tag, b"")

    # A file that is no notice is refused, and the old one goes on; so does a lift.
    log = run.home / "log" / "shuffler.log"
    (run.home / "notice.hubbub").write_bytes(b"{}\n")
    eventually(
        lambda: "is not a file of this kind; make it with: hubbub notice make" in log.read_text()
    )
    assert _fetched(run)[2] == signed
    (run.home / "notice.hubbub").write_bytes(signed)
    lifted = _make(run, "--lift", "theme")
    state = MemoryState()
    for former in (signed, lifted):
        state.keep_notice(former, lambda _notice: True)
    with _client(run, "http", state) as client:
        # What was stopped while its day runs stays so until the day is over.
        assert client.report("theme", "dark") is Outcome.STOPPED
        assert client.report("mood", "dark") is Outcome.QUEUED
    run.check()
