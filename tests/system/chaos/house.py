"""Everything that runs: Redis servers, aggregators, shufflers, devices, and the lines between."""

import json
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Self
from urllib.parse import urlsplit

from hubbub.authoring import Catalog, read_with_promises
from hubbub.bundles import read_bundle
from hubbub.bundles.tokens import Tokens
from hubbub.client import Client
from hubbub.errors import HubbubError
from hubbub.installation.certificate_authorities import write_certificates
from hubbub.installation.child_process import Child, free_port
from hubbub.installation.embedded_redis import EmbeddedRedis
from hubbub.installation.keys_and_bundles import build_bundle, make_keys
from hubbub.installation.running_endpoints import Endpoints
from tests.support.catalogs import metric_toml
from tests.support.law_terms import total_counts
from tests.support.waiting import eventually
from tests.system.chaos import device, stepped_clock
from tests.system.chaos.faulty_connection import Line

SHUFFLERS = 2
DEVICES = 4
COPIES = 4  # of every metric, since a device reports one a thousand times at most
# How the names end of copies that leave in crowds: whenever one has gathered, or at the end.
ROLLING, WHOLE = "2", "3"
ENDLESS = {"reports_per_epoch": 1000, "lifetime_epsilon": 1e9}
MANY = [f"value {number}" for number in range(40)]
CATALOG = 'shuffler = "127.0.0.1:1"\n' + "".join(
    metric_toml(f"{name}{copy}", rest, epoch=epoch, min_batch=10, **ENDLESS)
    for copy in range(COPIES)
    for name, epoch, rest in (
        ("flag", "week", 'mechanism = "rr"\nepsilon = 1.0\nvalues = ["no", "yes"]'),
        ("theme", "week", f'mechanism = "unary.oue"\nepsilon = 1.0\nvalues = {json.dumps(MANY)}'),
        ("page", "week", f'mechanism = "hadamard"\nepsilon = 2.0\nvalues = {json.dumps(MANY)}'),
        (
            "word",
            "week",
            (
                'mechanism = "rappor"\nepsilon = 4.0\ndomain = "string"\nbits = 64\nhashes = 2\n'
                "cohorts = 8\nf = 0.25\np = 0.35\nq = 0.65"
            ),
        ),
        ("hourly", "hour", 'mechanism = "grr"\nepsilon = 1.0\nvalues = ["a", "b", "c"]'),
    )
)


def _with_dummies(name: str, more: str) -> str:
    """A metric with a central promise, whose crowds have dummies."""
    fields = {"epoch": "week", "mechanism": "grr", "central_epsilon": 1.0, "crowd": 10}
    return metric_toml(name, more, values=MANY, lifetime_epsilon=1e9, **fields)


PADDED = "padded"
"""How metrics with a central promise and dummies begin, of which every crowd has these:"""
DUMMIES = 33
CATALOG += "".join(
    _with_dummies(f"{PADDED}{copy}", f"rolling = {str(copy != WHOLE).lower()}\ndummies = {DUMMIES}")
    for copy in (ROLLING, f"1{ROLLING}", WHOLE)
)
MADE = f"made{WHOLE}"
"""A metric whose dummies devices make, so many beside each report, on average."""
MADE_EACH = 2.5
CATALOG += _with_dummies(MADE, f"dummies_each = {MADE_EACH}")


