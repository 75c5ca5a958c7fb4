"""Clients that keep everything in memory, with coins that fall the same way every time."""

import hashlib
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from hubbub.authoring import read_catalog
from hubbub.catalog import (
    EPOCH_SECONDS,
    Bundle,
    CentralPromise,
    OpeningKey,
    read_bundle,
    read_opening_keys,
    read_operator_key,
    read_public_keys,
    sign_bundle,
    write_new_keys,
)
from hubbub.catalog.crowds.gaussian import mu_of_pure
from hubbub.client.client import Client
from hubbub.client.clock import SYSTEM_CLOCK, Clock
from hubbub.client.public_values import Public
from hubbub.client.state.memory import MemoryState
from hubbub.client.testing.fake_shuffler import FakeShuffler
from hubbub.client.transport.contract import Transport
from hubbub.mechanisms import BitSource, KeyedBits

_KEY_SECONDS = 4 * EPOCH_SECONDS["week"]


def coins(seed: str = "") -> BitSource:
    """Coins for snapshots: the same seed gives the same payloads, in the same order of reports.

    Never for a real client: whoever knows the seed knows every lie.
    """
    return KeyedBits(hashlib.sha256(b"hubbub/1 testing|" + seed.encode()).digest())


@dataclass(frozen=True, slots=True)
class TestBundle:
    """A bundle signed for a test, its content, and the keys that open what is sealed with it."""

    bundle: Bundle
    signed: bytes = field(repr=False)
    opening: tuple[OpeningKey, ...] = field(repr=False)

    __test__ = False  # it is no test, whatever its name says


class _Alone:
    """Keeps every central promise without a crowd, by local epsilons that are no larger."""

    def local_epsilon(self, promise: CentralPromise, _categories: float, _groups: int = 1) -> float:
        return min(promise.epsilon / promise.epochs, promise.max_local_epsilon)

    def keeps(
        self, promise: CentralPromise, _categories: float, epsilon: float, _groups: int = 1
    ) -> bool:
        return epsilon * promise.epochs <= promise.epsilon

    def gaussian(
        self, _promise: CentralPromise, _categories: float, epsilon: float, _groups: int = 1
    ) -> float:
        return mu_of_pure(epsilon)

    def dummies(
        self, _promise: CentralPromise, _categories: int, *, by_devices: bool = False
    ) -> int:
        del by_devices
        return 0

    def crowd_needed(
        self, _promise: CentralPromise, _categories: float, _epsilon: float, _groups: int = 1
    ) -> None:
        """None would do."""


def make_bundle(catalog: str | Path, *, shuffler: str | None = None) -> TestBundle:
    """Sign a catalog (metrics.toml) with keys of the moment, which end with the test.

    shuffler: HOST:PORT to put in instead of the catalog's.

    Raises:
        CatalogInvalid: the catalog is wrong.
    """
    source = read_catalog(Path(catalog), _Alone())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "keys"
        start = int(time.time()) - _KEY_SECONDS
        write_new_keys(folder, start=start, period_seconds=_KEY_SECONDS, periods=14)
        bundle = Bundle(
            metrics=source.metrics,
            keys=read_public_keys(folder),
            shuffler=shuffler or source.shuffler,
            roots=None,
            history={name: metric.digest() for name, metric in source.metrics.items()},
            budget=source.budget,
            caps=source.caps,
        )
        path = folder / "app.hubbub"
        path.write_bytes(sign_bundle(bundle, read_operator_key(folder)))
        opening = read_opening_keys(folder / "opening.keys.json")
        return TestBundle(read_bundle(path), path.read_bytes(), opening)


def memory_client(
    bundle: Bundle | str | Path,
    *,
    seed: str = "",
    transport: Transport | None = None,
    clock: Clock = SYSTEM_CLOCK,
    public: Public | None = None,
) -> Client:
    """A strict client without thread, network or disk; flush() sends to `transport`.

    bundle: or the file of one. seed: of its coins and its secret. public: as `Client` has it.
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
    )
