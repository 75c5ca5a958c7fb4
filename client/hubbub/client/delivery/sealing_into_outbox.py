"""Encrypts payloads for the aggregator, with all that leaves beside them, into the outbox."""

import time
from collections.abc import Sequence
from dataclasses import replace
from math import floor
from typing import Any, Final

from hubbub.bundles import Bundle, OpeningKeyPublic, key_at
from hubbub.catalog import Metric, epoch_start, late_from
from hubbub.client.clock import Clock
from hubbub.client.epochs_to_cover import FILLER, fills, other_tiers
from hubbub.client.files import seconds_left
from hubbub.client.mistakes_and_counters import Diagnostics
from hubbub.client.reentry_and_forks import NoReentryLock
from hubbub.client.reporter import Reporter
from hubbub.client.state.contract import DAMAGED, Dropped, OutboxEntry, PendingPayload, State
from hubbub.client.state.device_state import DeviceState
from hubbub.errors import StateBusy
from hubbub.mechanisms import BitSource, OneHot, Probability, SystemBits
from hubbub.sealing.hpke import filler_info, seal, seal_info

_FORK_SECONDS: Final = 1.0
# Sealing holds the interpreter for .1 ms, so the thread sleeps in between to let the app's threads
# run. With more than _HURRY reports to seal it only yields.
_REST_SECONDS: Final = 0.001
_HURRY: Final = 1000


class Sealer:
    """Seals payloads to the keys of a bundle, one at a time."""

    def __init__(self, bundle: Bundle) -> None:
        self._bundle = bundle
        # During a fork no thread is inside OpenSSL, whose locks a child would inherit locked.
        self.lock = NoReentryLock(_FORK_SECONDS)

    def sealed(self, number: int, drawn: PendingPayload) -> OutboxEntry | Dropped:
        """Returns the sealed entry of a payload, or why it cannot be sealed."""
        metric = self._bundle.streams.get(drawn.stream)
        if metric is None:  # a process of the app with an older bundle drew it
            return Dropped(drawn.stream, "unknown_metric")
        key = key_at(self._bundle.keys, epoch_start(drawn.epoch, metric.epoch))
        if key is None:
            return Dropped(drawn.stream, "no_key")
        if drawn.payload == FILLER and not fills(self._bundle):
            return Dropped(drawn.stream, DAMAGED)
        entry = self._entry(number, drawn, metric, key)
        nothing = replace(drawn, tag="", payload=FILLER)
        along = [
            self._entry(number, replace(nothing, stream=stream.name), stream, key)
            for stream in other_tiers(self._bundle, drawn.stream)
        ]
        # A dummy is recorded like a filler: even the device cannot tell later which value it had.
        along += [
            self._entry(number, nothing, metric, key, dummy)
            for dummy in dummy_payloads(metric, SystemBits())
        ]
        return replace(entry, beside=tuple(along))

    def _entry(
        self,
        number: int,
        drawn: PendingPayload,
        metric: Metric,
        key: OpeningKeyPublic,
        dummy: bytes = FILLER,
    ) -> OutboxEntry:
        """Returns the sealed entry; fillers and dummies have the length of a report."""
        payload, info = drawn.payload or dummy, seal_info(drawn.stream, drawn.epoch)
        if payload == FILLER:
            payload = bytes(metric.randomizer.layout.payload_bytes)
            info = filler_info(drawn.stream, drawn.epoch)
        with self.lock.inner:
            sealed = seal(payload, key.half(metric.kem), info)
        late = late_from(drawn.epoch, metric.epoch)
        return OutboxEntry(
            number=number, drawn=drawn, metric=metric, key_id=key.id, sealed=sealed, late=late
        )


