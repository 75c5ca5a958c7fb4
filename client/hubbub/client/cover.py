"""Cover: which epochs a device has yet to say the default of, and which reports wait for theirs.

A report of a metric with a default leaves when its epoch is over, whatever it says, so neither that
there is one nor its moment tells whether there was something to say. That a device ran in an epoch
is kept in its ledger, as an epoch with no reports.

Where a catalog says `cover`, a filler goes to every stream that has no report of such an epoch.
"""

from collections.abc import Sequence
from typing import Final

from hubbub.bundles import Bundle
from hubbub.catalog import Metric, closing_time, epoch_at, epoch_start
from hubbub.client.ledger import Account
from hubbub.client.outcome import Outcome

Held = Sequence[tuple[str, int, int]]
"""Streams with the first and the last epoch whose reports wait."""

NOTHING: Final[Held] = ()
LAST_EPOCH: Final = (1 << 32) - 1
"""None is later: epochs are 32 bits on the wire."""

FILLER: Final = b""
"""The payload of a filler as the device keeps it: none. Sealed it is as long as a report's."""

# Bundle and notices reveal the other reasons; for those no device sends a filler.
_OF_THE_DEVICE: Final = frozenset(
    {
        Outcome.ALREADY_REPORTED,
        Outcome.DECLINED,
        Outcome.NOT_ITS_DAY,
        Outcome.NOT_SAMPLED,
        Outcome.OVER_BUDGET,
    }
)


def is_filled_up(outcome: Outcome) -> bool:
    """Whether a filler goes where a report was refused: the reason is this device's own."""
    return outcome in _OF_THE_DEVICE


def fills(bundle: Bundle) -> bool:
    """Whether fillers go; none in development, where nobody hides."""
    return bundle.cover and not bundle.development


def beside(bundle: Bundle, stream: str) -> list[Metric]:
    """What else is filled up where a report, or a filler, goes to a stream: the other tiers."""
    if not fills(bundle):
        return []
    tiers = bundle.metrics[bundle.streams[stream].base_name].own_streams
    # Of a list that was asked before an update of the app: there the bundle's own are not known.
    return [bundle.streams[name] for name in tiers if name != stream] if stream in tiers else []


def held_back(bundle: Bundle, now: float) -> list[tuple[str, int, int]]:
    """What waits now; nothing in development, where one's own number is waited for."""
    if bundle.development:
        return []
    return [
        (name, epoch_at(now, stream.epoch), LAST_EPOCH)
        for name, stream in bundle.streams.items()
        if _leaves_later(stream)
    ]


def seconds_to_next(bundle: Bundle, now: float) -> float | None:
    """Until the next epoch with something to say of it is over; None if there are none such."""
    lengths = {metric.epoch for metric in bundle.metrics.values() if _leaves_later(metric)}
    ends = [epoch_start(epoch_at(now, length) + 1, length) for length in lengths]
    return max(0.0, min(ends) - now) if ends else None


def _leaves_later(metric: Metric) -> bool:
    """Whether its reports leave once their epoch is over."""
    return metric.default is not None or metric.value_kind.COUNTS


def unanswered(account: Account, metric: Metric, now: float) -> list[int]:
    """The epochs in which the device ran, that are over and not too late, without a report."""
    running = epoch_at(now, metric.epoch)
    return [
        epoch
        for epoch, reports in sorted(account.epochs.items())
        if not reports
        and epoch not in account.filled
        and epoch < running
        and now < closing_time(epoch, metric.epoch)
    ]
