"""What stands in front of the services: strict messages, roles, limits that say when to return."""

import asyncio
import itertools
import logging
import socket
import ssl
import struct
import threading
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from hubbub.client import Client, MemoryState, Outcome, transport_to
from hubbub.conservation import Window
from hubbub.installation.certificate_authorities import write_certificates
from hubbub.installation.child_process import free_port
from hubbub.installation.local_run import LocalRun
from hubbub.runtime.clocks import Clocks
from hubbub.runtime.http.timed_connection import TimeLimits
from hubbub.runtime.monitoring.metrics import Metrics
from hubbub.runtime.monitoring.stages_and_traces import Stages
from hubbub.runtime.redis.client import connect_redis
from hubbub.runtime.rpc.rate_limiter import Limiter
from hubbub.runtime.rpc.server import Server, channel
from hubbub.runtime.tls import TlsFolder
from hubbub.runtime.untrusted_messages import read_message
from hubbub.sealing.hpke import seal, seal_info
from hubbub.shuffler.admission import (
    LARGEST_SUBMIT_BYTES,
    MAX_SUBMIT_FIELDS,
    Admission,
    Backpressure,
)
from hubbub.shuffler.group_commit import Intake
from hubbub.shuffler.grpc_door import ShufflerService
from hubbub.shuffler.mixer import Mixer
from hubbub.shuffler.mixing_policy import Policy
from hubbub.shuffler.pool import Pool
from hubbub.shuffler.stream_table import read_stream_table
from hubbub.shuffler.token_checks import Redeemer
from hubbub.wire.v1.report_pb2 import SealedReport
from hubbub.wire.v1.services_pb2 import (
    StatusRequest,
    StatusResponse,
    SubmitRequest,
    SubmitResponse,
)
from hubbub.wire.v1.stubs_and_handlers import stub
from tests.conftest import CatalogFiles
from tests.services.test_pipeline import own_run  # noqa: F401 a fixture
from tests.support.law_terms import report_counts
from tests.support.moment import now
from tests.support.prometheus_scrape import scraped
from tests.support.waiting import HANG_SECONDS, eventually, eventually_async

DAY = 86_400


class Front:
    """A shuffler's front in this process, with limits of one's own, on the session's Redis."""

    def __init__(
        self,
        catalog_files: CatalogFiles,
        pool: Pool,
        limiter: Limiter,
        pressure: Backpressure,
        *,
        redeemer: Redeemer | None = None,
        **of_server: Any,
    ) -> None:
        self.made, self.pool, self.pressure = catalog_files, pool, pressure
        self.address = f"127.0.0.1:{free_port()}"
        table = read_stream_table(catalog_files.streams)
        self.intake = Intake(pool, Stages())
        self.admission = Admission(
            table,
            self.intake,
            Mixer(pool, table, [], Policy(), stages=Stages()),
            limiter=limiter,
            pressure=pressure,
            redeemer=redeemer,
            clocks=Clocks(now),
        )
        self.service = ShufflerService(self.admission)
        self.server = Server(
            self.address,
            {"Shuffler": self.service},
            tls=None,
            callers=None,
            largest_message_bytes=LARGEST_SUBMIT_BYTES,
            max_fields=MAX_SUBMIT_FIELDS,
            admit=self.service.admit,
            trailers=self.service.trailers,
            refusals=self.admission.refusals,
            spoiled=self.service.spoiled,
            **of_server,
        )

    def request(self, number: int) -> SubmitRequest:
        epoch = int(now()) // DAY
        key = self.made.bundle.keys[0]
        info = seal_info("theme", epoch)
        fields = {"stream": "theme", "epoch": epoch, "key_id": key.id}
        return SubmitRequest(
            reports=[
                SealedReport(**fields, sealed=seal(b"\1", key.half("x25519"), info))  # type: ignore[arg-type]
                for _ in range(number)
            ]
        )

    async def send(self, request: SubmitRequest) -> SubmitResponse:
        async with grpc.aio.insecure_channel(self.address) as channel:
            answer: SubmitResponse = await stub("Shuffler", channel).Submit(
                request, timeout=HANG_SECONDS
            )
            return answer


@asynccontextmanager
async def serving_front(
    catalog_files: CatalogFiles,
    redis_url: str,
    *,
    limiter: Limiter | None = None,
    max_reports: int = 10**9,
    max_memory: float = 1.0,
    redeemer: Redeemer | None = None,
    **of_server: Any,
) -> AsyncIterator[Front]:
    server = await connect_redis(redis_url)
    await server.client.flushdb()
    pool = Pool(server)
    pressure = Backpressure(pool, max_reports=max_reports, max_memory=max_memory)
    limits = Limiter(0, 1) if limiter is None else limiter
    front = Front(catalog_files, pool, limits, pressure, redeemer=redeemer, **of_server)
    loop = asyncio.create_task(front.intake.run())
    await front.server.start()
    try:
        yield front
    finally:
        await front.server.stop(1)
        loop.cancel()
        await server.client.config_set("maxmemory", 0)
        await server.close()


