"""What a device keeps: its secret, its ledger, what waits to be sent, whether it may report.

Two keepers: `FolderState` for real devices; `MemoryState` for simulated ones, for tests, and for a
device where nothing can be kept.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from hubbub.catalog import Metric
from hubbub.client.cover import FILLER, NOTHING, Held
from hubbub.client.ledger import charge
from hubbub.client.outcome import Outcome
from hubbub.client.state.device_state import DeviceState, Event
from hubbub.client.state.wallet import Result, Wallet

HISTORY = 1000
"""How many payloads are remembered once they have met their fate."""

SENT = "sent"
"""The fate of a report that the shuffler took; any other fate is a reason to have given it up."""

DISABLED = "disabled"
"""The fate of what was drawn or waited when reporting was switched off."""

STOPPED = "stopped"
"""The fate of what waited when the operator stopped its metric."""

REPLACED = "replaced"
"""The fate of an example that awaited the state of its model as another one came."""

OPERATOR_CHANGED = "operator_changed"
"""The fate of what waited, or was drawn, when another operator's bundle was taken."""

DAMAGED = "damaged"
"""The fate of a report whose row no longer holds what was kept there."""

PUT_BACK = "put_back"
"""The fate of what waited in a state that was put back: it may have been sent or purged since."""


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxEntry:
    """A payload that enters the outbox, sealed once, so that every resend has the same bytes.

    Args:
        number: of the payload in its process.
    """

    number: int
    drawn: PendingPayload
    metric: Metric
    key_id: int
    sealed: bytes = field(repr=False)
    late: float
    """When the shuffler takes it no more, in seconds since 1970."""
    beside: tuple["OutboxEntry", ...] = ()
    """Fillers that leave if it does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxReport:
    """A sealed report in the outbox."""

    id: int
    stream: str
    epoch: int
    key_id: int
    sealed: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Dropped:
    """A payload that was given up: of which stream, and why."""

    stream: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PayloadRecord:
    """A payload in the device's history. `fate` is "" while it waits, "sent", or the reason."""

    stream: str
    epoch: int
    payload: bytes = field(repr=False)
    made: float
    fate: str


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much may wait to be sent; the oldest goes first."""

    reports: int = 10_000
    size_bytes: int = 16 << 20


class State(Protocol):
    """Where a device keeps what must outlive a call. Any method but `note` may raise StateUnusable.

    Safe between threads; FolderState also between processes.
    """

    def device_state(self) -> DeviceState:
        """Where the device stands now; the caller's own copy."""
        ...

    def has_room(self, size_bytes: int) -> bool:
        """Whether another payload of this size can be noted. No I/O."""
        ...

    def note(self, drawn: PendingPayload) -> int:
        """Hold a payload in memory that outlives this process: its number. Numbers grow. No I/O."""
        ...

    def enter(
        self, entries: Sequence[OutboxEntry], lost: Sequence[Dropped], upto: int, owner: str = ""
    ) -> tuple[list[Dropped], DeviceState]:
        """Charge and keep payloads, whole or not at all.

        Those that were entered before, by a call that raised all the same, are not entered again.

        Args:
            entries: payloads to charge and to keep.
            lost: payloads that cannot be sealed; counted.
            upto: the number of the last payload noted that is settled by this.
            owner: whose notes they are, if an orphan's.

        Returns:
            The payloads that were given up, `lost` first; and where the device stands then.
        """
        ...

    def orphans(self) -> Iterator[tuple[str, list[tuple[int, PendingPayload]]]]:
        """What processes that ended had noted and not entered, by owner. Enter it at once."""
        ...

    def ran(self, running: Sequence[tuple[Metric, int]]) -> None:
        """Keep that the device runs in these epochs, for the default to be said of them."""
        ...

    def take(
        self, most: int, max_bytes: int, now: float, exclusions: Held = NOTHING
    ) -> tuple[list[OutboxReport], list[Dropped]]:
        """Reports to send now, in random order, ours alone for a while; and those now too late.

        None of what is held.
        What was spent is written down, in two places, before this returns.
        """
        ...

    def record_results(self, fates: Mapping[int, str]) -> int:
        """Reports that were taken have met their fate: how many wait now."""
        ...

    def release(self, ids: Iterable[int]) -> None:
        """Reports that were taken could not be sent: others may try."""
        ...

    def purged_in_flight(self, now: float) -> int:
        """How many reports that were purged are on their way at this moment, in any process."""
        ...

    def waiting(self, exclusions: Held = NOTHING) -> int:
        """How many reports wait to be sent, but for what is held."""
        ...

    def payload_records(self) -> list[PayloadRecord]:
        """The payloads of the past that are still remembered, oldest first."""
        ...

    def consent(self, *, on: bool, forget: bool, now: float) -> list[Dropped]:
        """Switch reporting. Off purges what waits, and says what; `forget` all but sums, too."""
        ...

    def prefer(self, epsilon: float, max_local: float) -> None:
        """Keep the most epsilon that the person allows a report, as promised and locally."""
        ...

    def heed(self, notice: bytes, follows: Callable[[bytes], bool]) -> None:
        """Keep an operator's notice, if it `follows` the one that is kept; b"" if none is."""
        ...

    def count(self, counts: Mapping[str, int]) -> None:
        """Keep what local mode counted, by `own_count`; of too many values the most frequent."""
        ...

    def count_events(
        self, events: Mapping[Event, int], settled: Iterable[tuple[str, int]], generation: int
    ) -> DeviceState:
        """Add events that report() noted under this consent, and forget those that are settled.

        Args:
            events: how often each happened.
            settled: metrics and epochs whose events are needed no more.
            generation: number of the consent; under another one the events are lost.

        Returns:
            Where the device stands then, over all processes of the app.
        """
        ...

    def wallet(self, change: Callable[[Wallet], Result]) -> Result:
        """What a change of the device's tokens says, once it is kept; alone among processes."""
        ...

    def close(self) -> None:
        """Let go; what waits stays for the next start."""
        ...


