"""Intake: one shuffled batch in, counted exactly once. Every report ends as one term of the law."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from hubbub.aggregator.fold import fold, honest
from hubbub.aggregator.opener import Opener
from hubbub.aggregator.store import Commit, Outcome, TotalsStore
from hubbub.catalog import (
    EPOCH_SECONDS,
    SEAL_BYTES,
    TAG_BYTES,
    Bundle,
    Metric,
    closing_time,
    epoch_start,
    key_at,
)
from hubbub.errors import BadParameter
from hubbub.serving import Stages, Window

__all__ = ["Intake"]

# The shuffler's clock, and those of devices, may be so far ahead of ours.
_AHEAD_SECONDS: Final = 86_400


@dataclass(frozen=True, slots=True)
class _Part:
    """Of a batch what belongs to one shard: the reports to count, and what became of the others."""

    tags: list[bytes]
    payloads: npt.NDArray[np.uint8]
    duplicates: int
    rejected: Counter[str]


class Intake:
    """Opens, checks, folds and commits batches.

    counts: batches by outcome.
    """

    def __init__(
        self,
        bundle: Bundle,
        opener: Opener,
        store: TotalsStore,
        stages: Stages,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._bundle = bundle
        self._opener = opener
        self._store = store
        self._stages = stages
        self._clock = clock
        self.counts: Counter[str] = Counter()

    async def apply(
        self, window: Window, batch_id: bytes, key_id: int, sealed: Sequence[bytes]
    ) -> Outcome:
        """Count a batch: APPLIED, or ALREADY_APPLIED if an earlier delivery was.

        Raises:
            UnknownMetric: the bundle does not have the stream.
            BadParameter: the epoch has not begun, by our clock; deliver it then.
            StoreUnavailable: at most whole shards changed; deliver it again.
        """
        # Known, and begun, or nothing of it gets into Redis.
        metric = self._bundle.metric(window.stream)
        if epoch_start(window.epoch, metric.epoch) > self._clock() + _AHEAD_SECONDS:
            raise BadParameter(f"epoch {window.epoch} of {window.stream} has not begun")
        with self._stages.of("batch", len(sealed)):
            shards = await self._store.shards(window)
            parts = {
                shard: await self._read(window, key_id, part)
                for shard, part in enumerate(_by_shard(sealed, shards))
                if part
            }
            outcomes = set[Outcome]()
            crowd = sum(len(part.tags) for part in parts.values())
            for shard, part in parts.items():
                found, crowd = await self._commit(window, batch_id, part, shard, crowd)
                outcomes.add(found)
        outcome = Outcome.APPLIED if Outcome.APPLIED in outcomes else Outcome.ALREADY_APPLIED
        self.counts[outcome.value] += 1
        self._stages.batch(len(sealed))
        return outcome

    async def _read(self, window: Window, key_id: int, sealed: Sequence[bytes]) -> _Part:
        """What belongs to one shard, opened and checked."""
        metric = self._bundle.metric(window.stream)
        rejected: Counter[str] = Counter()
        duplicates = 0
        keep: list[int] = []
        payloads = np.zeros((0, metric.randomizer.layout.payload_bytes), dtype=np.uint8)
        if self._clock() >= closing_time(window.epoch, metric.epoch):
            rejected["expired"] = len(sealed)
        elif not self._key_fits(metric, window, key_id):
            rejected["wrong_key"] = len(sealed)
        else:
            right, duplicates = _right_length_once(
                sealed, metric.randomizer.layout.payload_bytes + SEAL_BYTES
            )
            rejected["wrong_length"] = len(sealed) - len(right) - duplicates
            if right:
                payloads, keep = await self._open(
                    metric, window, key_id, [sealed[i] for i in right], rejected
                )
                keep = [right[i] for i in keep]
        return _Part([sealed[i][:TAG_BYTES] for i in keep], payloads, duplicates, rejected)

    async def _commit(
        self, window: Window, batch_id: bytes, part: _Part, shard: int, crowd: int
    ) -> tuple[Outcome, int]:
        """Count one shard's part: all of it ends in that shard's terms of the law.

        crowd: of the batch, as far as known. Answers the outcome, and how large it is after all.
        """
        metric = self._bundle.metric(window.stream)
        tags, payloads, duplicates = part.tags, part.payloads, part.duplicates
        while True:
            with self._stages.of("fold", len(tags)):
                cells = fold(metric.randomizer.layout, payloads)
            commit = Commit(
                batch_id=batch_id,
                tags=tags,
                cells=cells,
                duplicates=duplicates,
                rejected={reason: number for reason, number in part.rejected.items() if number},
                seen_until=closing_time(window.epoch, metric.epoch) + EPOCH_SECONDS[metric.epoch],
                shard=shard,
                crowd=crowd,
                at=int(self._clock()),
            )
            with self._stages.of("commit", len(tags)):
                outcome, seen = await self._store.add(window, commit)
            if outcome is Outcome.ALREADY_APPLIED:
                return outcome, crowd - len(tags)  # how many of them were new is not told again
            if outcome is Outcome.APPLIED:
                return outcome, crowd
            # Counted before, in another batch: fold again without them.
            fresh = [i for i, tag in enumerate(tags) if tag not in seen]
            duplicates += len(tags) - len(fresh)
            crowd -= len(tags) - len(fresh)
            tags = [tags[i] for i in fresh]
            payloads = payloads[fresh]

    def _key_fits(self, metric: Metric, window: Window, key_id: int) -> bool:
        key = key_at(self._bundle.keys, epoch_start(window.epoch, metric.epoch))
        return key is not None and key.id == key_id

    async def _open(
        self,
        metric: Metric,
        window: Window,
        key_id: int,
        sealed: Sequence[bytes],
        rejected: Counter[str],
    ) -> tuple[npt.NDArray[np.uint8], list[int]]:
        """The honest payloads and where in `sealed` they come from; counts the others."""
        with self._stages.of("open", len(sealed)):
            payloads, did_open = await self._opener.open(
                window.stream, window.epoch, key_id, sealed
            )
        good = honest(metric.randomizer.layout, payloads)
        rejected["not_opened"] += int((~did_open).sum())
        rejected["bad_payload"] += int((did_open & ~good).sum())
        keep = np.nonzero(did_open & good)[0]
        return payloads[keep], keep.tolist()


def _by_shard(sealed: Sequence[bytes], shards: int) -> list[list[bytes]]:
    """The reports of each shard, as their tags say: the same at every delivery."""
    parts: list[list[bytes]] = [[] for _ in range(shards)]
    for report in sealed:
        parts[report[0] % shards if report else 0].append(report)
    return parts


def _right_length_once(sealed: Sequence[bytes], length: int) -> tuple[list[int], int]:
    """Where reports of the right length with a tag of their own are, and how many repeat a tag."""
    first: dict[bytes, int] = {}
    right = [i for i, report in enumerate(sealed) if len(report) == length]
    for i in right:
        first.setdefault(sealed[i][:TAG_BYTES], i)
    return list(first.values()), len(right) - len(first)
