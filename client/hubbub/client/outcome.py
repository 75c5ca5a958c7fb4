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
    DECLINED = "declined"
    """The person allows less epsilon than any tier of the metric has."""
    NOT_SAMPLED = "not_sampled"
    """The metric asks a random part of all devices, and this one is not among them this epoch."""
    NOT_ITS_DAY = "not_its_day"
    """The metric asks each device on one day of a period, and today is not this one's."""
    STOPPED = "stopped"
    """The operator has stopped the metric for a while, for all devices, by a signed notice."""
    DISABLED = "disabled"
    """Reporting is switched off, by the person or by HUBBUB_DISABLED."""
    OVERFLOWED = "overflowed"
    """More reports in a moment than are kept in memory."""
    NO_STATE = "no_state"
    """Nowhere on this device can it be written down what was spent, so nothing may leave."""
    EXPIRED = "expired"
    """The metric's last day is over."""
    NO_KEY = "no_key"
    """The bundle has no key for this epoch: it is older than its keys, or the clock is wrong."""
    CLOSED = "closed"
    """The client was closed before, or never started."""
    UNKNOWN_METRIC = "unknown_metric"
    """A programmer's mistake: the bundle has no such metric. Strict clients raise instead."""
    NOT_A_VALUE = "not_a_value"
    """A programmer's mistake: the metric has no such value. Strict clients raise instead."""
    FAILED = "failed"
    """A fault of hubbub's own: nothing was reported. Strict clients raise instead."""
