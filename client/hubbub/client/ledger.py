"""The ledger: what this device has said so far, checked before any coin is drawn.

Memoization-aware: reports of one unchanged value under a permanent response cost together no more
than that response (the bound that RAPPOR's theorem 1 gives), and another value costs anew.
"""

from typing import Any

from hubbub.catalog import Metric
from hubbub.client.outcome import Outcome

__all__ = ["Ledger"]


class Ledger:
    """Counts of reports, per metric: in the newest epoch, and for life by value tag."""

    def __init__(self, entries: dict[str, Any] | None = None) -> None:
        self._entries: dict[str, Any] = entries or {}

    def charge(self, metric: Metric, epoch: int, tag: str) -> Outcome | None:
        """Enter one report, or say why not (and then enter nothing).

        tag: a device-made name of the value if the metric is memoized, "" otherwise.
        """
        entry = self._entries.setdefault(metric.name, {"epoch": epoch, "in_epoch": 0, "tags": {}})
        # An epoch before the newest is refused too: a clock set back earns no second report.
        in_epoch = entry["in_epoch"] if epoch <= entry["epoch"] else 0
        if epoch < entry["epoch"] or in_epoch >= metric.limits.reports_per_epoch:
            return Outcome.ALREADY_REPORTED
        tags = entry["tags"]
        after = {**tags, tag: tags.get(tag, 0) + 1}
        if _spent(metric, after) > metric.limits.lifetime_epsilon:
            return Outcome.OVER_BUDGET
        entry.update(epoch=epoch, in_epoch=in_epoch + 1, tags=after)
        return None

    def spent(self, metric: Metric) -> float:
        """The most that all reports so far can say about this person, in nats."""
        entry = self._entries.get(metric.name)
        return _spent(metric, entry["tags"]) if entry else 0.0

    def entries(self) -> dict[str, Any]:
        """All of it, as JSON-ready data; holds counts and tags, never a value."""
        return self._entries


def _spent(metric: Metric, tags: dict[str, int]) -> float:
    return sum(min(n * metric.report_loss, metric.lifetime_loss) for n in tags.values())
