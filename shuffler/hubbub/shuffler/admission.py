"""Decides which reports the shuffler accepts, and what senders of the others should do.

It is shared by the gRPC and HTTP servers, which answer in their own protocol. Of a caller it knows
only a network, which goes to the limiter.

Backpressure: refuses reports for a while when there is no room, so that Redis never fills up.

A stream may hold four times what it leaves free to all others, in reports and in memory: so one
that piles up, because the aggregator refuses it or somebody floods it, stops no other. Source: the
dynamic thresholds of shared buffers in packet switches, Choudhury and Hahne 1998.
"""

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from math import inf
from typing import Final

from google.protobuf.unknown_fields import UnknownFieldSet

from hubbub.conservation import Window
from hubbub.errors import StoreFull, StoreUnavailable
from hubbub.runtime.clocks import Clock, Clocks
from hubbub.runtime.rpc.rate_limiter import Limiter
from hubbub.shuffler.group_commit import Intake
from hubbub.shuffler.mixer import Mixer
from hubbub.shuffler.pool import Pool
from hubbub.shuffler.public_files import SignedFiles
from hubbub.shuffler.shards import may_spread
from hubbub.shuffler.stream_table import Stream, StreamTable
from hubbub.shuffler.token_checks import Paid, Redeemer
from hubbub.tokens.token import nonce_of
from hubbub.wire.v1.report_pb2 import SealedReport
from hubbub.wire.v1.services_pb2 import Reason, Refusal, SubmitResponse

_log: Final = logging.getLogger("hubbub.shuffler")

_LOOK_SECONDS: Final = 0.25
# Devices retry after this time, which grows with the time without room.
_FIRST_WAIT_SECONDS: Final = 1.0
_LONGEST_WAIT_SECONDS: Final = 60.0
_TIMES_WHAT_IS_LEFT: Final = 4
# Bytes of Redis for a waiting report, besides its own (docs/operate/size.md).
_REPORT_COST: Final = 71
_REPORT_BYTES: Final = 49


