"""Epochs: time cut into hours, days or weeks of UTC, numbered from 1970-01-01."""

from typing import Final

__all__ = ["EPOCH_SECONDS", "closing_time", "epoch_at", "epoch_start", "grace_seconds"]

EPOCH_SECONDS: Final = {"hour": 3600, "day": 86_400, "week": 604_800}


def epoch_at(seconds: float, length: str) -> int:
    """The epoch that holds this moment, in seconds since 1970-01-01 UTC."""
    return int(seconds // EPOCH_SECONDS[length])


def epoch_start(epoch: int, length: str) -> int:
    """The epoch's first second since 1970-01-01 UTC."""
    return epoch * EPOCH_SECONDS[length]


def grace_seconds(length: str) -> int:
    """How long after an epoch's end its reports are still taken: as long as the epoch itself.

    Devices are offline for a while; a report later than this is refused as expired.
    """
    return EPOCH_SECONDS[length]


def closing_time(epoch: int, length: str) -> int:
    """When nothing of an epoch is counted any more, in seconds since 1970-01-01 UTC.

    The shuffler sends an epoch's last batches when its grace is over; then they travel, and wait
    out an outage. So the aggregator takes them for one more grace.
    """
    return epoch_start(epoch + 1, length) + 2 * grace_seconds(length)
