"""Clients that keep everything in memory, with coins that repeat for the same seed."""

import hashlib
from pathlib import Path

from hubbub.bundles import Bundle, read_bundle
from hubbub.client.client import Client
from hubbub.client.clock import SYSTEM_CLOCK, Clock
from hubbub.client.public_values import Public
from hubbub.client.server_persons import Persons
from hubbub.client.state.memory import MemoryState
from hubbub.client.testing.fake_shuffler import FakeShuffler
from hubbub.client.transport.contract import Transport
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
