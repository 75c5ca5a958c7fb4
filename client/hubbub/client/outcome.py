"""What became of one call of report()."""

from enum import Enum

__all__ = ["Outcome"]


class Outcome(Enum):
    """What became of one call of `report()`. Only QUEUED spends any of the privacy budget."""

    QUEUED = "queued"
    """Randomized and waiting to be sent."""
    ALREADY_REPORTED = "already_reported"
    """The metric's reports for this epoch are out."""
    OVER_BUDGET = "over_budget"
    """The metric's lifetime epsilon would be passed."""
    OVERFLOWED = "overflowed"
    """The outbox is full: the network has been away for long."""
    EXPIRED = "expired"
    """The metric's last day is over."""
    NO_KEY = "no_key"
    """The bundle has no key for this epoch: it is older than its keys, or the clock is wrong."""
    CLOSED = "closed"
    """The client was closed before."""
