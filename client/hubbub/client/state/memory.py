"""MemoryState: a device's state that ends with the process.

SharedLedger is one ledger and one consent for all processes that cannot use their state folder.
PRIVACY: each of them locks, reads, merges and writes the temporary witness before anything leaves.
If a process is killed meanwhile, at most too much is charged.
"""

import contextlib
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hubbub.catalog import Metric
from hubbub.client.epochs_to_cover import NOTHING, WaitingEpochs
from hubbub.client.lazy_log import warn
from hubbub.client.ledger import forgotten
from hubbub.client.state.consent import CONSENT_UNKNOWN, agreed, forgotten_at, turned, unknown
from hubbub.client.state.contract import (
    DISABLED,
    HISTORY,
    SENT,
    UNSTORED,
    Bounds,
    Dropped,
    OutboxEntry,
    OutboxReport,
    PayloadRecord,
    PendingPayload,
    Result,
    admit,
    excess,
    fitting,
    in_random_order,
    settled_by,
)
from hubbub.client.state.device_state import DeviceState, Event
from hubbub.client.state.secret import SECRET_BYTES
from hubbub.client.state.state_witness import StateMoment, Witnesses, agree
from hubbub.errors import StateUnusable

if TYPE_CHECKING:
    from hubbub.client.state.token_wallet import Wallet


