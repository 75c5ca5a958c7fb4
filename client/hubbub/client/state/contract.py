"""The contract of a device's state: its secret, its ledger, its outbox and its consent.

Two implementations: `FolderState` for real devices; `MemoryState` for simulated ones, for tests,
and for a device that can store nothing.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar

from hubbub.catalog import Metric
from hubbub.client.epochs_to_cover import FILLER, NOTHING, WaitingEpochs
from hubbub.client.ledger import charge
from hubbub.client.outcome import Outcome
from hubbub.client.state.device_state import DeviceState, Event
from hubbub.fields.frozen import frozen

if TYPE_CHECKING:
    from hubbub.client.state.token_wallet import Wallet

Result = TypeVar("Result")
"""What a change of a wallet returns."""
Entry = TypeVar("Entry")
# Never do two entries get the same bytes.
_SHUFFLE_BYTES: Final = 16

HISTORY = 1000
"""How many payloads are remembered once they have met their fate."""

# Fates of payloads; any other fate is a reason to have given the payload up.
SENT = "sent"  # the shuffler took the report
DISABLED = "disabled"  # it was drawn or waited when reporting was switched off
STOPPED = "stopped"  # it waited when the operator stopped its metric
REPLACED = "replaced"  # another example came while it awaited the state of its model
OPERATOR_CHANGED = "operator_changed"  # another operator's bundle was taken
UNSTORED = "unstored"  # it was in memory alone when the client was closed
DAMAGED = "damaged"  # its row contains what hubbub cannot have written
PUT_BACK = "put_back"  # its state was put back: it may have been sent or purged since


@frozen(kw_only=True)
class PendingPayload:
    """A payload that report() drew and that is not in the outbox yet.

    Args:
        generation: number of the consent under which it was drawn.
        made: time of the draw, in seconds since 1970; it stays on the device.
    """

    stream: str
    epoch: int
    tag: str
    payload: bytes = field(repr=False)
    generation: int
    made: float


@frozen(kw_only=True)
class OutboxEntry:
    """A payload that enters the outbox, sealed once, so that every resend has the same bytes."""

    number: int
    drawn: PendingPayload
    metric: Metric
    key_id: int
    sealed: bytes = field(repr=False)
    late: float
    """When the shuffler takes it no more, in seconds since 1970."""
    beside: tuple["OutboxEntry", ...] = ()
    """Fillers that leave if it does."""
    person: bytes = b""
    """Of which person for whom the app acts, as a keyed hash; empty for the app's own device."""


@frozen(kw_only=True)
class OutboxReport:
    """A sealed report in the outbox."""

    id: int
    stream: str
    epoch: int
    key_id: int
    sealed: bytes = field(repr=False)
    person: bytes = field(default=b"", repr=False)
    """Of which person for whom the app acts; empty for the app's own device."""
    generation: int = 0
    """Number of that person's consent under which it was drawn."""


class Dropped(NamedTuple):
    """A discarded payload: its stream and the reason."""

    stream: str
    reason: str


@frozen(kw_only=True)
class PayloadRecord:
    """A payload in the device's history. `fate` is "" while it waits, "sent", or the reason."""

    stream: str
    epoch: int
    payload: bytes = field(repr=False)
    made: float
    fate: str


class Bounds(NamedTuple):
    """How much may wait to be sent; above that the oldest is discarded."""

    reports: int = 10_000
    size_bytes: int = 16 << 20