Serving = Callable[..., AbstractAsyncContextManager[Front]]
"""Serves a front with these options of `serving_front`."""


@pytest.mark.parametrize(
    "message",
    [
        b"\x0a\x00" * (MAX_SUBMIT_FIELDS + 1),
        b"\x0a\x80\x80\x40" + b"\x22\x00" * (1 << 19),
        b"\x12\x00" * (MAX_SUBMIT_FIELDS + 1),
        b"\x09" + bytes(8) + b"\x7d" + bytes(4) + b"\x80\x01\x01" * MAX_SUBMIT_FIELDS,
    ],
    ids=["reports", "fields of one report", "tokens", "unknown"],
)
def test_a_message_of_too_many_fields_is_refused_before_it_is_parsed(message: bytes) -> None:
    """A million empty reports took .4 s and 100 MiB to parse, on the event loop."""

    def parse(_raw: bytes) -> SubmitRequest:
        raise AssertionError("it was parsed")

    why = f"more than {MAX_SUBMIT_FIELDS} fields"
    assert read_message(parse, message, MAX_SUBMIT_FIELDS) == why


@pytest.mark.parametrize("size", [60, 300, 1200])
def test_the_largest_submission_has_no_more_fields_than_are_parsed(size: int) -> None:
    report = SealedReport(stream="a" * 60, epoch=20_000, key_id=1 << 31, sealed=bytes(size))
    most = SubmitRequest(reports=[report] * 1000, tokens=[bytes(32)] * 1000)
    raw = most.SerializeToString()
    assert read_message(SubmitRequest.FromString, raw, MAX_SUBMIT_FIELDS) == most
    for end in (*range(1, 80), *range(len(raw) - 80, len(raw))):  # it parses, or is no message
        read_message(SubmitRequest.FromString, raw[:end], MAX_SUBMIT_FIELDS)


async def _hint(call: Awaitable[object]) -> float:
    """The seconds that a refused call is told to wait."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    hints = dict(caught.value.trailing_metadata() or ())
    return int(hints["grpc-retry-pushback-ms"]) / 1000


@pytest.mark.parametrize(
    "message",
    [
        b"\xff" * 1_000_000,
        b"\x10\x01" * 500_000,
        b"\x0a\x02\x50\x01" * 250_000,
        b"\x0a\x00" * 500_000,
        b"\x0a\x00" * 1001,
    ],
    ids=["none", "unknown fields", "unknown fields of reports", "many reports", "too many"],
)
async def test_a_refused_message_counts_against_the_limit_of_its_sender(
    serving: Serving, message: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A million fields took a second to look at, and their sender might send as many again."""

    def looked(_message: object) -> None:
        raise AssertionError("each field was looked at")

    monkeypatch.setattr("hubbub.runtime.untrusted_messages.UnknownFieldSet", looked)
    clock = [1000.0]
    limiter = Limiter(200, 1000, lambda: clock[0])
    async with (
        serving(limiter=limiter) as front,
        grpc.aio.insecure_channel(front.address) as channel,
    ):
        submit: Any = channel.unary_unary("/hubbub.wire.v1.Shuffler/Submit")
        codes: list[grpc.StatusCode] = []
        while grpc.StatusCode.RESOURCE_EXHAUSTED not in codes and len(codes) < 9:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await submit(message, timeout=HANG_SECONDS)
            codes.append(caught.value.code())
        assert codes[0] is grpc.StatusCode.INVALID_ARGUMENT
        assert codes[-1] is grpc.StatusCode.RESOURCE_EXHAUSTED
        clock[0] += 100
        await front.send(front.request(1))


async def test_a_peer_above_its_rate_gets_a_time_to_retry(serving: Serving) -> None:
    clock = [1000.0]
    limiter = Limiter(20, 30, lambda: clock[0])
    async with serving(limiter=limiter) as front:
        await front.send(front.request(40))
        wait = await _hint(front.send(front.request(1)))
        front.admission.notice = b"signed\n"
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await front.send(front.request(1))
        assert dict(caught.value.trailing_metadata() or ())["hubbub-notice-bin"] == b"signed\n"
        front.admission.notice = bytes(5000)  # more than a caller takes beside an answer
        assert 0.5 <= await _hint(front.send(front.request(1))) <= 1.0
        assert 0.5 <= wait <= 1.0, "ten reports too many, at twenty a second, up to twice that"
        clock[0] += wait
        await front.send(front.request(1))
        assert front.admission.refusals == {"peer_limit": 3}
        assert front.admission.counts == {"taken": 41}