def admit(
    entries: Sequence[OutboxEntry], standing: DeviceState
) -> tuple[list[OutboxEntry], list[Dropped]]:
    """Charge each entry to the ledger: those that may leave, and those given up.

    PRIVACY: the last word. report() has asked a copy of the ledger; between then and now another
    process of the app may have reported, or the person may have said no.
    """
    admissions, dropped = [], []
    for entry in entries:
        drawn = entry.drawn
        if drawn.generation != standing.generation:
            dropped.append(Dropped(drawn.stream, DISABLED))
            continue
        standing.account(entry.metric)
        if drawn.payload == FILLER:
            fits = standing.account(entry.metric).fill(drawn.epoch)
            refusal = None if fits else Outcome.ALREADY_REPORTED
        else:
            refusal = charge(standing.accounts, entry.metric, drawn.epoch, drawn.tag)
        if refusal is None:
            admissions += [entry, *entry.beside]
        else:
            dropped.append(Dropped(drawn.stream, refusal.value))
    return admissions, dropped


def settled_by(entries: Sequence[OutboxEntry], standing: DeviceState) -> set[tuple[str, int]]:
    """The metrics and epochs whose events these payloads report, or are refused to report."""
    entered = {(entry.metric.base_name, entry.drawn.epoch) for entry in entries}
    return entered & {(metric, epoch) for metric, epoch, _ in standing.events}


def excess(sizes: Sequence[int], bounds: Bounds) -> int:
    """How many of the oldest reports, with these sizes in bytes, are too many."""
    over = max(0, len(sizes) - bounds.reports)
    size = sum(sizes[over:])
    while size > bounds.size_bytes:
        size -= sizes[over]
        over += 1
    return over


def fitting(reports: list[OutboxReport], max_bytes: int) -> list[OutboxReport]:
    """As many of the first as fit one message; a long one goes alone."""
    size = 0
    for number, report in enumerate(reports):
        size += len(report.sealed)
        if size > max_bytes:
            return reports[: max(1, number)]
    return reports
