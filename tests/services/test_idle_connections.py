"""Connections that do nothing, by the thousand: honest reports over gRPC are taken beside them."""

import asyncio
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import grpc
import grpc.aio
import pytest

from hubbub.shuffler.__main__ import _GRPC_CONNECTIONS
from tests.services.test_guards import Serving
from tests.services.test_slow_calls import _dial, _frame
from tests.support.waiting import HANG_SECONDS, eventually_async

pytestmark = pytest.mark.thorough

# In a process of its own, which may have as many files open as ours.
HOLDER = """
import socket, sys
address, number = ("127.0.0.1", int(sys.argv[1])), int(sys.argv[2])
held = [socket.create_connection(address) for _ in range(number)]
print(len(held), flush=True)
sys.stdin.read()
"""


@contextmanager
def _silent(address: str, number: int) -> Iterator[None]:
    """So many connections that never say a word."""
    command = [sys.executable, "-c", HOLDER, address.rpartition(":")[2], str(number)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert int(holder.stdout.readline()) == number
        try:
            yield
        finally:
            holder.stdin.close()


async def test_ten_thousand_silent_connections_keep_no_report_out(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hubbub.runtime.rpc.server._HANDSHAKE_SECONDS", 600.0)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 16_384)), hard))
    async with serving(connections=_GRPC_CONNECTIONS) as front:
        with _silent(front.address, 10_000):
            # Linux tells its list in pages, between which others come and go.
            await eventually_async(lambda: abs(front.server.connections() - 10_000) < 200)
            for _ in range(20):
                await front.send(front.request(2))
        assert front.admission.counts["taken"] == 40
        await eventually_async(lambda: front.server.connections() < 200)


async def test_a_connection_that_does_not_acknowledge_settings_is_ended(serving: Serving) -> None:
    """Until then gRPC takes heads of 16 MiB, though its settings say 16 KiB."""
    async with serving(connections=40) as front:
        host, _, port = front.address.partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(4, 0, 0))
        assert b"settings_timeout" in await asyncio.wait_for(reader.read(), HANG_SECONDS)
        writer.close()


@pytest.mark.parametrize("kind", ["silent", "idle"])
async def test_idle_connections_above_the_limit_block_others_for_seconds_only(
    serving: Serving, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Which devices answer by coming again, as on any server that is away."""
    for name in ("_HANDSHAKE_SECONDS", "_IDLE_OF_LIMITED_SECONDS"):
        monkeypatch.setattr(f"hubbub.runtime.rpc.server.{name}", 5.0)
    async with serving(connections=40) as front:
        host, _, port = front.address.partition(":")
        idle = [await _dial(front.address) for _ in range(40 if kind == "idle" else 0)]
        silent = [socket.create_connection((host, int(port))) for _ in range(40 - len(idle))]
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await front.send(front.request(1))
        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
        request = front.request(1)

        async def is_sent() -> bool:
            return (await front.send(request)).ByteSize() >= 0

        assert await eventually_async(is_sent, although=(grpc.aio.AioRpcError,))
        assert front.admission.counts["taken"] == 1
        for connection in silent:
            connection.close()
        for _, writer in idle:
            writer.close()