async def test_a_pool_that_is_full_refuses_unread_until_it_drains(serving: Serving) -> None:
    async with serving(max_reports=100) as front:
        await front.send(front.request(100))
        await front.pressure.look()
        assert 1 <= await _hint(front.send(front.request(1))) <= 4
        async with grpc.aio.insecure_channel(front.address) as channel:
            submit: Any = channel.unary_unary("/hubbub.wire.v1.Shuffler/Submit")
            assert await _hint(submit(b"not read at all")) >= 1
            healthy = await health_pb2_grpc.HealthStub(channel).Check(
                health_pb2.HealthCheckRequest()
            )
            assert healthy.status == health_pb2.HealthCheckResponse.SERVING, "full, not sick"
        assert front.admission.refusals == {"no_room": 2}
        [window] = await front.pool.windows()
        await front.pool.withhold(window, 1000)
        await front.pressure.look()
        await front.send(front.request(1))


async def test_a_redis_near_its_limit_refuses_before_it_is_full(serving: Serving) -> None:
    async with serving(max_memory=0.5) as front:
        client = front.pool.server.client
        used = int((await client.info("memory"))["used_memory"])
        await client.config_set("maxmemory", int(used * 1.8))
        await front.pressure.look()
        assert await _hint(front.send(front.request(1))) >= 1
        await client.config_set("maxmemory", used * 4)
        await front.pressure.look()
        await front.send(front.request(1))


async def test_a_write_that_redis_has_no_memory_for_is_refused_with_a_hint(
    front: Front, caplog: pytest.LogCaptureFixture
) -> None:
    await front.pool.server.client.config_set("maxmemory", 1)
    assert await _hint(front.send(front.request(3))) >= 1
    assert front.admission.refusals == {"store_full": 1}
    assert front.pressure.wait_seconds > 0, "the next ones are refused unread"
    [warning] = [record.message for record in caplog.records]
    assert warning.startswith("no reports are accepted: Redis")
    await front.pool.server.client.config_set("maxmemory", 0)
    await front.pressure.look()
    await front.send(front.request(3))
    assert (await front.pool.report_counts()).popitem()[1]["acknowledged"] == 3


async def test_the_first_write_that_redis_refuses_and_the_next_good_one_are_logged(
    front: Front, caplog: pytest.LogCaptureFixture
) -> None:
    """As of a Redis that became a replica: it answers every question, and takes nothing."""
    caplog.set_level(logging.INFO, "hubbub.shuffler")
    redis = front.pool.server.client
    await redis.config_set("min-replicas-to-write", 1)
    try:
        for _ in range(2):
            with pytest.raises(grpc.aio.AioRpcError):
                await front.send(front.request(1))
    finally:
        await redis.config_set("min-replicas-to-write", 0)
    await front.send(front.request(1))
    [refused, accepted] = [record.message for record in caplog.records]
    assert refused.startswith("no reports are accepted: Redis at")
    assert "NOREPLICAS" in refused
    assert accepted == "reports are accepted again"


