"""Intake: counts each shuffled batch exactly once. Every report ends as one term of the law."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from hubbub.aggregator.ingest.development_reports import Arrivals
from hubbub.aggregator.ingest.fold import fold, well_formed
from hubbub.aggregator.ingest.opener import Opener
from hubbub.aggregator.ingest.window_report_limit import Room
from hubbub.aggregator.store.contract import Commit, Outcome, TotalsStore
from hubbub.authoring.crowds.accountant import expected_dummies
from hubbub.bundles import Bundle, key_at
from hubbub.catalog import EPOCH_SECONDS, Metric, closing_time, epoch_start
from hubbub.conservation import Window
from hubbub.epochs import epoch_date
from hubbub.errors import BadParameter, ServiceUnavailable, StoreFull
from hubbub.runtime.clocks import Clocks
from hubbub.runtime.monitoring.stages_and_traces import Stages
from hubbub.sealing.hpke import TAG_BYTES, filler_info, seal_info

# Clocks of shuffler and devices may be this far ahead of ours.
_AHEAD_SECONDS: Final = 86_400
# A full window refuses reports for this long without opening any, which would slow the others.
_FULL_SECONDS: Final = 2.0
# Reasons for which all reports of a part are refused, dummies included.
_OF_ALL: Final = frozenset({"expired", "wrong_key"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """One shard's part of a batch: the reports to count, and the fates of the others."""

    tags: list[bytes]
    payloads: npt.NDArray[np.uint8]
    duplicates: int
    rejected: Counter[str]
    fillers: int = 0


