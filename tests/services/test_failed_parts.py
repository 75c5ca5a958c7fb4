"""A part of a service that fails by a fault of ours: its process ends and says which part it was.

Nobody waits for what nothing works on any more, and nothing of what it was about is told.
"""

import asyncio
import ctypes
import os
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hubbub.authoring import Catalog
from hubbub.bundles import Bundle
from hubbub.client import SealedReport, TryAgain, transport_to
from hubbub.conservation import Window
from hubbub.installation.child_process import Child, free_port
from hubbub.installation.local_run import LocalRun, Ports
from hubbub.runtime.http.connection_limit import OpenConnections
from hubbub.runtime.http.server import HttpDoor
from hubbub.sealing.hpke import seal, seal_info
from hubbub.shuffler.crowd_pool import Crowds
from hubbub.shuffler.pool import Pool
from hubbub.shuffler.stream_table import read_stream_table
from tests.conftest import CatalogFiles
from tests.support.mixing import a_sink, mixers, sealed_reports
from tests.support.moment import now
from tests.support.waiting import HANG_SECONDS

RAW_VALUE = "what a person said"
FAULTY = f"""
import runpy
from hubbub.shuffler.pool import Pool

async def failing(*_):
    raise KeyError({RAW_VALUE!r})

Pool.add = failing
runpy.run_module("hubbub.shuffler", run_name="__main__", alter_sys=True)
"""
SERVING = """
import asyncio, sys
from hubbub.runtime.process import run_service, serve_until_signal
from types import SimpleNamespace

class Door:
    async def start(self): pass
    async def serve(self): {door}
    async def stop(self, grace_seconds): print("stopped within", grace_seconds)

async def swallow():
    # As asyncio.wait_for may before Python 3.12.
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        await asyncio.Event().wait()

async def part(): {part}

common = SimpleNamespace(log_format="text", tls=None)
settings = SimpleNamespace(common=common)
serve = lambda _: serve_until_signal([Door()], [part], {{}})
sys.exit(run_service("relay", lambda: settings, serve))
"""
FOR_EVER = "await asyncio.Event().wait()"
FREES_MEMORY = """
    import ctypes, os
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    pages = lambda: int(open("/proc/self/statm").read().split()[1])
    first = pages()
    blocks = [libc.malloc(10_000) for _ in range(20_000)]
    for block in blocks:
        ctypes.memset(block, 1, 10_000)
    most = pages()
    for block in blocks[:-1]:  # the last block keeps the heap from becoming shorter
        libc.free(block)
    while pages() - first > (most - first) / 2:
        await asyncio.sleep(0.1)
    os.kill(os.getpid(), 15)
    await asyncio.Event().wait()
"""
FAILS = f"raise KeyError({RAW_VALUE!r})"


class Faulty(LocalRun):
    """Everything on this machine, with a shuffler that fails at the first report."""

    def _service(self, role: str, *arguments: str, redis_url: str) -> None:
        if role != "shuffler":
            super()._service(role, *arguments, redis_url=redis_url)
            return
        environment = {**os.environ, "HUBBUB_REDIS_URL": redis_url}
        command = [sys.executable, "-c", FAULTY, *arguments]
        self.shuffler = Child(role, command, environment, self.home / "log" / "shuffler.log")
        self.children.append(self.shuffler)


def _report(bundle: Bundle) -> SealedReport:
    epoch, key = int(now()) // 86_400, bundle.keys[0]
    size = bundle.streams["theme"].randomizer.layout.payload_bytes
    sealed = seal(bytes(size), key.half("x25519"), seal_info("theme", epoch))
    return SealedReport(stream="theme", epoch=epoch, key_id=key.id, sealed=sealed)


def test_devices_of_a_shuffler_whose_intake_fails_are_asked_at_once_to_retry(
    catalog_files: CatalogFiles, tmp_path: Path
) -> None:
    with Faulty(
        tmp_path / "home",
        Catalog(shuffler="127.0.0.1:1", metrics=dict(catalog_files.bundle.metrics)),
        Ports.free(),
    ) as run:
        transport = transport_to(run.bundle.shuffler, roots=run.bundle.roots)
        with closing(transport), pytest.raises(TryAgain) as error:
            transport.submit([_report(run.bundle)], HANG_SECONDS)
        assert error.value.reason != "deadline_exceeded"
        assert run.shuffler.process.wait(HANG_SECONDS) == 1
        log_text = (run.home / "log" / "shuffler.log").read_text()
    assert "why Intake.run has failed" in log_text
    assert (
        "CRITICAL hubbub.runtime Intake.run has failed: KeyError at failing in <string>:"
        in log_text
    )
    assert "called by run in group_commit.py:" in log_text
    assert RAW_VALUE not in log_text
    assert "Traceback" not in log_text


@pytest.mark.parametrize(
    ("door", "part", "message"),
    [
        (FOR_EVER, FAILS, "part has failed: KeyError at part in <string>:"),
        ("await swallow()", FAILS, "part has failed: KeyError at part in <string>:"),
        (FOR_EVER, "pass", "part has ended; this is a fault of hubbub"),
        (FAILS, FOR_EVER, "Door has failed: KeyError at serve in <string>:"),
    ],
)
def test_a_process_ends_with_the_first_of_its_parts(door: str, part: str, message: str) -> None:
    code = SERVING.format(door=door, part=part)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert message in done.stderr
    assert RAW_VALUE not in done.stderr
    assert done.stdout == "stopped within 0.0\n"


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="of glibc alone")
def test_memory_that_libraries_freed_returns_to_the_system() -> None:
    code = SERVING.format(door=FOR_EVER, part=FREES_MEMORY)
    done = subprocess.run([sys.executable, "-c", code], check=False, timeout=HANG_SECONDS)
    assert done.returncode == 0


@pytest.mark.parametrize(("of", "step"), [(Pool, "claim"), (Crowds, "cut")])
async def test_a_mixer_ends_with_a_delivery_or_a_cut_that_fails(
    of: type,
    step: str,
    catalog_files: CatalogFiles,
    redis_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def failing(*_: Any) -> None:
        raise KeyError(RAW_VALUE)

    async with asyncio.timeout(HANG_SECONDS):
        table = read_stream_table(catalog_files.streams)
        if of is Crowds:
            object.__setattr__(table.streams["theme"], "mix", "rolling")
        window = Window("theme", int(now()) // 86_400)
        async with a_sink() as (_, address), mixers(redis_url, table, address, 1) as mixing:
            monkeypatch.setattr(of, step, failing)
            await mixing.pools[0].add({window: sealed_reports(300)})
            loop = mixing.loops[0]
            while not loop.done():
                mixing.clock.advance(0.1)
                await asyncio.sleep(0)
            assert isinstance(loop.exception(), KeyError)


async def test_a_server_that_accepts_nobody_any_more_logs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def failing(*_: Any) -> None:
        raise KeyError(RAW_VALUE)

    async with asyncio.timeout(HANG_SECONDS):
        address = f"127.0.0.1:{free_port()}"
        app: Callable[..., Any] = Counter
        connections = OpenConnections((), Counter())
        door = HttpDoor(address, app, tls=None, connections=connections)
        await door.start()
        serving = asyncio.create_task(door.serve())
        monkeypatch.setattr(connections, "add", failing)
        host, _, port = address.rpartition(":")
        with socket.create_connection((host, int(port))), pytest.raises(KeyError):
            await serving
        await door.stop(0)
