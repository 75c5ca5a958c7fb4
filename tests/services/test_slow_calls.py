"""Calls that do not end: without a message, dripped, unread; honest ones are served meanwhile."""

import asyncio
import resource
import struct
import threading
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from hubbub.installation.certificate_authorities import write_certificates
from hubbub.installation.child_process import free_port
from hubbub.runtime.process import end_tasks
from hubbub.runtime.rpc.call_checks import Calls
from hubbub.runtime.rpc.server import Server
from hubbub.runtime.tls import TlsFolder
from hubbub.shuffler.admission import LARGEST_SUBMIT_BYTES
from hubbub.wire.v1.services_pb2 import Batch, BatchOutcome, SubmitRequest, SubmitResponse
from hubbub.wire.v1.stubs_and_handlers import stub
from tests.services.test_guards import Front, Serving
from tests.support.waiting import HANG_SECONDS, eventually_async

SUBMIT = "/hubbub.wire.v1.Shuffler/Submit"


async def _no_message() -> AsyncIterator[bytes]:
    await asyncio.Event().wait()
    yield b""


def _call(channel: grpc.aio.Channel, method: str, requests: Any = None) -> Any:
    """One whose message never comes, if none are given."""
    submit: Any = channel.stream_unary(method)
    return submit(requests or _no_message())


def _hang(channel: grpc.aio.Channel, method: str = SUBMIT) -> "asyncio.Task[grpc.StatusCode]":
    """A call whose message never comes; what it is told."""
    return asyncio.create_task(_call(channel, method).code())


async def _channels(address: str, number: int) -> list[grpc.aio.Channel]:
    """Each with a connection of its own."""
    options = [("grpc.use_local_subchannel_pool", 1)]
    return [grpc.aio.insecure_channel(address, options=options) for _ in range(number)]


