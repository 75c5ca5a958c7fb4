"""Decides when reports may leave the pool, how many, and in which order, without input or output.

A stream whose privacy promise rests on a whole epoch leaves as one crowd: all that the window
holds when it is over, or, if rolling, whenever the minimum has gathered. Others use a pool mix.

In a pool mix, while a window is open, a batch leaves a reserve behind, so that a flood of known
reports never isolates an unknown one in a single flush. When it is over, a pool of at least the
minimum goes out whole; a smaller one is withheld. With a reserve of at least the minimum batch
(the default), that happens only to windows that never held the minimum.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from typing import Final

# A batch is one message; above this size it has fewer reports (never fewer than the minimum).
_BATCH_BYTES: Final = 8 << 20

# Bytes of a report's place in a random order: two in a batch are equal with probability 2^-100.
_KEY_BYTES: Final = 16

_random: Final = secrets.SystemRandom()


@dataclass(frozen=True, slots=True)
class Take:
    """Take `number` reports out of a pool, if it still holds at least `needs`.

    It is taken `at_once` if no delay is drawn.
    """

    number: int
    needs: int
    at_once: bool = False


@dataclass(frozen=True, slots=True)
class CrowdTake:
    """Set all reports of a pool apart, if it still holds at least `needs`.

    `cut_reports` is the mean number of reports in a message, as chance decides; `dummies` go along
    and do not count to `needs`; `hidden` is the expected number of further dummies among the
    reports, where their number is drawn; such a crowd leaves once.
    """

    needs: int
    cut_reports: int
    dummies: int = 0
    hidden: int = 0


class Policy:
    """How the pools of all streams are mixed.

    Args:
        reserve: reports that stay in an open pool, in minimum batches.
        spread: largest random addition to it, in minimum batches, drawn anew after each batch, so
            that an observer who counts the reports cannot tell when the next batch leaves.
        delay_seconds: mean of the exponential delay of a pool that could give a batch.
        max_batch: the most reports in a batch, but never below a stream's minimum.
    """

    def __init__(
        self,
        *,
        reserve: float = 1.0,
        spread: float = 0.0,
        delay_seconds: float = 0.0,
        max_batch: int = 5000,
    ) -> None:
        self._reserve = reserve
        self._spread = spread
        self._delay = delay_seconds
        self._max_batch = max_batch
        self._drawn: dict[object, float] = {}

    def next_take(
        self, pool: object, pooled: int, min_batch: int, fitting: int, *, is_over: bool
    ) -> Take | None:
        """What to take from a pool of `pooled` reports; None to wait or, if over, to withhold.

        `fitting` reports fit in a message.
        """
        random_share = self._drawn.setdefault(pool, _random.random())
        reserve = 0 if is_over else round(min_batch * (self._reserve + self._spread * random_share))
        if pooled < min_batch + reserve:
            return None
        largest = max(min_batch, min(self._max_batch, fitting))
        number = min(largest, pooled - reserve)
        if is_over and 0 < pooled - number < min_batch:
            # The rest alone would be too small: spread it over the batches, or add it to one.
            number = pooled if pooled < 2 * min_batch else pooled // 2
        # A single report filled the pool of the largest batch; at such a rate no delay could
        # keep up.
        return Take(number, number + reserve, at_once=is_over or number >= largest)

    def cut_reports(self, fitting: int) -> int:
        """Mean number of reports in a cut of a crowd: three quarters of what fits in a message."""
        return max(1, 3 * min(self._max_batch, fitting) // 4)

    def on_batch_sent(self, pool: object) -> None:
        """Draws a new reserve after a batch has left the pool."""
        self._drawn.pop(pool, None)

    def should_send(self, elapsed_seconds: float) -> bool:
        """Draws whether a ready pool gives a batch, `elapsed_seconds` after the last look."""
        return not self._delay or _random.random() < 1 - exp(-elapsed_seconds / self._delay)


def fitting(sealed_bytes: int) -> int:
    """How many reports of this length fit in a message."""
    return _BATCH_BYTES // sealed_bytes


def shuffled(reports: Sequence[bytes]) -> list[bytes]:
    """The reports in a fresh random order, from the system's randomness.

    They are sorted by random keys, which costs a third of a draw for every place.
    """
    size = _KEY_BYTES * len(reports)
    random_bytes = secrets.token_bytes(size)
    places = [random_bytes[start : start + _KEY_BYTES] for start in range(0, size, _KEY_BYTES)]
    keyed = dict(zip(places, reports, strict=True))
    if len(keyed) < len(reports):  # equal ones would lose a report; they are practically impossible
        return shuffled(reports)
    return [keyed[key] for key in sorted(keyed)]
