"""A device's whole life over a state that is damaged or hostile: its file, its witness, a journal.

Whatever the bytes: only documented errors, no limit passed by what left together with what the
witness knew, no report without consent or above what the person allows.
"""

import random
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import platformdirs
from cryptography.exceptions import InvalidSignature

from hubbub.bundles import Bundle
from hubbub.client import Client, Outcome, client, startup
from hubbub.client.state import payload_journal
from hubbub.client.testing import FakeClock, FakeShuffler
from hubbub.errors import BadPayload, BundleRefused, HubbubError, StateUnusable
from hubbub.keys.opening_key_files import read_opening_keys
from hubbub.sealing.hpke import open_sealed, seal_info
from tests.conftest import CATALOG
from tests.support.bundles import DAY, make_signed
from tests.support.client_parts import client_state, store_reports
from tests.support.waiting import HANG_SECONDS

START = 20_000 * DAY
NOW = START + 3 * DAY + 4000.0
VALUES = {"theme": "dark", "crashed": "no", "editor": "vi", "homepage": "a.example"}
# Parts of the lives that look at the ledger, and that start once more.
LOOK, AGAIN = 0.3, 0.2
MIN = 0.5  # what the person of one of the bases allows a report
DISABLED = {Outcome.DISABLED, Outcome.NO_STATE}


class Device(Client):
    """A client as `from_bundle` makes it, with a clock that stands and no network."""

    def __init__(self, bundle: Bundle, state: Any, transport: Any, **settings: Any) -> None:
        transport.close()
        self.shuffler = FakeShuffler()
        options = {**settings, "hold_seconds": None, "strict": False, "clock": FakeClock(NOW)}
        super().__init__(bundle, state, self.shuffler, **options)


@dataclass(frozen=True)
class Base:
    """A state as a client left it: its database, and every other file around it.

    on: whether the person lets it report. most: the most epsilon that the person allows.
    spent, reported: what the witness knows, by metric, and by metric and epoch.
    sealed: what its outbox holds.
    """

    database: bytes
    files: Mapping[str, bytes]
    on: bool
    most: float
    spent: Mapping[str, float]
    reported: Mapping[tuple[str, int], int]
    sealed: frozenset[bytes]