@dataclass
class Part:
    """One process that may be killed and frozen at any moment; somebody starts it again."""

    child: Child
    kind: str
    offset_file: Path | None = None
    frozen: bool = False
    bytes_seen: list[int] = field(default_factory=list)

    def workers(self) -> list[int]:
        """The processes that it has started itself."""
        pid = self.child.process.pid
        try:
            return [int(n) for n in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        except OSError:
            return []

    def signal(self, number: int) -> bool:
        """Send it a signal: False if it is not running."""
        if self.child.process.poll() is not None:
            return False
        self.child.process.send_signal(number)
        return True

    def step(self, seconds: float) -> None:
        """Make its clock wrong."""
        if self.offset_file:
            self.offset_file.write_text(str(seconds), encoding="ascii")


class House:
    """A context manager: all of it runs inside, and what ends is started again."""

    AGGREGATORS = 2
    REPORTS_A_SECOND = 40  # of each device
    REDIS_REPLICAS = 0  # that must have a write before it counts
    CATALOG = CATALOG
    MORE_KILLED: ClassVar[Mapping[str, int]] = {}  # as faults.KILLED has them
    tokens: Tokens | None = None

    def __init__(self, home: Path) -> None:
        self.home = home
        self.parts: list[Part] = []
        self.lines: list[Line] = []
        self._end = threading.Event()
        self._starts = threading.Lock()  # held by whoever starts a part again, or ends it for good
        self._pages: list[str] = []
        self._status = [f"127.0.0.1:{free_port()}" for _ in range(SHUFFLERS)]
        self.restarts = 0

    def __enter__(self) -> Self:
        (self.home / "log").mkdir(parents=True)
        (self.home / "metrics.toml").write_text(self.CATALOG)
        make_keys(self.home / "keys")
        write_certificates(self.home / "tls", {})
        self._build()
        pool, totals = self._start_redis()
        self.ingests = [self._aggregator(number, totals) for number in range(self.AGGREGATORS)]
        self.fronts = [self._shuffler(number, pool, self.ingests) for number in range(SHUFFLERS)]
        for number in range(DEVICES):
            self._device(number, self.fronts[number % SHUFFLERS])
        self._keeper = threading.Thread(target=self._keep)
        self._keeper.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._keeper.join()
        for part in reversed(self.parts):
            part.signal(signal.SIGCONT)
            part.child.stop()
        for line in self.lines:
            line.close()

    @property
    def pool_url(self) -> str:
        """Of the shufflers' Redis, past its line."""
        return self.redis[0].url

    @property
    def totals_url(self) -> str:
        """Of the aggregators'."""
        return self.redis[1].url

    @property
    def endpoints(self) -> Endpoints:
        """Of the first aggregator: all tell the same, and each asks the first shuffler."""
        return Endpoints(page=f"http://{self._pages[0]}")

    def state_of(self, number: int) -> Path:
        """The state folder of a device."""
        return self.home / f"device-{number}"

    def mend(self) -> None:
        """No more faults."""
        for line in self.lines:
            line.mend()
        for part in self.parts:
            part.step(0)
            part.frozen = False
            part.signal(signal.SIGCONT)

    def until_acknowledged(self, reports: int) -> None:
        """Let the devices go on until so many have been: nothing goes wrong any more."""
        eventually(
            lambda: total_counts(self.endpoints)["acknowledged"] >= reports,
            although=(HubbubError,),
        )

    def open_device(self, number: int) -> Client:
        """A device's client, here: with its state, by its shuffler."""
        front = self.fronts[number % len(self.fronts)]
        return device.open_client(self.home / "app.hubbub", self.state_of(number), front)

    def settle(self, records: dict[tuple[str, str, int], Counter[bytes]]) -> None:
        """Let whoever else reports end, and add what was acknowledged to what devices recorded."""

    def judge_tokens(self) -> tuple[list[str], dict[str, int]]:
        """What is wrong with tokens, and what became of them: nothing where none are needed."""
        return [], {}

    def stop(self, kind: str) -> None:
        """Kill all of a kind for good."""
        for part in [part for part in self.parts if part.kind == kind]:
            self.retire(part)
            part.child.process.kill()
            part.child.process.wait()

    def retire(self, part: Part) -> None:
        """From here on nobody starts it again: what runs of it is its caller's to end."""
        with self._starts:
            self.parts.remove(part)

    def _start_redis(self) -> tuple[str, str]:
        """Where shufflers and aggregators find theirs."""
        self.redis = [EmbeddedRedis(self.home / f"redis-{role}") for role in ("pool", "totals")]
        self.parts += [Part(server.child, "redis") for server in self.redis]
        pool, totals = (self._redis_line(server) for server in self.redis)
        return pool, totals

    def _redis_line(self, server: EmbeddedRedis) -> str:
        parts = urlsplit(server.url)
        line = self._line(f"127.0.0.1:{parts.port}")
        return server.url.replace(f"127.0.0.1:{parts.port}", line)

    def _line(self, target: str) -> str:
        self.lines.append(Line(target))
        return self.lines[-1].address

    def _aggregator(self, number: int, redis_url: str) -> str:
        listen, page = (f"127.0.0.1:{free_port()}" for _ in range(2))
        self._pages.append(page)
        arguments = ["--bundle", str(self.home / "app.hubbub")]
        arguments += ["--keys", str(self.home / "keys" / "opening.keys.json")]
        arguments += ["--listen", listen, "--http-listen", page, "--processes", "1"]
        arguments += ["--shards", "2", "--shuffler-status", self._status[0]]
        self._service("aggregator", number, arguments, redis_url)
        return self._line(listen)

    def _shuffler(self, number: int, redis_url: str, ingests: list[str]) -> str:
        listen, status = f"127.0.0.1:{free_port()}", self._status[number]
        arguments = ["--streams", str(self.home / "streams.json"), "--peer-rate", "0"]
        arguments += ["--max-batch", "20", "--shards", "3"]  # so that a crowd has cuts and shards
        arguments += ["--listen", listen, "--operator-listen", status]
        for ingest in ingests:
            arguments += ["--aggregator", ingest]
        self._service("shuffler", number, arguments, redis_url)
        return self._line(listen)

    def _service(self, role: str, number: int, arguments: list[str], redis_url: str) -> None:
        arguments = [*arguments, "--tls", str(self.home / "tls")]
        arguments += ["--metrics-listen", f"127.0.0.1:{free_port()}"]
        arguments += ["--redis-replicas", str(self.REDIS_REPLICAS)]
        environment = {**os.environ, "HUBBUB_REDIS_URL": redis_url}
        self._part(f"{role}-{number}", role, f"hubbub.{role}", arguments, environment)

    def _device(self, number: int, shuffler: str) -> None:
        arguments = [str(self.home / "app.hubbub"), str(self.state_of(number)), shuffler]
        arguments.append(str(self.REPORTS_A_SECOND))
        self._part(f"device-{number}", "device", device.__file__, arguments, dict(os.environ))

    def _part(
        self,
        name: str,
        kind: str,
        program: str,
        arguments: list[str],
        environment: dict[str, str],
    ) -> None:
        offset_file = self.home / f"{name}.offset"
        command = [sys.executable, stepped_clock.__file__, str(offset_file), program, *arguments]
        child = Child(name, command, environment, self.home / "log" / f"{name}.log")
        self.parts.append(Part(child, kind, offset_file))

    def _build(self) -> None:
        metrics = read_with_promises(self.home / "metrics.toml").metrics
        catalog = Catalog(shuffler="127.0.0.1:1", metrics=metrics, tokens=self.tokens)
        build_bundle(
            catalog,
            self.home / "keys",
            out=self.home / "app.hubbub",
            streams=self.home / "streams.json",
            previous=self.home / "app.hubbub",
            roots=(self.home / "tls" / "ca.pem").read_text(),
        )
        self.bundle = read_bundle(self.home / "app.hubbub")
        self._make_whole(self.home / "streams.json")

    def _make_whole(self, streams: Path) -> None:
        """Some streams leave in crowds, which the shuffler alone is told: it knows no values."""
        document = json.loads(streams.read_text())
        for name, stream in document["streams"].items():
            if name.startswith((PADDED, MADE)):
                continue
            if name.endswith(ROLLING):
                stream |= {"mix": "rolling", "min_batch": 15}
            elif name.endswith(WHOLE):
                stream |= {"mix": "epoch"}
        streams.write_text(json.dumps(document))

    def _keep(self) -> None:
        """Start what ended, as a supervisor would, and look how large everything is."""
        while not self._end.wait(0.05):
            for part in list(self.parts):
                with self._starts:
                    if part.child.process.poll() is not None and part in self.parts:
                        time.sleep(0.02)
                        part.child.start()
                        self.restarts += 1
                with suppress(OSError):
                    pages = Path(f"/proc/{part.child.process.pid}/statm").read_text().split()[1]
                    part.bytes_seen.append(int(pages) * os.sysconf("SC_PAGE_SIZE"))