def test_calls_without_a_message_give_way_and_honest_ones_are_served(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one address, and where addresses tell nobody apart, of all."""
    monkeypatch.setattr("hubbub.runtime.rpc.server._ARRIVE_SECONDS", 600.0)
    monkeypatch.setattr("hubbub.runtime.rpc.call_checks._MAX_ARRIVING", 100)

    def all_arrived(front: Any, calls: int) -> bool:
        ended: int = front.admission.refusals["gave_way"]
        return ended + len(front.server.calls._arriving) == calls

    async def body(calls_of_peer: int, capacity: int) -> None:
        async with serving(calls_of_peer=calls_of_peer) as front:
            channels = await _channels(front.address, 5)
            hanging = []
            for channel in channels:  # fewer at once than may wait to be looked at
                hanging += [_hang(channel) for _ in range(60)]
                await eventually_async(partial(all_arrived, front, len(hanging)))
            await eventually_async(lambda: front.admission.refusals["gave_way"] == 300 - capacity)
            for _ in range(5):
                await front.send(front.request(2))
            async with grpc.aio.insecure_channel(front.address) as channel:
                healthy = await health_pb2_grpc.HealthStub(channel).Check(
                    health_pb2.HealthCheckRequest()
                )
            assert healthy.status == health_pb2.HealthCheckResponse.SERVING
            assert front.admission.counts["taken"] == 10
            await eventually_async(lambda: sum(call.done() for call in hanging) > 300 - capacity)
            statuses = {call.result() for call in hanging if call.done()}
            assert statuses == {grpc.StatusCode.RESOURCE_EXHAUSTED}
            for channel in channels:
                await channel.close()
            for call in hanging:  # a closed channel may leave a call without a status
                call.cancel()

    asyncio.run(body(64, 64))
    asyncio.run(body(0, 100))


class _RefusedError(Exception):
    """What ends a call of `_Late`."""


class _Late:
    """A call without a message; as its time is over, another call of its peer needs its place."""

    def __init__(self, calls: Calls) -> None:
        self.calls = calls

    async def read(self) -> bytes:
        [call] = self.calls._arriving
        try:
            await asyncio.Event().wait()
        finally:
            assert call.limit.expired()
            self.calls._make_way(call.peer)
        return b""

    async def abort(self, *_: object) -> None:
        raise _RefusedError


async def test_a_call_after_its_deadline_ends_without_an_error() -> None:
    refusals = Counter[str]()
    calls = Calls(arrive_seconds=0.0, of_peer=1, largest_message_bytes=1, refusals=refusals)
    late: Any = _Late(calls)
    with pytest.raises(_RefusedError):
        await calls.message(late, "peer")
    assert refusals == {"gave_way": 1}


async def test_a_call_that_does_not_arrive_in_time_is_refused_counted_and_hinted(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hubbub.runtime.rpc.server._ARRIVE_SECONDS", 0.5)
    async with serving() as front:
        [channel] = await _channels(front.address, 1)
        for method in (SUBMIT, "/grpc.health.v1.Health/Check"):
            call = _call(channel, method)
            assert await call.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            hints = dict(await call.trailing_metadata() or ())
            assert int(hints["grpc-retry-pushback-ms"]) >= 1000
        assert front.admission.refusals == {"too_slow": 2}
        await channel.close()


async def test_a_slow_message_is_refused_and_a_complete_unended_one_accepted(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hubbub.runtime.rpc.server._ARRIVE_SECONDS", 2.0)
    async with serving() as front:
        message = front.request(1).SerializeToString()

        async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            framed = struct.pack(">BI", 0, len(message)) + message
            while not writer.is_closing():
                for at in range(len(framed)):
                    writer.write(_frame(0, 0, 1, framed[at : at + 1]))
                    await writer.drain()
                    await asyncio.sleep(0.1)
            del reader

        reader, writer = await _dial(front.address)
        writer.write(_headers(1, SUBMIT))
        dripping = asyncio.create_task(drip(reader, writer))
        await eventually_async(lambda: front.admission.refusals["too_slow"] == 1)
        dripping.cancel()
        writer.close()

        async def two() -> AsyncIterator[bytes]:
            yield message
            yield message
            await asyncio.Event().wait()

        [channel] = await _channels(front.address, 1)
        await _call(channel, SUBMIT, two())
        assert front.admission.counts["taken"] == 1, "the second one is never read"
        await channel.close()


def test_messages_without_an_end_have_a_bounded_memory_and_honest_ones_are_served(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Strangers send all that the server's windows allow, but for the last byte."""
    monkeypatch.setattr("hubbub.runtime.rpc.server._ARRIVE_SECONDS", 600.0)

    async def body(connections: int, calls: int) -> None:
        async with serving() as front:
            hoarders = [await _Hoarder.dial(front.address, calls) for _ in range(connections)]
            sending = [asyncio.create_task(hoarder.send()) for hoarder in hoarders]
            await eventually_async(lambda: sum(hoarder.sent for hoarder in hoarders) >= 16 << 20)
            for _ in range(3):
                await front.send(front.request(2))
            assert front.admission.counts["taken"] == 6
            await eventually_async(lambda: front.admission.refusals["gave_way"] >= 8)
            # Of calls that gave way nothing is kept, and others are read in their place.
            sent, gave_way = (
                sum(hoarder.sent for hoarder in hoarders),
                front.admission.refusals["gave_way"],
            )
            windows = connections * calls * 65535
            assert sent <= (16 << 20) + windows + (gave_way + 8) * LARGEST_SUBMIT_BYTES
            for hoarder in hoarders:
                hoarder.writer.close()
            await asyncio.gather(*sending)
            await eventually_async(lambda: not front.server.calls._arriving)

    asyncio.run(body(1, 90))
    asyncio.run(body(30, 3))


async def test_connections_that_sent_much_end_as_memory_grows_and_others_stay(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []
    rounds: list[None] = []
    monkeypatch.setattr("hubbub.runtime.rpc.connection_ends._GROWTH_BYTES", 0)
    monkeypatch.setattr("hubbub.runtime.rpc.connection_ends.trim_heap", lambda: rounds.append(None))

    def page_bytes() -> int:
        looks.append(4096)
        return looks[0]

    monkeypatch.setattr(resource, "getpagesize", page_bytes)
    async with serving() as front:
        quiet_reader, quiet = await _dial(front.address)
        reader, writer = await _dial(front.address)
        _, honest = await _dial(front.address)
        message = front.request(100).SerializeToString()
        begun = struct.pack(">BI", 0, len(message)) + message[:-1]
        honest.write(_headers(1, SUBMIT) + _frame(0, 0, 1, begun))
        await eventually_async(lambda: front.server.calls._read)
        ending = asyncio.create_task(front.server.end_floods())
        await eventually_async(lambda: len(looks) > 10)  # memory grows by less than a message
        honest.write(_frame(0, 1, 1, message[-1:]))
        await eventually_async(lambda: front.admission.counts["taken"] == 100)
        await eventually_async(lambda: rounds)
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))  # no more files may be opened
        rounds.clear()
        try:
            await eventually_async(lambda: len(rounds) > 2)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        writer.write(_frame(1, 1, 1, b"\x40\x01a\x01b") + 3 * _frame(9, 0, 1, b"\xbe" * 2000))
        with pytest.raises(ConnectionResetError):
            await reader.read(-1)
        await eventually_async(lambda: front.admission.refusals == {"gave_way": 2})
        await front.send(front.request(1))
        quiet.write(_frame(6, 0, 0, bytes(8)))
        await quiet_reader.readuntil(b"\6\1" + bytes(12))  # the ping's answer
        await end_tasks([ending])
        for connection in (quiet, honest, writer):
            connection.close()