class Intake:
    """Opens, checks, folds and commits batches.

    Args:
        arrivals: in development, collects counted reports.

    Attributes:
        changed: metrics with newly counted reports.
        counts: batches by outcome, and waiting ones by reason.
        served: time of each key's last opened report, in seconds of `clocks.elapsed()`.
    """

    def __init__(
        self,
        bundle: Bundle,
        opener: Opener,
        store: TotalsStore,
        stages: Stages,
        *,
        clocks: Clocks | None = None,
        room: Room | None = None,
        arrivals: Arrivals | None = None,
    ) -> None:
        self._bundle = bundle
        self._opener = opener
        self._store = store
        self._stages = stages
        self._clocks = clocks or Clocks()
        self._room = room or Room(store)
        self._arrivals = arrivals
        self._full: dict[Window, float] = {}
        self.counts: Counter[str] = Counter()
        self.served: dict[int, float] = {}
        self.changed: set[str] = set()

    def use(self, bundle: Bundle) -> None:
        """Counts by this bundle, from the next batch on."""
        self._bundle = bundle

    async def apply(
        self,
        window: Window,
        batch_id: bytes,
        key_id: int,
        sealed: Sequence[bytes],
        dummies: int = 0,
    ) -> Outcome:
        """Counts a batch: APPLIED, or ALREADY_APPLIED if an earlier delivery was.

        `dummies` is the batch's share of its crowd's dummies.

        Raises:
            UnknownMetric: the bundle does not have the stream.
            BadParameter: the epoch has not begun by our clock, so deliver it then; or there are
                dummies although the bundle has none.
            ServiceUnavailable: the clocks differ on whether the window is over; deliver it later.
            StoreFull: the window is full; at most whole shards changed.
            StoreUnavailable: at most whole shards changed; deliver it again.
        """
        # Only known streams and begun epochs reach Redis. One bundle applies to the whole batch.
        bundle = self._bundle
        metric = bundle.metric_of(window.stream)
        if epoch_start(window.epoch, metric.epoch) > self._clocks.latest() + _AHEAD_SECONDS:
            raise BadParameter(f"{_date(window, metric)} of {window.stream} has not begun")
        _check_dummies(metric, dummies, len(sealed))
        self._refuse_full(window)
        with self._stages.of("batch", len(sealed)):
            is_over = await self._is_over(window, metric)
            shards = await self._store.shards(window)
            # By their tags: the same at every delivery.
            by_shard: list[list[bytes]] = [[] for _ in range(shards)]
            for report in sealed:
                by_shard[report[0] % shards if report else 0].append(report)
            shares = _shares(dummies, [len(part) for part in by_shard])
            parts = {
                shard: await self._read(bundle, window, key_id, part, is_over=is_over)
                for shard, part in enumerate(by_shard)
                if part
            }
            outcomes = set[Outcome]()
            batch_reports = sum(len(part.tags) for part in parts.values())
            for shard, part in parts.items():
                max_reports = await self._room.of_window(window)
                result, batch_reports = await self._commit(
                    window,
                    batch_id,
                    part,
                    metric,
                    shard=shard,
                    batch_reports=batch_reports,
                    max_reports=None if max_reports is None else max_reports // shards,
                    dummies=0 if part.rejected.keys() & _OF_ALL else shares[shard],
                )
                outcomes.add(result)
        outcome = Outcome.APPLIED if Outcome.APPLIED in outcomes else Outcome.ALREADY_APPLIED
        self.counts[outcome.value] += 1
        self.changed.add(metric.base_name)
        self._stages.batch(len(sealed))
        return outcome

    async def _is_over(self, window: Window, metric: Metric) -> bool:
        """Whether a window accepts no more; must be certain, since such reports are lost."""
        closes = closing_time(window.epoch, metric.epoch)
        if self._clocks.latest() < closes:
            return False
        if self._clocks.earliest() >= closes and (
            self._clocks.settled
            or any(t >= closes for t in await counted_starts(self._bundle, self._store))
        ):
            return True
        self.counts["clocks_differ"] += 1
        raise ServiceUnavailable(
            f"{_date(window, metric)} of {window.stream} may not be over: the clocks are "
            f"{self._clocks.apart_seconds:.0f} s apart, or were watched for less than "
            "an hour; the batch waits (docs/operate/clocks.md)"
        )

    def _refuse_full(self, window: Window) -> None:
        """Refuses a window that was full a moment ago."""
        until = self._full.get(window)
        if until is None:
            return
        if self._clocks.elapsed() < until:
            self.counts["window_full"] += 1
            raise StoreFull(
                f"{window.name} holds the largest number of reports of one window; other "
                "windows continue: raise the maxmemory of Redis, or --max-window "
                "(docs/operate/redis-full.md)"
            )
        del self._full[window]

    async def _read(
        self,
        bundle: Bundle,
        window: Window,
        key_id: int,
        sealed: Sequence[bytes],
        *,
        is_over: bool,
    ) -> _Part:
        """Opens and checks one shard's part."""
        metric = bundle.metric_of(window.stream)
        rejected: Counter[str] = Counter()
        key = key_at(bundle.keys, epoch_start(window.epoch, metric.epoch))
        right: list[bytes] = []
        if is_over or key is None or key.id != key_id:
            rejected["expired" if is_over else "wrong_key"] = len(sealed)
        else:
            right = [report for report in sealed if len(report) == metric.sealed_bytes]
            rejected["wrong_length"] = len(sealed) - len(right)
        once = list(dict.fromkeys(right))
        if not once:
            none = np.zeros((0, metric.randomizer.layout.payload_bytes), dtype=np.uint8)
            return _Part(tags=[], payloads=none, duplicates=0, rejected=rejected)
        payloads, opened, fillers = await self._open_reports(metric, window, key_id, once, rejected)
        # Compared after opening: an altered copy has the same tag, but cannot displace the report.
        first: dict[bytes, int] = {}
        for place, index in enumerate(opened):
            first.setdefault(once[index][:TAG_BYTES], place)
        duplicates = len(right) - len(once) + len(opened) - len(first)
        return _Part(
            tags=list(first),
            payloads=payloads[list(first.values())],
            duplicates=duplicates,
            rejected=rejected,
            fillers=fillers,
        )

    async def _commit(
        self,
        window: Window,
        batch_id: bytes,
        part: _Part,
        metric: Metric,
        *,
        shard: int,
        batch_reports: int,
        max_reports: int | None,
        dummies: int,
    ) -> tuple[Outcome, int]:
        """Counts one shard's part; returns the final number of counted reports, too."""
        tags, payloads = part.tags, part.payloads
        duplicates, rejected = part.duplicates, +part.rejected
        while True:
            with self._stages.of("fold", len(tags)):
                cells = fold(metric.randomizer.layout, payloads)
            commit = Commit(
                batch_id=batch_id,
                tags=tags,
                cells=cells,
                duplicates=duplicates,
                rejected=rejected,
                seen_until=closing_time(window.epoch, metric.epoch),
                shard=shard,
                batch_reports=batch_reports,
                at=int(self._clocks.now()),
                max_reports=max_reports,
                dummies=dummies,
                fillers=part.fillers,
            )
            with self._stages.of("commit", len(tags)):
                outcome, old_tags = await self._store.add(window, commit)
            if outcome is Outcome.ALREADY_APPLIED:
                # A repeated answer does not contain how many were new.
                return outcome, batch_reports - len(tags)
            if outcome is Outcome.APPLIED:
                if self._arrivals:
                    counted = map(np.ndarray.tobytes, payloads)
                    self._arrivals.add(window, counted, self._clocks.now())
                return outcome, batch_reports
            if outcome is Outcome.FULL:
                self._full[window] = self._clocks.elapsed() + _FULL_SECONDS
                self._refuse_full(window)
            # Counted before in another batch, or unknown: fold again without them.
            if outcome is Outcome.FORGOTTEN:
                rejected["forgotten"] += len(tags)
                new_places: list[int] = []
                dummies = 0
            else:
                new_places = [i for i, tag in enumerate(tags) if tag not in old_tags]
                duplicates += len(tags) - len(new_places)
            batch_reports -= len(tags) - len(new_places)
            tags, payloads = [tags[i] for i in new_places], payloads[new_places]

    async def _open_reports(
        self,
        metric: Metric,
        window: Window,
        key_id: int,
        sealed: Sequence[bytes],
        rejected: Counter[str],
    ) -> tuple[npt.NDArray[np.uint8], list[int], int]:
        """Honest payloads, their places in `sealed`, number of fillers; extends `rejected`."""
        with self._stages.of("open", len(sealed)):
            info = seal_info(*window)
            payloads, did_open = await self._opener.open(info, key_id, sealed, metric.kem)
            # Even if the catalog has no `cover` any more, since devices use old bundles for long.
            closed = [] if metric.development else np.nonzero(~did_open)[0].tolist()
            fillers = 0
            if closed:
                _, did_open_as_filler = await self._opener.open(
                    filler_info(*window), key_id, [sealed[place] for place in closed], metric.kem
                )
                fillers = int(did_open_as_filler.sum())
        good = well_formed(metric.randomizer.layout, payloads)
        rejected["not_opened"] += int((~did_open).sum()) - fillers
        rejected["bad_payload"] += int((did_open & ~good).sum())
        keep = np.nonzero(did_open & good)[0]
        if len(keep):
            self.served[key_id] = self._clocks.elapsed()
        return payloads[keep], keep.tolist(), fillers


