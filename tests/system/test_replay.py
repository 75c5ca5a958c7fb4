"""All that passed between the roles in a whole run is captured, looked at, and sent again."""

import asyncio
import secrets
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

from hubbub.aggregator.store.redis import RedisStore
from hubbub.authoring import Catalog
from hubbub.client import Client, MemoryState, SealedReport, Submitted, Transport, transport_to
from hubbub.installation.child_process import free_port
from hubbub.installation.local_run import LocalRun, Ports
from hubbub.runtime.redis.client import connect_redis
from hubbub.runtime.rpc.server import LARGEST_MESSAGE_BYTES
from hubbub.runtime.tls import TlsFolder
from hubbub.wire.v1.services_pb2 import Batch
from hubbub.wire.v1.stubs_and_handlers import add_service, stub
from tests.conftest import CatalogFiles
from tests.support.law_terms import drained_counts, total_counts
from tests.support.stores import totals
from tests.support.waiting import HANG_SECONDS

pytestmark = pytest.mark.thorough

DEVICES = 120
ANSWERS = {"theme": "dark", "crashed": "no", "editor": "vi", "homepage": "a.example"}
OPTIONS = [
    ("grpc.max_receive_message_length", LARGEST_MESSAGE_BYTES),
    ("grpc.max_send_message_length", LARGEST_MESSAGE_BYTES),
]


class Tap:
    """Stands where the aggregator is, keeps every batch, and passes it on."""

    def __init__(self, onward: Any) -> None:
        self._onward = onward
        self.batches: list[Batch] = []

    def Apply(self, request: Batch, _context: Any) -> Any:
        self.batches.append(request)
        return self._onward.Apply(request, timeout=HANG_SECONDS)


class Recorder:
    """A transport that keeps what devices submit."""

    def __init__(self, onward: Transport) -> None:
        self.onward = onward
        self.sent: list[tuple[SealedReport, ...]] = []

    def submit(self, reports: Sequence[SealedReport], timeout_seconds: float) -> Submitted:
        self.sent.append(tuple(reports))
        return self.onward.submit(reports, timeout_seconds)

    def close(self) -> None:
        self.onward.close()


class TappedRun(LocalRun):
    """A local run whose shuffler sends to the tap."""

    tap_port: int

    def _service(self, role: str, *arguments: str, redis_url: str) -> None:
        ingest = f"127.0.0.1:{self.ports.ingest}"
        if role == "shuffler":
            arguments = tuple(
                f"127.0.0.1:{self.tap_port}" if argument == ingest else argument
                for argument in arguments
            )
        super()._service(role, *arguments, redis_url=redis_url)


@contextmanager
def _tapped(home: Path, catalog_files: CatalogFiles) -> Iterator[tuple[LocalRun, Tap]]:
    run = TappedRun(
        home, Catalog(shuffler="", metrics=dict(catalog_files.bundle.metrics)), Ports.free()
    )
    run.tap_port = free_port()
    with run:
        tls = home / "tls"
        credentials = TlsFolder(tls, "shuffler").channel_credentials("aggregator")
        address = f"127.0.0.1:{run.ports.ingest}"
        with grpc.secure_channel(address, credentials, options=OPTIONS) as channel:
            tap = Tap(stub("Ingest", channel))
            server = grpc.server(ThreadPoolExecutor(4), options=OPTIONS)
            add_service("Ingest", tap, server)
            folder = TlsFolder(tls, "aggregator")
            pair = (folder.pair[1].read_bytes(), folder.pair[0].read_bytes())
            mine = grpc.ssl_server_credentials([pair], folder.authorities, require_client_auth=True)
            server.add_secure_port(f"127.0.0.1:{run.tap_port}", mine)
            server.start()
            yield run, tap
            server.stop(1).wait()


def _totals(run: LocalRun) -> dict[Any, Any]:
    async def read() -> dict[Any, Any]:
        server = await connect_redis(run.aggregator_redis)
        store = RedisStore(server)
        window_totals = {
            window: await totals(store, window) for window in await store.report_counts()
        }
        await server.close()
        return window_totals

    return asyncio.run(read())


def test_resending_everything_changes_no_total(catalog_files: CatalogFiles, tmp_path: Path) -> None:
    with _tapped(tmp_path / "home", catalog_files) as (run, tap):
        recorder = Recorder(transport_to(run.bundle.shuffler, roots=run.bundle.roots))
        for _ in range(DEVICES):
            client = Client(run.bundle, MemoryState(), recorder, hold_seconds=None)
            for metric, value in ANSWERS.items():
                client.report(metric, value)
            assert client.flush(HANG_SECONDS)
        # Devices' traffic again, while their epochs are still open.
        for reports in list(recorder.sent):
            assert set(recorder.onward.submit(reports, HANG_SECONDS).results) == {None}
        first = drained_counts(run)
        totals = _totals(run)
        assert (
            sum(total.reports for total in totals.values())
            == len(ANSWERS) * DEVICES
            == first["counted"]
        )
        assert first["acknowledged"] == first["counted"] + first["duplicate"]
        _look_at(tap.batches, recorder.sent)
        # And when they are closed.
        refused = recorder.onward.submit(recorder.sent[0], HANG_SECONDS)
        assert set(refused.results) == {"refused_expired"}
        # The shuffler's traffic: as it was, then as another batch would carry it.
        captured = list(tap.batches)
        for batch in captured:
            assert tap._onward.Apply(batch, timeout=HANG_SECONDS).already_applied
        for batch in captured:
            batch.batch_id = secrets.token_bytes(16)
            assert not tap._onward.Apply(batch, timeout=HANG_SECONDS).already_applied
        recorder.close()
        assert _totals(run) == totals
        last = total_counts(run.endpoints)
        assert last["counted"] == first["counted"]
        again = sum(len(batch.sealed) for batch in captured)
        assert last["duplicate"] == first["duplicate"] + again


def _look_at(batches: Sequence[Batch], sent: Sequence[Sequence[SealedReport]]) -> None:
    """What the aggregator receives is the same for all devices, but for sealed bytes and order."""
    for batch in batches:
        assert {field.name for field, _ in batch.ListFields()} == {
            "batch_id",
            "stream",
            "epoch",
            "key_id",
            "sealed",
        }
        assert len({len(sealed) for sealed in batch.sealed}) == 1
    assert len({batch.batch_id for batch in batches}) == len(batches)
    assert len({(b.stream, b.epoch, b.key_id) for b in batches}) == len(ANSWERS)
    arrived = [bytes(sealed) for batch in batches for sealed in batch.sealed]
    submitted = [report.sealed for reports in sent for report in reports]
    assert set(arrived) == set(submitted)
    # Order tells nothing: how a report's places there and here go together is chance.
    place = {sealed: at for at, sealed in enumerate(submitted)}
    largest = max(batches, key=lambda batch: len(batch.sealed))
    places = [place[bytes(sealed)] for sealed in largest.sealed]
    correlation = float(np.corrcoef(places, range(len(places)))[0, 1])
    assert abs(correlation) < 6 / len(places) ** 0.5, "6 standard errors: 2e-9 by chance"