class _Hoarder:
    """A connection by hand whose calls send messages without their last byte."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer, self.sent = reader, writer, 0
        message = struct.pack(">BI", 0, LARGEST_SUBMIT_BYTES - 5) + bytes(LARGEST_SUBMIT_BYTES - 6)
        self._rest: dict[int, bytes] = {}
        self._windows = Counter({0: 65535})
        self._message = message

    @classmethod
    async def dial(cls, address: str, calls: int) -> "_Hoarder":
        hoarder = cls(*await _dial(address))
        for stream in range(1, 2 * calls, 2):
            hoarder.writer.write(_headers(stream, SUBMIT))
            hoarder._rest[stream] = hoarder._message
            hoarder._windows[stream] = 16 << 10
        return hoarder

    async def send(self) -> None:
        """Until the server or the test hangs up."""
        try:
            while True:
                for stream, rest in self._rest.items():
                    size = min(len(rest), self._windows[0], self._windows[stream], 16 << 10)
                    if size > 0:
                        self.writer.write(_frame(0, 0, stream, rest[:size]))
                        self._rest[stream] = rest[size:]
                        self._windows.subtract({0: size, stream: size})
                        self.sent += size
                await self.writer.drain()
                await self._read_frame()
        except (asyncio.IncompleteReadError, ConnectionError):
            return

    async def _read_frame(self) -> None:
        head = await self.reader.readexactly(9)
        payload = await self.reader.readexactly(int.from_bytes(head[:3]))
        kind, flags, stream = head[3], head[4], int.from_bytes(head[5:])
        if kind == 8:
            self._windows[stream] += int.from_bytes(payload)
        elif kind in {1, 3}:
            self._rest.pop(stream, None)
        elif kind == 6 and not flags:
            self.writer.write(_frame(6, 1, 0, payload))


async def test_health_is_answered_once_and_cannot_be_watched(serving: Serving) -> None:
    async with serving(calls_of_peer=64) as front:
        [channel] = await _channels(front.address, 1)
        stub = health_pb2_grpc.HealthStub(channel)
        watches = [stub.Watch(health_pb2.HealthCheckRequest()) for _ in range(90)]
        codes = {await watch.code() for watch in watches}
        assert codes == {grpc.StatusCode.UNIMPLEMENTED}, "by which a caller takes us as healthy"
        assert front.admission.refusals == {"watch": 90}
        await front.send(front.request(1))
        await channel.close()


class Sink:
    async def Apply(self, request: Batch, context: Any) -> BatchOutcome:
        del request, context
        return BatchOutcome()


async def test_the_role_of_a_caller_is_checked_before_its_message(tmp_path: Path) -> None:
    write_certificates(tmp_path / "tls", {})
    address, refusals = f"127.0.0.1:{free_port()}", Counter[str]()
    server = Server(
        address,
        {"Ingest": Sink()},
        tls=TlsFolder(tmp_path / "tls", "aggregator"),
        callers=("shuffler",),
        refusals=refusals,
    )
    await server.start()
    credentials = TlsFolder(tmp_path / "tls", "analyst").channel_credentials("aggregator")
    async with grpc.aio.secure_channel(address, credentials) as channel:
        method = "/hubbub.wire.v1.Ingest/Apply"
        results = await asyncio.gather(*(_hang(channel, method) for _ in range(90)))
        assert set(results) == {grpc.StatusCode.PERMISSION_DENIED}
    assert refusals == {"role": 90}
    await server.stop(1)


class Slow:
    """Answers when it may."""

    def __init__(self) -> None:
        self.may = asyncio.Event()
        self.begun = 0

    async def Submit(self, request: SubmitRequest, context: Any) -> SubmitResponse:
        del request, context
        self.begun += 1
        await self.may.wait()
        return SubmitResponse()


@pytest.mark.parametrize(("of_peer", "reason"), [(0, "calls_at_once"), (20, "peer_calls")])
async def test_calls_above_the_limit_are_refused_and_counted_with_a_delay(
    monkeypatch: pytest.MonkeyPatch, of_peer: int, reason: str
) -> None:
    monkeypatch.setattr("hubbub.runtime.rpc.call_checks._MAX_WORKED_ON", 50 if of_peer else 20)
    address, refusals, slow = f"127.0.0.1:{free_port()}", Counter[str](), Slow()
    server = Server(
        address,
        {"Shuffler": slow},
        tls=None,
        callers=None,
        calls_of_peer=of_peer,
        refusals=refusals,
    )
    await server.start()
    async with grpc.aio.insecure_channel(address) as channel:
        submit = stub("Shuffler", channel).Submit
        waiting = [asyncio.ensure_future(_code(submit(SubmitRequest()))) for _ in range(20)]
        await eventually_async(lambda: slow.begun == 20)
        call = submit(SubmitRequest())
        assert await _code(call) is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "grpc-retry-pushback-ms" in dict(await call.trailing_metadata() or ())
        slow.may.set()
        assert set(await asyncio.gather(*waiting)) == {grpc.StatusCode.OK}
        assert await _code(submit(SubmitRequest())) is grpc.StatusCode.OK, "there is room again"
    assert refusals == {reason: 1}
    await server.stop(1)


async def _code(call: Any) -> grpc.StatusCode:
    code: grpc.StatusCode = await call.code()
    return code


async def test_a_caller_that_reads_no_answers_blocks_only_itself(serving: Serving) -> None:
    async with serving(calls_of_peer=20) as front:
        _, writer = await _dial(front.address)
        message = SubmitRequest().SerializeToString()
        framed = struct.pack(">BI", 0, len(message)) + message
        for stream in range(1, 181, 2):
            writer.write(_headers(stream, SUBMIT) + _frame(0, 1, stream, framed))
        await eventually_async(lambda: front.admission.refusals["peer_calls"] >= 1)
        assert front.server.calls._worked_on == 0, "those of others are free"
        writer.close()
        await eventually_async(lambda: not front.server.calls._open_of)
        await front.send(front.request(1))


async def test_models_are_left_out_while_too_many_of_them_are_unread(
    front: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hubbub.shuffler.grpc_door._MAX_UNREAD_BYTES_OF_CALLER", 3 << 17)
    front.admission.models = bytes(1 << 17)
    _, writer = await _dial(front.address)
    for stream in range(1, 21, 2):
        writer.write(_headers(stream, SUBMIT) + _frame(0, 1, stream, bytes(5)))
    await eventually_async(lambda: front.admission.refusals["peer_calls"] >= 7)
    assert front.service.unread_bytes == 3 << 17
    assert (await front.send(front.request(0))).models == b"", "of this address"
    writer.close()
    await eventually_async(lambda: not front.service.unread_bytes)
    assert (await front.send(front.request(0))).models == front.admission.models


async def test_addresses_that_read_no_models_withhold_them_from_nobody(
    front: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight addresses fill the memory for unread models, and go on asking for more."""
    size = 1 << 17
    monkeypatch.setattr("hubbub.shuffler.grpc_door._MAX_UNREAD_BYTES", 8 * size)
    front.admission.models = bytes(size)

    async def ask_and_read_nothing() -> list[tuple[asyncio.StreamReader, Any]]:
        lines = [await _dial(front.address, f"127.0.0.{host}") for host in range(2, 10)]
        for _, writer in lines:
            writer.write(_headers(1, SUBMIT) + _frame(0, 1, 1, bytes(5)))
        return lines

    hostile = await ask_and_read_nothing()
    await eventually_async(lambda: front.service.unread_bytes == 8 * size)
    assert (await front.send(front.request(0))).models == b"", "they may be slow"
    monkeypatch.setattr("hubbub.shuffler.grpc_door._READ_SECONDS", 0.0)
    assert (await front.send(front.request(0))).models == front.admission.models
    for reader, _ in hostile:
        with suppress(ConnectionError):
            await asyncio.wait_for(reader.read(), HANG_SECONDS)
    monkeypatch.setattr("hubbub.shuffler.grpc_door._READ_SECONDS", 10.0)
    refused = front.admission.refusals["peer_calls"]
    hostile += await ask_and_read_nothing()
    await eventually_async(lambda: front.admission.refusals["peer_calls"] == refused + 8)
    assert (await front.send(front.request(0))).models == front.admission.models
    for _, writer in hostile:
        writer.close()
    await eventually_async(lambda: front.service.unread_bytes == 0)


