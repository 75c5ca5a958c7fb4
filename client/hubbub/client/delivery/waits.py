"""How long a device waits before it sends, and before it tries again.

What stops a million devices at once, or starts them, must not bring them back as one: an hour that
begins, an outage. So all waits are random, and those that can be are long. After a few tries within
seconds a device comes back at a moment drawn evenly from two hours: those that an outage has left
waiting then add no more calls to those of any other hour than these are (benchmarks/fleet.py).
"""

import secrets
from typing import Final

from hubbub.bundles import Bundle
from hubbub.catalog import grace_seconds

_FIRST_SECONDS: Final = 0.2
_LONGEST_SECONDS: Final = 300.0
_TRIES_AT_ONCE: Final = 5  # some seconds in all: a connection that broke, a service that restarts
_APART_SECONDS: Final = 7200.0
_LEFT_OVER_SECONDS: Final = 30.0
_AFTER: Final = 4  # of a day's grace six hours: what is sent after midnight adds a fifth an hour
_random: Final = secrets.SystemRandom()


class Waits:
    """The pauses of a client that runs as long as its app.

    Args:
        hold_seconds: a report waits a random time up to this before it is sent, so that the moment
            of sending does not reveal the moment of reporting. This time, and the pause between
            retries, are cut so that a report of the shortest epoch is not late.
    """

    def __init__(self, bundle: Bundle, hold_seconds: float) -> None:
        grace = min((grace_seconds(metric.epoch) for metric in bundle.metrics.values()), default=0)
        # In development nobody is hidden, and its own number is what a developer waits for.
        self._hold = 0.0 if bundle.development else min(hold_seconds, grace * 2 / 3)
        self._apart = min(_APART_SECONDS, grace / 2)
        self._after = 0.0 if bundle.development else grace / _AFTER

    def before_sending(self, *, left_over: bool) -> float:
        """Before what has been entered is sent; left_over: by a run before, where it waited."""
        longest = min(self._hold, _LEFT_OVER_SECONDS) if left_over else self._hold
        return _random.uniform(0, longest)

    def after_an_epoch(self) -> float:
        """Before what waited for the end of its epoch is sent, by every device of the app.

        They all know the moment when it ends: hours lie between them, where there are hours.
        """
        return _random.uniform(0, self._after)

    def before_trying_again(self, failures: int, min_seconds: float) -> float:
        """After so many failures in a row; min_seconds: what `soon` or the shuffler say."""
        if failures <= _TRIES_AT_ONCE:
            return min_seconds
        return max(min_seconds, _random.uniform(0, self._apart))


def soon(failures: int) -> float:
    """Exponential backoff with full jitter, for who has the caller waiting."""
    return _random.uniform(0, longest_soon(failures))


def longest_soon(failures: int) -> float:
    """What `soon` is at most."""
    return min(_LONGEST_SECONDS, _FIRST_SECONDS * 2.0 ** min(failures, 20))
