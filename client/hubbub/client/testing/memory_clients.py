"""Clients in memory, with coins that repeat for the same seed, and what an app reports by them.

Captured reports are raw values, which never leave a real device.
"""

import contextlib
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hubbub.bundles import Bundle, read_bundle
from hubbub.client.client import Client
from hubbub.client.clock import SYSTEM_CLOCK, Clock
from hubbub.client.outcome import Outcome
from hubbub.client.public_field_values import Public
from hubbub.client.server_persons import Person, Persons
from hubbub.client.settings import Settings
from hubbub.client.state.memory import MemoryState
from hubbub.client.testing.fakes import FakeShuffler
from hubbub.client.transport.contract import Transport
from hubbub.fields.frozen import frozen
from hubbub.mechanisms import BitSource, KeyedBits


def coins(seed: str = "") -> BitSource:
    """Coins for snapshots: the same seed gives the same payloads, in the same order of reports.

    Never for a real client: whoever has the seed can undo the randomization.
    """
    return KeyedBits(hashlib.sha256(b"hubbub/1 testing|" + seed.encode()).digest())


class MemoryStore:
    """Records of persons in memory."""

    def __init__(self) -> None:
        self._records: dict[bytes, bytes] = {}

    def read(self, person: bytes) -> bytes | None:
        return self._records.get(person)

    def replace(self, person: bytes, before: bytes | None, after: bytes) -> bool:
        is_same = self._records.get(person) == before
        if is_same:
            self._records[person] = after
        return is_same


def memory_client(
    bundle: Bundle | str | Path,
    *,
    seed: str = "",
    transport: Transport | None = None,
    clock: Clock = SYSTEM_CLOCK,
    public: Public | None = None,
) -> Client:
    """Returns a strict client without thread, network or disk; flush() sends to `transport`.

    Args:
        bundle: a bundle, or its path.
        seed: decides the client's coins and its secret.
        transport: receives the reports; by default a `FakeShuffler`.
        clock: for example a `FakeClock`.
        public: public fields, as for `Client`.
    """
    secret = hashlib.sha256(b"hubbub/1 testing secret|" + seed.encode()).digest()
    return Client(
        bundle if isinstance(bundle, Bundle) else read_bundle(Path(bundle)),
        MemoryState(secret),
        transport or FakeShuffler(),
        hold_seconds=None,
        strict=True,
        coins=coins(seed),
        clock=clock,
        public=public,
        persons=Persons(MemoryStore(), secret),
    )


@frozen()
class Report:
    """One call of report(), with its outcome."""

    metric: str
    value: Any
    outcome: Outcome


@dataclass(slots=True)
class Captured:
    """All calls of report(), by all clients, in order."""

    reports: list[Report] = field(default_factory=list)

    def values(self, metric: str) -> list[Any]:
        """Returns the values of one metric that were queued, or noted for a later report."""
        return [
            report.value
            for report in self.reports
            if report.metric == metric and report.outcome in {Outcome.QUEUED, Outcome.NOTED}
        ]


@contextlib.contextmanager
def capture() -> Iterator[Captured]:
    """Within this context clients use only memory and send nothing; all reports are captured.

    `Client.from_bundle()` and `hubbub.client.init()` return strict clients in memory; they read and
    check the bundle as usual, so that an unknown metric or value fails the test.
    """
    captured = Captured()

    def recording(kind: type[Client] | type[Person]) -> Any:
        report: Any = kind.report

        def record(self: Any, metric: str, value: Any = None) -> Outcome:
            outcome: Outcome = report(self, metric, value)
            captured.reports.append(Report(metric, value, outcome))
            return outcome

        return patch.object(kind, "report", record)

    def in_memory(path: str | os.PathLike[str] | None = None, **_settings: Any) -> Client:
        return memory_client(Path(Settings.read(bundle=path).bundle))

    in_memory_only = patch.object(Client, "from_bundle", in_memory)
    with recording(Client), recording(Person), in_memory_only:
        yield captured