async def _dial(
    address: str, source: str = "127.0.0.1"
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """An HTTP/2 connection by hand, that takes no byte of an answer until it says so."""
    host, _, port = address.partition(":")
    reader, writer = await asyncio.open_connection(host, int(port), local_addr=(source, 0))
    no_window = struct.pack(">HI", 4, 0)
    writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(4, 0, 0, no_window) + _frame(4, 1, 0))
    return reader, writer


def _frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def _headers(stream: int, method: str) -> bytes:
    """The headers of a call, each as a literal (RFC 7541, 6.2.2)."""
    headers = {
        ":method": "POST",
        ":scheme": "http",
        ":path": method,
        ":authority": "localhost",
        "te": "trailers",
        "content-type": "application/grpc",
    }
    block = b"".join(b"\0" + _text(name) + _text(value) for name, value in headers.items())
    return _frame(1, 4, stream, block)


def _text(text: str) -> bytes:
    return bytes([len(text)]) + text.encode()


@pytest.mark.thorough
async def test_calls_that_are_reset_at_once_cancel_no_others(serving: Serving) -> None:
    """Two threads that begin and reset calls as fast as they can."""
    async with serving(calls_of_peer=64) as front:
        ended = threading.Event()

        def reset() -> None:
            with grpc.insecure_channel(front.address) as channel:
                submit: Any = stub("Shuffler", channel).Submit
                while not ended.is_set():
                    submit.future(SubmitRequest()).cancel()

        resetting = [asyncio.create_task(asyncio.to_thread(reset)) for _ in range(2)]
        try:
            for _ in range(30):
                await front.send(front.request(1))
        finally:
            ended.set()
            await asyncio.gather(*resetting)
        assert front.admission.counts["taken"] == 30