class Backpressure:
    """Checks how full the pool is, several times a second.

    `max_reports` limits the reports in Redis, pooled and in flight; `max_memory` is the usable part
    of Redis' maxmemory, in (0, 1]; `sizes` maps streams to the bytes of a report.
    """

    def __init__(
        self,
        pool: Pool,
        *,
        max_reports: int,
        max_memory: float,
        sizes: Mapping[str, int] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._pool = pool
        self._sizes = sizes or {}
        self._clock = clock or Clock()
        self._held_batches: Counter[str] = Counter()
        self._room_left = inf
        self.max_reports = max_reports
        self._max_memory = max_memory
        self._looks = 0
        self.reports = 0
        self.memory = 0.0

    def use(self, max_reports: int, max_memory: float, sizes: Mapping[str, int]) -> None:
        """Replaces the limits from the next look on."""
        self.max_reports, self._max_memory, self._sizes = max_reports, max_memory, sizes

    @property
    def wait_seconds(self) -> float:
        """How long devices should wait before they send again; 0 if there is room."""
        if not self._looks:
            return 0.0
        return min(_LONGEST_WAIT_SECONDS, _FIRST_WAIT_SECONDS + self._looks * _LOOK_SECONDS / 2)

    def is_crowded(self, stream: str) -> bool:
        """Whether a stream holds so much that more would crowd out others."""
        if not self._held_batches[stream]:
            return False
        free_room = self.max_reports - self.reports
        report_bytes = self._sizes.get(stream, _REPORT_BYTES) + _REPORT_COST
        return (
            self._held_batches[stream] > _TIMES_WHAT_IS_LEFT * free_room
            or self._held_batches[stream] * report_bytes > _TIMES_WHAT_IS_LEFT * self._room_left
        )

    def took(self, stream: str, reports: int) -> None:
        """Counts reports that went into the pool since the last look."""
        self._held_batches[stream] += reports
        self.reports += reports
        self._room_left -= reports * (self._sizes.get(stream, _REPORT_BYTES) + _REPORT_COST)

    def note_full(self) -> None:
        """Notes that Redis itself refused a write for lack of memory."""
        self._looks = max(self._looks, 1)

    async def run(self) -> None:
        """Looks several times a second, until cancelled."""
        while True:
            with suppress(StoreUnavailable):  # then submissions fail by themselves
                await self.look()
            await self._clock.sleep(_LOOK_SECONDS)

    async def look(self) -> None:
        """Checks how full the pool is. Raises StoreUnavailable if Redis cannot be asked."""
        counts = Counter(await self._pool.held_of_streams())
        memory, self._room_left = await self._pool.server.room(self._max_memory)
        self._held_batches, self.reports, self.memory = counts, counts.total(), memory
        if self.reports < self.max_reports and self.memory < self._max_memory:
            if self._looks:
                _log.info("the pool has room again and accepts reports")
            self._looks = 0
            return
        if not self._looks:
            _log.warning(
                "no room: %d reports wait (at most %d), %.0f%% of Redis' memory is used; "
                "devices are asked to retry later",
                self.reports,
                self.max_reports,
                100 * self.memory,
            )
        self._looks += 1


LARGEST_SUBMIT_BYTES: Final = 2 << 20
UNLIMITED: Final = "unlimited"
"""No per-address limit: a relay forwards for many people and limits each itself."""

_MAX_REPORTS: Final = 1000
MAX_SUBMIT_FIELDS: Final = 6 * _MAX_REPORTS
"""Each report, its four fields, and its token."""

# The parts of a report that decide its acceptance: stream, epoch, key id, sealed bytes.
_Header = tuple[str, int, int, int]

# Redis refused a write; Backpressure checks again within this time.
_FULL_SECONDS: Final = 1.0
# A full stream needs time to drain.
_CROWDED_SECONDS: Final = 20.0


class ComeBack(Exception):
    """Not all reports could be accepted now; resend all after `wait_seconds` (None: any time)."""

    def __init__(self, message: str, wait_seconds: float | None) -> None:
        super().__init__(message)
        self.wait_seconds = wait_seconds


class Never(Exception):
    """The submission is malformed; it must not be sent again."""


class Admission:
    """Accepts reports from devices.

    Attributes:
        notice: the operator's signed notice, sent with every answer; empty for none.
        models: the signed state of models, which doors add to answers without reports.
        counts: number of reports by outcome: "taken", or the reason of refusal.
        refusals: number of refused submissions by reason.
    """

    def __init__(
        self,
        table: StreamTable,
        intake: Intake,
        mixer: Mixer,
        *,
        limiter: Limiter,
        pressure: Backpressure,
        clocks: Clocks | None = None,
        redeemer: Redeemer | None = None,
    ) -> None:
        self._table = table
        self._intake = intake
        self._mixer = mixer
        self._limiter = limiter
        self._pressure = pressure
        self._clocks = clocks or Clocks()
        self._redeemer = redeemer
        self.notice = self.models = b""
        self.counts: Counter[str] = Counter()
        self.refusals: Counter[str] = Counter()

    def use(self, table: StreamTable, signed: SignedFiles) -> None:
        """Replaces the stream table and the signed files from now on."""
        self._table, self.notice, self.models = table, signed.notice, signed.models

    @property
    def streams(self) -> Mapping[str, Stream]:
        """The streams whose reports are accepted."""
        return self._table.streams

    def wait_seconds(self, caller: str) -> float:
        """How long a caller must wait before its request is read; 0 to let it in."""
        wait_seconds = self._pressure.wait_seconds
        if wait_seconds:
            self.refusals["no_room"] += 1
            return wait_seconds
        wait_seconds = 0.0 if caller == UNLIMITED else self._limiter.wait_seconds(caller)
        if wait_seconds:
            self.refusals["peer_limit"] += 1
        return wait_seconds

    def spoiled(self, caller: str, size: int) -> None:
        """Charges a caller for an unreadable message, by its size in bytes."""
        self._charge(caller, max(1, size * _MAX_REPORTS // LARGEST_SUBMIT_BYTES))

    async def take(
        self, reports: Sequence[SealedReport], caller: str, tokens: Sequence[bytes] = ()
    ) -> SubmitResponse:
        """Puts acceptable reports into the pool durably, and says which others are refused and why.

        `tokens` has one token for each report, or is empty. Raises ComeBack and Never.
        """
        # A request without a report costs as much as one with one; with too many, as the largest.
        self._charge(caller, min(max(1, len(reports)), _MAX_REPORTS))
        if len(reports) > _MAX_REPORTS:
            raise Never(f"more than {_MAX_REPORTS} reports")
        if tokens and len(tokens) != len(reports):
            raise Never("the numbers of tokens and reports differ")
        admissions, refused, paying = await self._admitted(reports, tokens)
        # Reports without room wait on the devices, which send them again with the same members.
        crowded = [window for window in admissions if self._pressure.is_crowded(window.stream)]
        waiting = [admissions.pop(window) for window in crowded]
        spent_tokens: frozenset[Paid] = frozenset()
        if admissions:
            try:
                streams = self._table.streams
                spreadable = [window for window in admissions if may_spread(streams[window.stream])]
                spent_tokens = await self._intake.add(admissions, spreadable)
            except StoreFull:
                self._pressure.note_full()
                self.refusals["store_full"] += 1
                raise ComeBack("the pool is full; send again later", _FULL_SECONDS) from None
            except StoreUnavailable:
                self.refusals["store_away"] += 1
                raise ComeBack("the pool cannot be reached; send again", None) from None
        for window, sealed in admissions.items():
            self._pressure.took(window.stream, len(sealed))
            self.counts["taken"] += len(sealed)
        self.counts["taken"] -= len(spent_tokens.intersection(paying.values()))
        elsewhere = (place for place, paid in paying.items() if paid in spent_tokens)
        refused += _refusals(elsewhere, Reason.REASON_TOKEN_SPENT)
        for refusal in refused:
            self.counts[Reason.Name(refusal.reason).removeprefix("REASON_").lower()] += 1
        if waiting:
            self.refusals["stream_full"] += 1
            raise ComeBack("one of these metrics has no room; send again later", _CROWDED_SECONDS)
        # PRIVACY: the same answer for every device, whatever it has, so that it marks nobody.
        response = SubmitResponse(refused=refused, notice=self.notice)
        if not reports:
            response.time = int(self._clocks.latest())
        return response

    async def _admitted(
        self, reports: Sequence[SealedReport], tokens: Sequence[bytes]
    ) -> tuple[dict[Window, list[bytes | Paid]], list[Refusal], dict[int, Paid]]:
        """The reports to pool, the refusals for good, and pooled ones with a token, by index."""
        now = self._clocks.earliest(), self._clocks.latest()
        refused: list[Refusal] = []
        free: list[int] = []
        owing: dict[int, Paid] = {}
        # Nearly all reports of a submission differ only in their sealed bytes.
        reasons: dict[_Header, Reason.ValueType | None] = {}
        for index, report in enumerate(reports):
            header = (report.stream, report.epoch, report.key_id, len(report.sealed))
            if header not in reasons:
                reasons[header] = self._refusal(report, *now)
            reason = reasons[header]
            if len(UnknownFieldSet(report)):
                reason = Reason.REASON_UNKNOWN_FIELD  # PRIVACY: it could carry an identifier
            if reason is not None:
                refused.append(Refusal(index=index, reason=reason))
            elif self._table.streams[header[0]].tokens:
                token = tokens[index] if tokens else b""
                nonce = nonce_of(token)
                owing[index] = Paid(nonce, token[len(nonce) :], report.sealed)
            else:
                free.append(index)
        paying: dict[int, Paid] = {}
        if owing and self._redeemer is not None:
            pairs = [(reports[index], token.nonce + token.mark) for index, token in owing.items()]
            paid = await asyncio.to_thread(self._redeemer.are_paid, pairs)
            paying = {n: owing[n] for n, is_paid in zip(owing, paid, strict=True) if is_paid}
        refused += _refusals(owing.keys() - paying.keys(), Reason.REASON_NO_TOKEN)
        # A window that closed meanwhile may have deleted its spent tokens.
        now = self._clocks.earliest(), self._clocks.latest()
        for index in [place for place in paying if self._refusal(reports[place], *now) is not None]:
            del paying[index]
            refused.append(Refusal(index=index, reason=Reason.REASON_EXPIRED))
        admissions: dict[Window, list[bytes | Paid]] = defaultdict(list)
        for index in (*free, *paying):
            report = reports[index]
            admissions[Window(report.stream, report.epoch)].append(paying.get(index, report.sealed))
        return admissions, refused, paying

    def _charge(self, caller: str, cost: int) -> None:
        if caller != UNLIMITED:
            self._limiter.charge(caller, cost)

    def _refusal(
        self, report: SealedReport, earliest: float, latest: float
    ) -> "Reason.ValueType | None":
        reason = self._table.refusal(report, earliest, latest)
        if reason is None and Window(report.stream, report.epoch) in self._mixer.closed:
            return Reason.REASON_EXPIRED
        return reason


def _refusals(places: Iterable[int], reason: "Reason.ValueType") -> list[Refusal]:
    return [Refusal(index=place, reason=reason) for place in sorted(places)]