class Entering:
    """Moves what a reporter draws into the outbox of its state, sealed once for all attempts.

    Attributes:
        is_flushing: whether a thread of the app waits for the outbox.
    """

    def __init__(
        self,
        reporter: Reporter,
        state: State,
        sealer: Sealer,
        *,
        clock: Clock,
        diagnostics: Diagnostics,
    ) -> None:
        self._reporter = reporter
        self._state = state
        self.sealer = sealer
        self._clock = clock
        self._diagnostics = diagnostics
        self.lock = NoReentryLock()
        self.is_flushing = False

    def of_person(self, reporter: Reporter, state: State) -> "Entering":
        """Returns the same for the reporter of a person's record."""
        timing: Any = {"clock": self._clock, "diagnostics": self._diagnostics}
        return Entering(reporter, state, self.sealer, **timing)

    def enter(self, *, gently: bool = False) -> None:
        """Seals and stores all payloads that this process, or an ended one, drew; all or none.

        With `gently` it pauses between seals, so that threads of the app never wait long, until one
        of them flushes. After StateUnusable no payload is lost.
        """
        with self.lock.hold(seconds_left(-1)) as is_entered:
            if not is_entered:
                raise StateBusy("another thread is entering reports all the time; try again")
            if self._reporter.is_local:
                self._reporter.keep_own()
                self._reporter.refresh()
                return
            self._keep_running(self._clock.now())
            self._reporter.keep_events()
            device = self._enter_own(gently=gently)
            orphans = False
            for owner, orphaned in self._state.orphans():
                orphans = True
                for moment in sorted({entry.made for _, entry in orphaned}):
                    self._keep_running(moment)
                device = self._enter(orphaned, owner, gently=gently)
            self._reporter.refresh(device)
            if orphans:  # their epoch may be over
                self._enter_own(gently=gently)

    def keep_running(self) -> None:
        """Records that the device runs, before any report about it leaves. Raises StateUnusable."""
        with self.lock.hold():
            self._keep_running(self._clock.now())

    def adopt(self, entries: Sequence[OutboxEntry]) -> None:
        """Lets persons' reports wait in this app's outbox. Raises StateUnusable."""
        if entries:
            self._diagnostics.drop(self._state.adopt(entries))

    def _keep_running(self, moment: float) -> None:
        if running := self._reporter.running(moment):
            self._state.note_run(running)
            self._reporter.refresh()

    def _enter_own(self, *, gently: bool) -> DeviceState | None:
        self._reporter.cover()
        drawn = self._reporter.pending()
        device = self._enter(drawn, "", gently=gently)
        self._reporter.drop_entered(drawn[-1][0] if drawn else 0)
        return device

    def _enter(
        self, drawn: Sequence[tuple[int, PendingPayload]], owner: str, *, gently: bool
    ) -> DeviceState | None:
        """Enters payloads; returns the device's state afterwards, or None if there were none."""
        if not drawn:
            return None
        entries: list[OutboxEntry] = []
        dropped: list[Dropped] = []
        for place, (number, report) in enumerate(drawn):
            # Real time, whatever the clock: this concerns real threads.
            if gently and not self.is_flushing:
                time.sleep(_REST_SECONDS if len(drawn) - place < _HURRY else 0)
            entry = self.sealer.sealed(number, report)
            if isinstance(entry, OutboxEntry):
                entries.append(entry)
            else:
                dropped.append(entry)
        given_up, device = self._state.enter(entries, dropped, drawn[-1][0], owner)
        self._diagnostics.drop(given_up)
        return device


def dummy_payloads(metric: Any, coins: BitSource) -> list[bytes]:
    """Random payloads that a device sends beside one report, which nobody can distinguish from it.

    PRIVACY: neither their number nor their values depend on the report; all values are equally
    likely.
    """
    layout, dummies_each = metric.randomizer.layout, metric.made_each
    if not dummies_each or not isinstance(layout, OneHot):
        return []
    number = floor(dummies_each) + coins.chance(Probability.at_most(dummies_each % 1))
    return [layout.encode(coins.below(layout.size)) for _ in range(number)]
