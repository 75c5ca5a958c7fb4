"""How far time has surely come, by the epochs of counted reports: evidence beside our own clocks.

Reports carry the epoch that their device was in, and thousands of devices have a clock each: that
reports of an epoch were counted shows that it has begun.
"""

from collections.abc import Sequence

from hubbub.aggregator.store.contract import TotalsStore
from hubbub.bundles import Bundle
from hubbub.catalog import EPOCH_SECONDS, closing_time, epoch_at, epoch_start


async def begun(bundle: Bundle, store: TotalsStore) -> list[int]:
    """The beginning of each epoch of which reports were counted, ascending; seconds since 1970."""
    counted = await store.counted(bundle.streams)
    return sorted({epoch_start(w.epoch, bundle.asked_in(w.stream).epoch) for w in counted})


def moved_past(starts: Sequence[int], end: int, longest: str) -> bool:
    """Whether epochs that began before `end` take no more, by a collection that went on from there.

    Of the epochs that began afterwards the last did so when those before `end` were closed, and
    they stretch over two of the longest: a clock that was ahead for a while leaves a gap instead.
    longest: the length of the longest epochs that there are.
    """
    after = [start for start in starts if start >= end]
    closed = closing_time(epoch_at(end - 1, longest), longest)
    return bool(after) and after[-1] >= max(closed, after[0] + 2 * EPOCH_SECONDS[longest])
