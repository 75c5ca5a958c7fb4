"""Cover: which epochs a device has yet to say the default of, and which reports wait for theirs.

A report of a metric with a default leaves when its epoch is over, whatever it says, so neither that
there is one nor its moment tells whether there was something to say. That a device ran in an epoch
is kept in its ledger, as an epoch with no reports.
"""

from collections.abc import Mapping
from typing import Final

from hubbub.catalog import Bundle, Metric, closing_time, epoch_at, epoch_start
from hubbub.client.ledger import Account

__all__ = ["NOTHING", "Held", "held_back", "seconds_to_next", "unanswered"]

Held = Mapping[str, int]
"""Streams with the epoch from which on their reports wait."""

NOTHING: Final[Held] = {}


def held_back(bundle: Bundle, now: float) -> dict[str, int]:
    """What waits now; nothing in development, where one's own number is waited for."""
    if bundle.development:
        return {}
    return {
        name: epoch_at(now, stream.epoch)
        for name, stream in bundle.streams.items()
        if stream.default is not None
    }


def seconds_to_next(bundle: Bundle, now: float) -> float | None:
    """Until the next epoch with something to say of it is over; None if there are none such."""
    lengths = {metric.epoch for metric in bundle.metrics.values() if metric.default is not None}
    ends = [epoch_start(epoch_at(now, length) + 1, length) for length in lengths]
    return max(0.0, min(ends) - now) if ends else None


def unanswered(account: Account, metric: Metric, now: float) -> list[int]:
    """The epochs in which the device ran, that are over and not too late, without a report."""
    running = epoch_at(now, metric.epoch)
    return [
        epoch
        for epoch, reports in sorted(account.epochs.items())
        if not reports and epoch < running and now < closing_time(epoch, metric.epoch)
    ]