class Room:
    """Where a device lives: a folder with its state, its temporary files and its home."""

    def __init__(self, home: Path) -> None:
        self.signed = make_signed(home, CATALOG, start=START - 14 * DAY)
        self._room = home / "room"
        keys = read_opening_keys(self.signed.keys / "opening.keys.json")
        self._keys = {key.id: key.load() for key in keys}
        bundle = self.signed.bundle
        self._read = mock.Mock(return_value=bundle)
        self.bases = [
            self._base(scenario) for scenario in (_report, _report_and_stop, _report_less)
        ]

    @property
    def state(self) -> Path:
        """The state folder."""
        return self._room / "device"

    def furnish(self, base: Base, database: bytes | None = None) -> None:
        """Put everything of a base in place, with this database instead of its own."""
        shutil.rmtree(self._room, ignore_errors=True)
        for folder in ("device", "tmp", "home"):
            (self._room / folder).mkdir(parents=True, mode=0o700)
        for name, content in base.files.items():
            path = self._room / name
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.write_bytes(content)
        (self.state / "hubbub.sqlite3").write_bytes(base.database if database is None else database)

    def start(self) -> Device:
        """A client over what is in place."""
        return Device.from_bundle(self.signed.path, state_dir=self.state, insecure=True)

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Temporary files and the user's folders are the room's, and journals are short."""
        with (
            mock.patch.object(tempfile, "tempdir", str(self._room / "tmp")),
            mock.patch.object(payload_journal, "_SIZE", 1 << 14),
            mock.patch.object(client, "_STOP_SECONDS", 0.01),  # no other process sends
            mock.patch.object(startup, "read_bundle", self._read),
            mock.patch.object(platformdirs, "user_state_path", return_value=self._room / "home"),
        ):
            yield

    def opened(self, device: Device, base: Base) -> Counter[tuple[str, int]]:
        """How many new reports left a device, by stream and epoch: those that say something."""
        fresh: Counter[tuple[str, int]] = Counter()
        reports = {report.sealed: report for report in device.shuffler.reports()}
        for report in (
            candidate for sealed, candidate in reports.items() if sealed not in base.sealed
        ):
            with suppress(BadPayload, KeyError, TypeError, ValueError, InvalidSignature):
                info = seal_info(report.stream, report.epoch)
                open_sealed(report.sealed, self._keys[report.key_id], info)
                fresh[report.stream, report.epoch] += 1
        return fresh

    def _base(self, live: Any) -> Base:
        self._room.mkdir(exist_ok=True)
        with self.inside():
            for folder in ("tmp", "home"):
                (self._room / folder).mkdir(exist_ok=True)
            device = self.start()
            live(device)
            sealed = frozenset(report.sealed for report in device.shuffler.reports())
            device.close(0)
            # A second start, so that the witness knows all that the first one spent.
            device = self.start()
            on, most = device.ledger().on, client_state(device).device_state().consent.preference
            accounts = client_state(device).device_state().accounts
            device.close(0)
        sealed |= self._shrink()
        base = Base(
            (self.state / "hubbub.sqlite3").read_bytes(),
            {
                str(path.relative_to(self._room)): path.read_bytes()
                for path in self._room.rglob("*")
                if path.is_file() and "sqlite3" not in path.name and path.name != "lock"
            },
            on,
            most,
            {name: account.spent for name, account in accounts.items()},
            {(name, e): n for name, a in accounts.items() for e, n in a.epochs.items()},
            sealed,
        )
        shutil.rmtree(self._room)
        return base

    def _shrink(self) -> frozenset[bytes]:
        """Small pages, so that a byte that is changed is one that says something."""
        rows = sqlite3.connect(self.state / "hubbub.sqlite3")
        records = rows.execute("SELECT sealed FROM reports WHERE sealed IS NOT NULL").fetchall()
        rows.execute("PRAGMA journal_mode = DELETE")
        rows.execute("PRAGMA page_size = 512")
        rows.execute("VACUUM")
        rows.close()
        return frozenset(sealed for (sealed,) in records)


def _report(device: Device) -> None:
    """Some were sent, and some wait."""
    for name in ("theme", "crashed", "homepage"):
        device.report(name, VALUES[name])
    assert device.flush()
    device.report("editor", VALUES["editor"])
    store_reports(device)


def _report_and_stop(device: Device) -> None:
    _report(device)
    device.disable()


def _report_less(device: Device) -> None:
    device.prefer(MIN)
    device.report("crashed", VALUES["crashed"])
    assert device.flush()


def live(room: Room, base: Base, chance: random.Random, *, trusted: bool) -> None:
    """A whole life over what is in place. trusted: whether consent and preference must hold."""
    with room.inside(), suppress(BundleRefused):
        first = room.start()
        _use(room, first, base, chance, trusted=trusted)
        counts = room.opened(first, base)
        if chance.random() < AGAIN:
            with suppress(BundleRefused):
                second = room.start()
                _change_mind(second, chance)
                _use(room, second, base, chance, trusted=False)
                counts += room.opened(second, base)
        _check_limits(room, base, counts)


def _use(room: Room, device: Device, base: Base, chance: random.Random, *, trusted: bool) -> None:
    """Report something, send, look, and end."""
    started_on = base.on
    if chance.random() < LOOK:
        with suppress(StateUnusable):
            view = device.ledger()
            started_on = view.on
            for payload in view.payloads[-3:]:
                with suppress(HubbubError):
                    payload.meanings(["a.example"])
    names = chance.choices(list(VALUES), k=chance.choice((1, 1, 4)))
    outcomes = {name: device.report(name, VALUES[name]) for name in names}
    assert Outcome.FAILED not in outcomes.values(), "report() failed"
    device.flush(HANG_SECONDS)
    if trusted:
        if not base.on:
            assert not started_on, "the state was damaged, and reporting is on"
            assert set(outcomes.values()) <= DISABLED, "the state was damaged, and reporting is on"
            assert not device.shuffler.reports(), "reports left a device that is off"
        epsilons = [
            room.signed.bundle.streams[stream].epsilon for stream, _ in room.opened(device, base)
        ]
        assert max(epsilons, default=0) <= base.most, "more than the person allows"
    device.close(HANG_SECONDS)


def _change_mind(device: Device, chance: random.Random) -> None:
    with suppress(StateUnusable):
        match chance.randrange(4):
            case 0:
                device.disable(forget=chance.random() < 0.3)
                assert device.report("theme", "dark") is Outcome.DISABLED
                device.enable()
            case 1:
                device.prefer(chance.choice((None, 0.0, 0.7)))
            case 2:
                device.enable()
            case _:
                device.disable()
                assert device.report("theme", "dark") is Outcome.DISABLED


def _check_limits(room: Room, base: Base, counts: Counter[tuple[str, int]]) -> None:
    """What left and what the witness knew pass no limit."""
    spent = Counter(base.spent)
    reported = Counter(base.reported)
    for (stream, epoch), number in counts.items():
        metric = room.signed.bundle.streams[stream]
        reported[metric.base_name, epoch] += number
        if not metric.memoized:
            spent[metric.base_name] += number * metric.report_loss  # type: ignore[assignment]
    for (name, _epoch), number in reported.items():
        limits = room.signed.bundle.metrics[name].limits
        assert number <= limits.reports_per_epoch, f"more reports of {name} than may be"
        assert spent[name] <= limits.lifetime_epsilon * (1 + 1e-9), f"more nats of {name}"
