"""Delays before a device sends, and before it retries.

An event that stops or starts a million devices at once, such as an outage or the start of an hour,
must not make them return at once. So all delays are random, and long where possible. After a few
tries within seconds, a device retries at a uniform moment of the next two hours: after an outage,
the waiting devices then add no more calls than those of any hour (benchmarks/fleet.py).
"""

import os
from typing import Final

from hubbub.bundles import Bundle
from hubbub.catalog import GRACE_SECONDS

_FIRST_SECONDS: Final = 0.2
_LONGEST_SECONDS: Final = 300.0
_TRIES_AT_ONCE: Final = 5  # some seconds in all, for a broken connection or a restarting service
_APART_SECONDS: Final = 7200.0
_LEFT_OVER_SECONDS: Final = 30.0
_AFTER: Final = 4  # a quarter of the grace: 6 hours for a day add a fifth to the hourly load
_DRAWN_BYTES: Final = 6  # fewer than a float holds


class Waits:
    """The pauses of a client that runs as long as its app.

    Args:
        hold_seconds: a report waits a random time up to this before it is sent, so that the moment
            of sending does not reveal the moment of reporting. This time, and the pause between
            retries, are cut so that a report of the shortest epoch is not late.
    """

    def __init__(self, bundle: Bundle, hold_seconds: float) -> None:
        grace = min((GRACE_SECONDS[metric.epoch] for metric in bundle.metrics.values()), default=0)
        # Development hides nobody, and the developer waits for the number.
        self._hold = 0.0 if bundle.development else min(hold_seconds, grace * 2 / 3)
        self._apart = min(_APART_SECONDS, grace / 2)
        self._after = 0.0 if bundle.development else grace / _AFTER

    def before_sending(self, *, left_over: bool) -> float:
        """Returns the delay before entered reports are sent; `left_over`: from a past run."""
        longest = min(self._hold, _LEFT_OVER_SECONDS) if left_over else self._hold
        return uniform(0, longest)

    def after_an_epoch(self) -> float:
        """Returns the delay after an epoch's end; it is long, as all devices know that moment."""
        return uniform(0, self._after)

    def before_trying_again(self, failures: int, min_seconds: float) -> float:
        """Returns the delay after consecutive failures, at least `min_seconds`."""
        if failures <= _TRIES_AT_ONCE:
            return min_seconds
        return max(min_seconds, uniform(0, self._apart))


def soon(failures: int) -> float:
    """Returns a delay by exponential backoff with full jitter, while the caller waits."""
    return uniform(0, longest_soon(failures))


def longest_soon(failures: int) -> float:
    """Returns the largest delay of `soon`."""
    return min(_LONGEST_SECONDS, _FIRST_SECONDS * 2.0 ** min(failures, 20))


def uniform(low: float, high: float) -> float:
    """Returns a number between both, by the system's coins; `secrets` would load OpenSSL."""
    return low + (high - low) * int.from_bytes(os.urandom(_DRAWN_BYTES)) / 256**_DRAWN_BYTES