class State(Protocol):
    """Storage of all data that must outlive a call. All methods but `note` may raise StateUnusable.

    Safe between threads; FolderState also between processes.
    """

    def device_state(self) -> DeviceState:
        """Returns the device's current state; the caller's own copy."""

    def has_room(self, size_bytes: int) -> bool:
        """Returns whether another payload of this size can be noted. No I/O."""

    def note(self, drawn: PendingPayload) -> int:
        """Holds a payload in memory that outlives this process; returns its number. No I/O."""

    def enter(
        self, entries: Sequence[OutboxEntry], lost: Sequence[Dropped], upto: int, owner: str = ""
    ) -> tuple[list[Dropped], DeviceState]:
        """Charges and stores payloads, all or none; a repeated call does not enter them again.

        `lost` are payloads that cannot be sealed, `upto` is the number of the last noted payload
        that this call settles, `owner` the ended process whose notes they are, if any. Returns the
        discarded payloads, `lost` first, and the device's state afterwards.
        """

    def adopt(self, entries: Sequence[OutboxEntry]) -> list[Dropped]:
        """Puts reports of persons, whose own ledgers are charged, into the outbox.

        Returns those that were given up because too many wait, or the app itself is off.
        """

    def orphans(self) -> Iterator[tuple[str, list[tuple[int, PendingPayload]]]]:
        """Yields what ended processes noted and did not enter, by owner. Enter it at once."""

    def note_run(self, running: Sequence[tuple[Metric, int]]) -> None:
        """Records that the device runs in these epochs, so that their default can be reported."""

    def take(
        self, most: int, max_bytes: int, now: float, exclusions: WaitingEpochs = NOTHING
    ) -> tuple[list[OutboxReport], list[Dropped]]:
        """Returns reports to send now, in random order, claimed for a while; and reports too late.

        Leaves out `exclusions`. What was spent is stored in two places before this returns.
        """

    def record_results(self, fates: Mapping[int, str]) -> int:
        """Records the fates of claimed reports; returns the number that waits now."""

    def release(self, ids: Iterable[int]) -> None:
        """Releases claimed reports that could not be sent, so that other processes may try."""

    def purged_in_flight(self, now: float) -> int:
        """Returns the number of purged reports that a process may be sending now."""

    def waiting(self, exclusions: WaitingEpochs = NOTHING) -> int:
        """Returns the number of reports that wait, without those held back."""

    def payload_records(self) -> list[PayloadRecord]:
        """Returns the records of past payloads that are still stored, oldest first."""

    def consent(self, *, on: bool, forget: bool, now: float) -> list[Dropped]:
        """Switches reporting. Off purges and returns what waits; `forget` deletes all but sums."""

    def prefer(self, epsilon: float, max_local: float) -> None:
        """Stores the largest epsilon that the person allows a report: by its promise, and local."""

    def keep_notice(self, notice: bytes, follows: Callable[[bytes], bool]) -> None:
        """Stores an operator's notice if it `follows` the stored one (b"" for none)."""

    def count(self, counts: Mapping[str, int]) -> None:
        """Adds counts of local mode, by `own_count`; of too many values the most frequent stay."""

    def count_events(
        self, events: Mapping[Event, int], settled: Iterable[tuple[str, int]], generation: int
    ) -> DeviceState:
        """Adds numbers of events of this consent, and deletes those of settled metrics and epochs.

        Under another consent the events are discarded. Returns the device's state afterwards, over
        all processes of the app.
        """

    def wallet(self, change: "Callable[[Wallet], Result]") -> Result:
        """Applies a change to the device's tokens, alone among processes; returns its result."""

    def unstored(self, drawn: Sequence[tuple[int, PendingPayload]]) -> list[Dropped]:
        """Returns what ends with this process: waiting reports, and `drawn` before their entry."""

    def close(self) -> None:
        """Closes the storage; waiting reports stay for the next start."""


def admit(
    entries: Sequence[OutboxEntry], device: DeviceState
) -> tuple[list[OutboxEntry], list[Dropped]]:
    """Charges each entry to the ledger; returns those that may leave, and those discarded.

    PRIVACY: this is the final check: since report() checked a copy of the ledger, another process
    may have reported, or the person may have opted out.
    """
    admissions, dropped = [], []
    for entry in entries:
        drawn = entry.drawn
        if drawn.generation != device.consent.generation:
            dropped.append(Dropped(drawn.stream, DISABLED))
            continue
        device.account(entry.metric)
        if drawn.payload == FILLER:
            fits = device.account(entry.metric).fill(drawn.epoch)
            refusal = None if fits else Outcome.ALREADY_REPORTED
        else:
            refusal = charge(device.accounts, entry.metric, drawn.epoch, drawn.tag)
        if refusal is None:
            admissions += [entry, *entry.beside]
        else:
            dropped.append(Dropped(drawn.stream, refusal.value))
    return admissions, dropped


def settled_by(entries: Sequence[OutboxEntry], device: DeviceState) -> set[tuple[str, int]]:
    """Returns the metrics and epochs whose events these payloads report, or cannot report."""
    entered = {(entry.metric.base_name, entry.drawn.epoch) for entry in entries}
    return entered & {(metric, epoch) for metric, epoch, _ in device.events}


def excess(sizes: Sequence[int], bounds: Bounds) -> int:
    """Returns how many of the oldest reports, with these sizes in bytes, are too many."""
    surplus = max(0, len(sizes) - bounds.reports)
    size = sum(sizes[surplus:])
    while size > bounds.size_bytes:
        size -= sizes[surplus]
        surplus += 1
    return surplus


def in_random_order(entries: Iterable[Entry]) -> list[Entry]:
    """Returns the entries, shuffled by the system's coins; `secrets` would load OpenSSL."""
    return sorted(entries, key=lambda _: os.urandom(_SHUFFLE_BYTES))


def fitting(reports: list[OutboxReport], max_bytes: int) -> list[OutboxReport]:
    """Returns the first reports that fit one message; a longer report is sent alone."""
    size = 0
    for number, report in enumerate(reports):
        size += len(report.sealed)
        if size > max_bytes:
            return reports[: max(1, number)]
    return reports