class MemoryState:
    """A state that the process loses when it ends.

    Args:
        witnesses: of the folder that cannot be used. Spending and decisions are stored there all
            the same, and shared by all processes that cannot use the folder.
    """

    def __init__(
        self,
        secret: bytes | None = None,
        witnesses: Witnesses | None = None,
        bounds: Bounds | None = None,
        clock: Callable[[], float] = time.time,
        device: DeviceState | None = None,
    ) -> None:
        self._device = device or DeviceState(secret=secret or os.urandom(SECRET_BYTES))
        self._bounds = bounds or Bounds()
        self._noted = self._done = self._last = 0
        self._reports: dict[int, tuple[OutboxEntry, str]] = {}
        self._lock = threading.RLock()
        self._wallet: Wallet | None = None
        self._shared = SharedLedger(witnesses, self._device, clock)

    def device_state(self) -> DeviceState:
        with self._lock:
            self._merge_shared()
            now = self._device
            now.may_send = self._shared.usable()
            return replace(
                now,
                accounts=deepcopy(now.accounts),
                counts=Counter(now.counts),
                events=Counter(now.events),
            )

    def has_room(self, size_bytes: int) -> bool:  # noqa: ARG002 counted, not measured
        return self._noted - self._done < self._bounds.reports

    def note(self, payload: PendingPayload) -> int:  # noqa: ARG002 the caller holds it, and that is all
        """As the State protocol defines, but in this process's memory."""
        self._noted += 1
        return self._noted

    def enter(
        self,
        entries: Sequence[OutboxEntry],
        lost: Sequence[Dropped],
        upto: int,
        owner: str = "",  # noqa: ARG002 there are no orphans
    ) -> tuple[list[Dropped], DeviceState]:
        """As the State protocol defines. PRIVACY: spending is stored before this returns."""
        with self._lock, self._shared.alone():
            self._merge_shared()
            new_entries = [entry for entry in entries if entry.number > self._done]
            charged = replace(self._device, accounts=deepcopy(self._device.accounts))
            admissions, refused = admit(new_entries, charged)
            if admissions:
                self._shared.store(charged)
                self._device.accounts = charged.accounts
            for entry in admissions:
                self._last += 1
                self._reports[self._last] = entry, ""
            self._device.settle(settled_by(new_entries, self._device))
            self._done = max(self._done, upto)
            for id_ in [id_ for id_, (_, fate) in self._reports.items() if fate][:-HISTORY]:
                del self._reports[id_]
            dropped = [*lost, *refused, *self._overflow()]
            self._device.counts.update(report.reason for report in dropped)
            return dropped, self.device_state()

    def adopt(self, entries: Sequence[OutboxEntry]) -> list[Dropped]:
        with self._lock:
            self._merge_shared()
            if not self._device.is_on:
                return [Dropped(entry.drawn.stream, DISABLED) for entry in entries]
            for entry in entries:
                self._last += 1
                self._reports[self._last] = entry, ""
            return self._overflow()

    def entries(self) -> list[OutboxEntry]:
        """The reports that wait to be sent."""
        with self._lock:
            return list(self._waiting_entries().values())

    def orphans(self) -> Iterator[tuple[str, list[tuple[int, PendingPayload]]]]:
        """Yields nothing: notes end with their process."""
        return iter(())

    def note_run(self, running: Sequence[tuple[Metric, int]]) -> None:
        with self._lock, self._shared.alone():
            self._merge_shared()
            device = replace(self._device, accounts=deepcopy(self._device.accounts))
            for metric, epoch in running:
                device.account(metric).note_run(epoch)
            self._shared.store(device)
            self._device.accounts = device.accounts

    def take(
        self, most: int, max_bytes: int, now: float, exclusions: WaitingEpochs = NOTHING
    ) -> tuple[list[OutboxReport], list[Dropped]]:
        with self._lock, self._shared.alone():
            self._merge_shared()
            late = [id_ for id_, entry in self._waiting_entries().items() if entry.late <= now]
            self.record_results(dict.fromkeys(late, "expired"))
            dropped = [Dropped(self._reports[id_][0].drawn.stream, "expired") for id_ in late]
            entries = self._waiting_entries(exclusions)
            if entries:
                self._shared.confirm(self._device)
            chosen_entries = in_random_order(entries.items())[:most]
            reports = [
                OutboxReport(
                    id=id_,
                    stream=entry.drawn.stream,
                    epoch=entry.drawn.epoch,
                    key_id=entry.key_id,
                    sealed=entry.sealed,
                    person=entry.person,
                    generation=entry.drawn.generation if entry.person else 0,
                )
                for id_, entry in chosen_entries
            ]
            return fitting(reports, max_bytes), dropped

    def record_results(self, fates: Mapping[int, str]) -> int:
        with self._lock:
            for id_, fate in fates.items():
                entry, before = self._reports.get(id_, (None, SENT))
                if entry and (not before or (before == DISABLED and fate == SENT)):
                    self._reports[id_] = entry, fate
                    self._device.counts.update([fate] if fate != SENT else [])
                    self._device.counts.subtract([before] if before else [])
            return len(self._waiting_entries())

    def release(self, ids: Iterable[int]) -> None:
        """Does nothing: no other process could send them."""

    def purged_in_flight(self, now: float) -> int:  # noqa: ARG002 the sender has ended its submission
        """Returns 0: there is no other process."""
        return 0

    def waiting(self, exclusions: WaitingEpochs = NOTHING) -> int:
        with self._lock:
            return len(self._waiting_entries(exclusions))

    def payload_records(self) -> list[PayloadRecord]:
        with self._lock:
            return [
                PayloadRecord(
                    stream=e.drawn.stream,
                    epoch=e.drawn.epoch,
                    payload=e.drawn.payload,
                    made=e.drawn.made,
                    fate=fate,
                )
                for e, fate in self._reports.values()
            ]

    def consent(self, *, on: bool, forget: bool, now: float) -> list[Dropped]:
        with self._lock:
            try:
                with self._shared.alone():
                    self._merge_shared()
                    device = self._state_after_consent(on=on, forget=forget, now=now)
                    self._shared.store(device)
                    if forget:
                        self._shared.forget()
            except StateUnusable:
                if not on:  # the decision holds for this process all the same
                    self._take_over(self._state_after_consent(on=on, forget=forget, now=now))
                raise
            entries = [] if on else self._waiting_entries().values()
            purged = [Dropped(entry.drawn.stream, DISABLED) for entry in entries]
            self._take_over(device)
            return purged

    def prefer(self, epsilon: float, max_local: float) -> None:
        wish: Any = {"preference": epsilon, "max_local": max_local}
        with self._lock:
            try:
                with self._shared.alone():
                    self._merge_shared()
                    consent = replace(self._device.consent, **wish)
                    self._shared.store(replace(self._device, consent=consent))
            except StateUnusable:  # the stricter of both holds for this process
                before = self._device.consent
                self._device.consent = agreed(before, replace(before, **wish), ordered=False)
                raise
            self._device.consent = consent

    def keep_notice(self, notice: bytes, follows: Callable[[bytes], bool]) -> None:
        with self._lock:
            if follows(self._device.notice):
                self._device.notice = notice

    def count(self, counts: Mapping[str, int]) -> None:
        with self._lock:
            self._device.counts.update(counts)

    def count_events(
        self, events: Mapping[Event, int], settled: Iterable[tuple[str, int]], generation: int
    ) -> DeviceState:
        with self._lock:
            if self._device.consent.generation == generation:
                self._device.events.update(events)
                self._device.settle({*settled})
            return self.device_state()

    def wallet(self, change: "Callable[[Wallet], Result]") -> Result:
        from hubbub.client.state.token_wallet import Wallet  # noqa: PLC0415 of bundles with tokens

        with self._lock:
            self._wallet = self._wallet or Wallet()
            return change(self._wallet)

    def after_fork_in_child(self) -> None:
        """Resets a forked child: waiting reports are its parent's to send."""
        self._lock = threading.RLock()
        self._wallet = None
        self._reports = {}
        self._device.events.clear()
        self._noted = self._done = 0

    def unstored(self, payloads: Sequence[tuple[int, PendingPayload]]) -> list[Dropped]:
        """As the State protocol defines; none if the app made this state, and may go on with it."""
        if not self._shared.replaces_folder:
            return []
        reports = [*(entry.drawn for entry in self.entries()), *(report for _, report in payloads)]
        return [Dropped(report.stream, UNSTORED) for report in reports]

    def close(self) -> None:
        """Does nothing."""

    def _state_after_consent(self, *, on: bool, forget: bool, now: float) -> DeviceState:
        device = self._device
        consent = replace(device.consent, generation=turned(device.consent.generation, on=on))
        if not forget:
            return replace(device, consent=consent)
        after = forgotten_at(consent, now)
        return DeviceState(
            secret=os.urandom(SECRET_BYTES),
            consent=after,
            notice=device.notice,
            accounts=forgotten(device.accounts, after.since),
        )

    def _take_over(self, device: DeviceState) -> None:
        """Adopts the state that another process, or the person's decision, has produced."""
        before, self._device = self._device, device
        if device.secret != before.secret:
            self._reports.clear()
            self._wallet = None
        if device.consent.generation != before.consent.generation:
            device.events.clear()
            self.record_results(dict.fromkeys(self._waiting_entries(), DISABLED))

    def _merge_shared(self) -> None:
        device = self._shared.merge(self._device)
        if device:
            self._take_over(device)

    def _waiting_entries(self, exclusions: WaitingEpochs = NOTHING) -> dict[int, OutboxEntry]:
        return {
            id_: entry
            for id_, (entry, fate) in self._reports.items()
            if not fate
            and not any(
                stream == entry.drawn.stream and first <= entry.drawn.epoch <= last
                for stream, first, last in exclusions
            )
        }

    def _overflow(self) -> list[Dropped]:
        entries = self._waiting_entries()
        sizes = [len(entry.sealed) for entry in entries.values()]
        gone = list(entries)[: excess(sizes, self._bounds)]
        for id_ in gone:
            self._reports[id_] = entries[id_], "outbox_full"
        return [Dropped(entries[id_].drawn.stream, "outbox_full") for id_ in gone]