def _check_dummies(metric: Metric, dummies: int, reports: int) -> None:
    """Raises BadParameter if the batch claims more dummies than possible."""
    expected = expected_dummies(metric)
    if dummies > (reports if expected else 0):
        raise BadParameter(
            f"{dummies} of {reports} reports of {metric.name} are declared as dummies, but "
            f"a crowd of its metric has {expected}: give the shuffler and the aggregator "
            "the stream table and the bundle of one build"
        )


def _shares(dummies: int, sizes: Sequence[int]) -> list[int]:
    """Each shard's number of the batch's dummies, by its size: the same at every delivery."""
    edges = [0, *accumulate(sizes)]
    dummies_up_to = [dummies * edge // max(edges[-1], 1) for edge in edges]
    return [after - before for before, after in pairwise(dummies_up_to)]


def _date(window: Window, metric: Metric) -> str:
    return f"the epoch of {epoch_date(window.epoch, EPOCH_SECONDS[metric.epoch])}"


async def counted_starts(bundle: Bundle, store: TotalsStore) -> list[int]:
    """Beginnings of the epochs with counted reports, ascending, in seconds since 1970.

    Reports carry their device's epoch, and thousands of devices each have a clock: counted reports
    of an epoch show that it has begun.
    """
    counted = await store.counted(bundle.streams)
    return sorted({epoch_start(w.epoch, bundle.metric_of(w.stream).epoch) for w in counted})
