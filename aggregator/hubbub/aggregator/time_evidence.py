"""Evidence of time, besides our own clocks, from the epochs of counted reports.

Reports carry their device's epoch, and thousands of devices each have a clock: counted reports of
an epoch show that it has begun.
"""

from collections.abc import Sequence

from hubbub.aggregator.store.contract import TotalsStore
from hubbub.bundles import Bundle
from hubbub.catalog import EPOCH_SECONDS, closing_time, epoch_at, epoch_start


async def begun(bundle: Bundle, store: TotalsStore) -> list[int]:
    """Beginnings of the epochs with counted reports, ascending, in seconds since 1970."""
    counted = await store.counted(bundle.streams)
    return sorted({epoch_start(w.epoch, bundle.asked_in(w.stream).epoch) for w in counted})


def moved_past(starts: Sequence[int], end: int, longest: str) -> bool:
    """Whether counted reports show that epochs that began before `end` are closed.

    The last of the later epochs must have begun when those before `end` were closed, and they must
    span two of the longest: a clock that was temporarily ahead leaves a gap instead. `longest` is
    the length of the longest epochs.
    """
    after = [start for start in starts if start >= end]
    closed = closing_time(epoch_at(end - 1, longest), longest)
    return bool(after) and after[-1] >= max(closed, after[0] + 2 * EPOCH_SECONDS[longest])
