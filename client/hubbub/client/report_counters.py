"""A client's counters, and its warnings in the app's log, each at most once."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from hubbub.client.lazy_log import warn
from hubbub.client.state.contract import Dropped
from hubbub.errors import StateUnusable
from hubbub.fields.rules import metric_name_of

if TYPE_CHECKING:
    from hubbub.client.outcome import Outcome


OnDrop = Callable[[str, str], None]
"""Told of every payload that is given up: the metric, and why."""


class Diagnostics:
    """Counters of one process: all discarded payloads are counted, and no value is stored.

    Attributes:
        outcomes: number of report() calls by outcome.
        dropped: number of discarded payloads, by reason.
        clipped: number of values that learn() clipped, by model.
    """

    def __init__(self, on_drop: OnDrop | None = None) -> None:
        self._on_drop = on_drop
        self._warned: set[str] = set()
        self.outcomes: Counter[Outcome] = Counter()
        self.dropped: Counter[str] = Counter()
        self.clipped: Counter[str] = Counter()

    def drop(self, dropped: Iterable[Dropped]) -> None:
        """Counts discarded payloads, and calls the app's `on_drop`."""
        for report in dropped:
            self.dropped[report.reason] += 1
            self.warn_once(report.reason, "reports are dropped, and counted: %s", report.reason)
            if self._on_drop:
                try:
                    self._on_drop(metric_name_of(report.stream), report.reason)
                except Exception as error:  # noqa: BLE001 the app's own fault must not end our thread
                    self.warn_once("on_drop", "on_drop failed: %s", type(error).__name__)

    def warn_once(self, subject: str, message: str, *arguments: object) -> None:
        """Logs a warning the first time for a subject; subjects are stored, so use few."""
        if subject not in self._warned:
            self._warned.add(subject)
            warn(message, *arguments)

    def warn_of_fault(self, error: Exception) -> None:
        """Logs why nothing was sent; of an error that is no fault of the state only the type."""
        if isinstance(error, StateUnusable):
            self.warn_once("state", "reports wait in memory: %s", error)
        else:
            self.warn_once("fault", "sending failed: %s", type(error).__name__)

    def after_fork_in_child(self) -> None:
        """Resets the counters of dropped payloads, which the parent counts."""
        self.dropped = Counter()