class SharedLedger:
    """Access of a state in memory to its folder's witnesses; None stores nothing anywhere."""

    def __init__(
        self, witnesses: Witnesses | None, device: DeviceState, clock: Callable[[], float]
    ) -> None:
        self._witnesses = witnesses
        self._last_moment = StateMoment(
            state="", commits=0, head="", accounts={}, consent=device.consent
        )
        self._heeded: list[StateMoment] | None = None
        self._clock = clock
        self.replaces_folder = witnesses is not None

    def usable(self) -> bool:
        """Returns whether spending can be stored."""
        return self._witnesses is None or self._witnesses.elsewhere.usable()

    def alone(self) -> contextlib.AbstractContextManager[None]:
        """Keeps other processes from charging at the same time. Raises StateUnusable."""
        return self._witnesses.elsewhere.alone() if self._witnesses else contextlib.nullcontext()

    def merge(self, device: DeviceState) -> DeviceState | None:
        """Returns the state merged with all places; None if nothing has changed."""
        if self._witnesses is None:
            return None
        witnessed_states = self._witnesses.read_all()
        first = self._heeded is None
        if not first and witnessed_states == self._heeded:
            return None
        mine = self._last_moment._replace(accounts=device.accounts, consent=device.consent)
        if not mine.state and witnessed_states:
            mine = mine._replace(state=witnessed_states[-1].state)
        for moment in witnessed_states:
            mine = agree(mine, moment)
        consent, mishaps = mine.consent or device.consent, ["state_lost"] * bool(witnessed_states)
        traces = witnessed_states or self._witnesses.damaged() or self._witnesses.traces()
        if first and traces and not any(moment.consent for moment in witnessed_states):
            consent = unknown(consent, self._clock())
            mishaps.append(CONSENT_UNKNOWN)
            warn(
                "%s cannot be used, and the person's opt-in or opt-out is unknown: reporting is "
                "off until enable()",
                self._witnesses.folder,
            )
        self._heeded, self._last_moment = witnessed_states, mine
        return replace(
            device,
            consent=consent,
            accounts=dict(mine.accounts),
            counts=device.counts + Counter(mishaps if first else []),
        )

    def store(self, device: DeviceState) -> None:
        """Stores a state in the witness. Raises StateUnusable."""
        if self._witnesses is None:
            return
        moment = self._last_moment._replace(
            state=self._last_moment.state or os.urandom(8).hex(),
            commits=self._last_moment.commits + 1,
            head=os.urandom(8).hex(),
            accounts=device.accounts,
            consent=device.consent,
        )
        self._witnesses.elsewhere.write(moment)
        self._last_moment = moment

    def confirm(self, device: DeviceState) -> None:
        """Stores it again if the witness was deleted, for example by a cleaning program."""
        if self._witnesses and self._witnesses.elsewhere.read() is None:
            self.store(device)

    def forget(self) -> None:
        """Warns that a folder that cannot be used keeps what it holds."""
        if self._witnesses and (
            self._witnesses.traces()
            or any(witness.read() or witness.is_damaged for witness in self._witnesses.beside)
        ):
            raise StateUnusable(
                f"{self._witnesses.folder}: reporting is off, but this folder cannot be used, so "
                "its content cannot be deleted; delete the folder"
            )