async def test_reports_that_wait_for_a_slow_redis_are_bounded(
    front: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hubbub.shuffler.group_commit._MAX_WAITING", 10)
    release = asyncio.Event()
    add = front.pool.add

    async def slow(*arguments: Any) -> Any:
        await release.wait()
        return await add(*arguments)

    front.pool.add = slow  # type: ignore[method-assign, assignment]
    waiting = asyncio.create_task(front.send(front.request(8)))
    await eventually_async(lambda: front.intake.waiting == 8)
    assert await _hint(front.send(front.request(3))) > 0
    release.set()
    await waiting


@pytest.mark.thorough
async def test_the_sdk_waits_as_it_is_told_and_then_delivers(
    catalog_files: CatalogFiles, serving: Serving
) -> None:
    looks = itertools.count()
    # Time passes with every look at it: the third report comes too early on any machine.
    limiter = Limiter(10, 2, lambda: next(looks) / 100)
    async with serving(limiter=limiter) as front:
        transport = transport_to(front.address, roots=None, insecure=True)

        def report() -> None:
            for _ in range(6):
                client = Client(catalog_files.bundle, MemoryState(), transport, hold_seconds=None)
                assert client.report("theme", "dark") is Outcome.QUEUED
                assert client.flush(HANG_SECONDS)
                assert client.dropped == {}

        await asyncio.to_thread(report)
        assert front.admission.counts["taken"] == 6
        assert front.admission.refusals["peer_limit"] > 0


async def test_every_method_refuses_invalid_and_too_large_messages(
    serving: Serving, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    async with serving() as front, grpc.aio.insecure_channel(front.address) as channel:
        submit: Any = channel.unary_unary("/hubbub.wire.v1.Shuffler/Submit")
        whole = front.request(1).SerializeToString()
        for wrong in (b"\xff\xff", whole[:-3], whole + b"\x9a\x06\x04user"):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await submit(wrong)
            assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
            fields = dict(caught.value.trailing_metadata())
            assert fields["hubbub-refused"] == "for-good", "devices believe nothing else"
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await submit(bytes(LARGEST_SUBMIT_BYTES + 1))
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "hubbub-refused" not in dict(caught.value.trailing_metadata())
    assert caplog.text == "", "strangers do not fill our log"


async def test_a_fault_of_our_own_is_named_in_the_log_without_what_was_sent(
    serving: Serving, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with serving() as front:

        def broken(*_: object) -> None:
            raise RuntimeError("the secret that somebody sent")

        front.admission._refusal = broken  # type: ignore[assignment, method-assign]
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await front.send(front.request(1))
        assert caught.value.code() is grpc.StatusCode.INTERNAL
        assert "secret" not in (caught.value.details() or "")
    assert "RuntimeError at " in caplog.text
    assert "secret" not in caplog.text


def test_the_terms_of_the_law_are_metrics_of_both_services(
    own_run: LocalRun,  # noqa: F811
) -> None:
    transport = transport_to(own_run.bundle.shuffler, roots=own_run.bundle.roots)
    for _ in range(60):
        client = Client(own_run.bundle, MemoryState(), transport, hold_seconds=None)
        client.report("theme", "dark")
        assert client.flush(HANG_SECONDS)
    transport.close()
    samples: dict[tuple[str, str], float] = {}
    mine: dict[str, float] = {}
    terms: dict[str, int] = {}

    def the_same() -> bool:
        samples.update(scraped(own_run, own_run.ports.shuffler_metrics))
        samples.update(scraped(own_run, own_run.ports.aggregator_metrics))
        [of_theme] = report_counts(own_run.endpoints).values()
        terms.update(of_theme)
        mine.update({t: samples.get(("theme", t), 0) for t in terms if t != "rejected"})
        return bool(terms["counted"]) and mine == {t: terms[t] for t in mine}

    eventually(the_same, lambda: (mine, terms))
    assert 20 <= mine["acknowledged"] <= 40, (
        "the reserve of 20 waits, and is in no count of a stream"
    )
    assert samples["", "hubbub_store_up"] == 1
    assert samples["", 'hubbub_submitted_reports_total{outcome="taken"}'] == 60
    assert samples["", "hubbub_opening_key_days_left"] > 100
    assert samples["", "process_resident_memory_bytes"] > 0
    own_run.redis_servers[0].child.process.kill()
    own_run.redis_servers[0].child.process.wait()
    assert scraped(own_run, own_run.ports.shuffler_metrics)["", "hubbub_store_up"] == 0


async def test_metrics_in_the_clear_stay_on_this_machine(tmp_path: Path) -> None:
    from hubbub.errors import ServiceUnavailable

    async def nothing() -> dict[Window, dict[str, int]]:
        return {}

    metrics = Metrics(nothing, {}, {}, Stages())
    with pytest.raises(ServiceUnavailable, match="is not on this machine"):
        metrics.door("0.0.0.0:1", None)
    port = free_port()
    await metrics.door(f"127.0.0.1:{port}", None).start()
    with pytest.raises(ServiceUnavailable, match="choose another --metrics-listen"):
        await metrics.door(f"127.0.0.1:{port}", None).start()
    write_certificates(tmp_path / "tls", {})
    secured = free_port()
    tls = TlsFolder(tmp_path / "tls", "shuffler")
    await metrics.door(f"127.0.0.1:{secured}", tls).start()
    with pytest.raises(OSError, match=r"certificate|closed|alert|reset|EOF"):
        await asyncio.to_thread(
            urllib.request.urlopen,
            f"https://127.0.0.1:{secured}/metrics",
            context=ssl.create_default_context(cafile=str(tmp_path / "tls" / "ca.pem")),
        )


@contextmanager
def _name_server(*addresses: str) -> Iterator[str]:
    """The address, at 127.0.0.1, of a name server for which every name is of these."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))

        def answer() -> None:
            while True:
                packet, peer = server.recvfrom(512)
                if not packet:
                    return
                question = packet[12 : packet.index(b"\0", 12) + 5]
                is_of_ipv4 = question[-4:-2] == b"\0\1"
                records = [
                    b"\xc0\x0c\0\1\0\1\0\0\0\0\0\4" + socket.inet_aton(address)
                    for address in (addresses if is_of_ipv4 else ())
                ]
                head = b"\x81\x80\0\1" + struct.pack(">H", len(records)) + bytes(4)
                server.sendto(packet[:2] + head + question + b"".join(records), peer)

        thread = threading.Thread(target=answer)
        thread.start()
        host, port = server.getsockname()
        yield f"{host}:{port}"
        server.sendto(b"", (host, port))
        thread.join()


async def test_addresses_of_one_name_are_tried_in_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A name of two addresses; the second server is there only later."""
    monkeypatch.setattr("hubbub.runtime.rpc.server.check_plain", lambda _address: None)
    port, hosts = free_port(), ("127.0.0.1", "127.0.0.2")
    calls: Counter[str] = Counter()

    class Counting:
        def __init__(self, name: str) -> None:
            self._name = name

        async def Status(self, request: StatusRequest, context: Any) -> StatusResponse:
            del request, context
            calls[self._name] += 1
            return StatusResponse()

    with _name_server(*hosts) as names:
        servers = []
        grpc_channel = channel(f"dns://{names}/several.example.org:{port}", "shuffler", tls=None)
        for host in hosts:
            servicer = Counting(host)
            server = Server(
                f"{host}:{port}",
                {"Operator": servicer},
                tls=None,
                callers=None,
                connection_seconds=0.5,
            )
            await server.start()
            servers.append(server)

            async def reached(host: str = host) -> bool:
                await stub("Operator", grpc_channel).Status(StatusRequest(), timeout=HANG_SECONDS)
                return bool(calls[host])

            # An error as long as the other one is not there yet.
            await eventually_async(reached, lambda: calls, although=(grpc.aio.AioRpcError,))
        await grpc_channel.close()
        for server in servers:
            await server.stop(1)
    assert set(calls) == set(hosts)


@pytest.mark.parametrize("secured", [False, True])
async def test_silent_connections_to_the_metrics_keep_no_scrape_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, secured: bool
) -> None:
    """More than it serves at once, which say nothing, or half of what they should."""
    monkeypatch.setattr("hubbub.runtime.monitoring.metrics._CONNECTIONS", 20)
    write_certificates(tmp_path / "tls", {})

    async def nothing() -> dict[Window, dict[str, int]]:
        return {}

    port = free_port()
    tls = TlsFolder(tmp_path / "tls", "shuffler") if secured else None
    await Metrics(nothing, {}, {}, Stages()).door(f"127.0.0.1:{port}", tls).start()
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(60)]
    for connection in silent[::2]:
        with suppress(OSError):  # it gave way already
            connection.sendall(b"\x16\x03\x01" if secured else b"GET")
    address = f"{'https' if secured else 'http'}://localhost:{port}/metrics"
    context = _watching(tmp_path / "tls", "analyst") if secured else None
    answer = await asyncio.to_thread(
        urllib.request.urlopen, address, context=context, timeout=HANG_SECONDS
    )
    assert b"hubbub_store_up 1.0" in answer.read()
    answer.close()
    if secured:
        for role in ("redis", "shuffler"):
            with pytest.raises(urllib.error.HTTPError) as caught:
                await asyncio.to_thread(
                    urllib.request.urlopen, address, context=_watching(tmp_path / "tls", role)
                )
            assert caught.value.code == 403
            caught.value.close()
    for connection in silent:
        connection.close()


async def test_a_connection_to_the_metrics_that_does_not_end_is_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hubbub.runtime.monitoring.metrics._LIMITS", TimeLimits(request=1.0))

    async def nothing() -> dict[Window, dict[str, int]]:
        return {}

    port = free_port()
    await Metrics(nothing, {}, {}, Stages()).door(f"127.0.0.1:{port}", None).start()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /metrics HTTP/1.1\r\n")

    async def drip() -> None:
        while True:
            writer.write(b"X-Slow: 1\r\n")
            await asyncio.sleep(0.05)

    dripping = asyncio.create_task(drip())
    with suppress(ConnectionError):
        await asyncio.wait_for(reader.read(), HANG_SECONDS)
    dripping.cancel()
    writer.close()


def _watching(folder: Path, role: str) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    context.load_cert_chain(folder / f"{role}.pem", folder / f"{role}.key")
    return context
