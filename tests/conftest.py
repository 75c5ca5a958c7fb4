"""What tests share: a small catalog, its signed bundle, and a real Redis of their own.

And what keeps them from the machine that they run on: its environment, its user, its clock.
"""

import asyncio
import gc
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, _AsyncGeneratorContextManager, asynccontextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from inspect import iscoroutinefunction, signature
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest

from hubbub.bundles import Bundle, OpeningKey
from hubbub.client import Client, FolderState, MemoryState, State, SystemClock
from hubbub.client.clock import SYSTEM_CLOCK
from hubbub.client.testing import memory_client
from hubbub.keys.opening_key_files import read_opening_keys
from hubbub.signing.sign_bundle import stream_table
from tests.support.bundles import DAY, Signed, make_signed
from tests.support.clean_environment import forget_the_caller, hear_interrupts
from tests.support.devices import Device
from tests.support.moment import far_from_midnight, now

if TYPE_CHECKING:
    from hubbub.runtime.redis.command_sender import RedisServer

forget_the_caller(os.environ)
hear_interrupts()
# To look for garbage among thousands of tests takes a third of the time of their collection.
gc.disable()

# A device that is not told otherwise has the clock of the test.
for makes_one in (Client.__init__, memory_client):
    defaults = makes_one.__kwdefaults__ or {}
    assert defaults["clock"] is SYSTEM_CLOCK
    defaults["clock"] = SystemClock(now)

try:
    from hypothesis import HealthCheck, settings
except ModuleNotFoundError:  # somebody runs a test alone, without it
    pass
else:
    # No limit on how long an example takes, nor on how long it takes to draw; and none of another
    # run's examples.
    settings.register_profile(
        "hubbub",
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("hubbub")

# Nobody listens on port 1: what finds no shuffler, finds none whatever else runs here.
CATALOG = """
shuffler = "127.0.0.1:1"

[metrics.theme]
description = "Colour theme in use at the end of the day"
owner = "desktop@example.org"
expires = 2099-06-30
epoch = "day"
mechanism = "unary.oue"
epsilon = 1.0
values = ["light", "dark", "system"]
min_batch = 20
limits = { reports_per_epoch = 1, lifetime_epsilon = 50.0 }

[metrics.crashed]
description = "Whether the app crashed this hour"
owner = "desktop@example.org"
expires = 2099-06-30
epoch = "hour"
mechanism = "rr"
epsilon = 2.0
values = ["no", "yes"]
tiers = [0.5, 1.0]
min_batch = 20
limits = { reports_per_epoch = 3, lifetime_epsilon = 10.0 }

[metrics.editor]
description = "Editor in use"
owner = "desktop@example.org"
expires = 2099-06-30
epoch = "week"
mechanism = "rappor.basic"
epsilon = 1.1
values = ["vi", "emacs", "other"]
f = 0.5
p = 0.25
q = 0.75
min_batch = 20
limits = { reports_per_epoch = 1, lifetime_epsilon = 2.2 }

[metrics.homepage]
description = "Home page"
owner = "desktop@example.org"
expires = 2099-06-30
epoch = "day"
mechanism = "rappor"
epsilon = 2.0
domain = "string"
bits = 16
hashes = 1
cohorts = 2
f = 0.25
p = 0.2
q = 0.8
min_batch = 20
limits = { reports_per_epoch = 100, lifetime_epsilon = 20.0 }
"""


@dataclass(frozen=True)
class CatalogFiles:
    """A catalog built for real: files, bundle, private keys."""

    folder: Path
    path: Path
    streams: Path
    bundle: Bundle
    opening: tuple[OpeningKey, ...]


def pytest_collection_finish() -> None:
    # A test makes much that lives on until it ends: to look through it takes a tenth of its time.
    gc.set_threshold(50_000, 20, 20)
    gc.enable()
    gc.freeze()


def pytest_runtest_setup() -> None:
    now.begin()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs a test that is a coroutine, within those of its fixtures that are async contexts."""
    test = pyfuncitem.obj
    if not iscoroutinefunction(test):
        return None

    async def run() -> None:
        async with AsyncExitStack() as stack:
            arguments = {name: pyfuncitem.funcargs[name] for name in signature(test).parameters}
            for name, context in arguments.items():
                if isinstance(context, _AsyncGeneratorContextManager):
                    arguments[name] = await stack.enter_async_context(context)
            await test(**arguments)

    marker = pyfuncitem.get_closest_marker("loop")
    with asyncio.Runner(loop_factory=marker.kwargs["factory"] if marker else None) as runner:
        runner.run(run())
    return True


@pytest.fixture(scope="session", autouse=True)
def _surroundings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Temporary files and states of users are this run's own, also in the programs it starts."""
    with pytest.MonkeyPatch.context() as patch:
        for variable in ("TMPDIR", "XDG_STATE_HOME"):
            patch.setenv(variable, str(tmp_path_factory.mktemp(variable.lower())))
        patch.setattr("tempfile.tempdir", None)
        if find_spec("grpc_health"):  # the bare install has nothing to start
            from hubbub.installation.local_run import LocalRun

            patch.setattr(LocalRun, "__enter__", _far_from_midnight(LocalRun.__enter__))
        yield


def _far_from_midnight(enter: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Whoever starts everything: its services have the machine's clock."""

    def entered(run: Any) -> Any:
        far_from_midnight()
        return enter(run)

    return entered


@pytest.fixture(scope="session")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Signed:
    today = int(now()) // DAY
    return make_signed(tmp_path_factory.mktemp("signed"), CATALOG, start=(today - 14) * DAY)


@pytest.fixture(scope="session")
def catalog_files(signed: Signed) -> CatalogFiles:
    streams = signed.path.with_name("streams.json")
    streams.write_text(stream_table(signed.bundle))
    opening = read_opening_keys(signed.keys / "opening.keys.json")
    return CatalogFiles(signed.path.parent, signed.path, streams, signed.bundle, opening)


@pytest.fixture
def memory_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where the system has one: nothing waits for a disk to have written."""
    in_memory = Path("/dev/shm")  # noqa: S108 a folder of its own below it
    parent = in_memory if os.access(in_memory, os.W_OK) else tmp_path
    with TemporaryDirectory(dir=parent, prefix="hubbub-device-") as folder:
        yield Path(folder)


@pytest.fixture(params=["memory", "folder"])
def state(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[State]:
    """A device's state, of either kind."""
    device_state = MemoryState() if request.param == "memory" else FolderState(tmp_path / "state")
    yield device_state
    device_state.close()


@pytest.fixture
def device(
    signed: Signed, memory_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Device]:
    (memory_folder / "tmp").mkdir()
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(memory_folder / "tmp"))
    new_device = Device(signed, memory_folder)
    yield new_device
    new_device.close()


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    from redis import Redis

    from hubbub.installation.embedded_redis import EmbeddedRedis

    server = EmbeddedRedis(tmp_path_factory.mktemp("redis"))
    with Redis.from_url(server.url) as client:
        # It is never started again, so no write waits for the disk.
        client.config_set("appendfsync", "no")
    yield server.url
    server.stop()


@pytest.fixture
@asynccontextmanager
async def server(redis_url: str) -> "AsyncIterator[RedisServer]":
    """The connection of a coroutine to a Redis that is empty."""
    from hubbub.runtime.redis.client import connect_redis

    connected = await connect_redis(redis_url)
    await connected.client.flushdb()
    yield connected
    await connected.client.flushdb()
    await connected.close()


@pytest.fixture(scope="session")
def cluster_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    from tests.support.cluster import redis_cluster

    with redis_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster.url
