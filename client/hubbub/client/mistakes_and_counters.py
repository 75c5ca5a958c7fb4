"""Counts what a client does and discards, and its app's mistakes, and logs each kind once.

A strict client raises the mistakes of its app.

PRIVACY: what is logged shows no value, and no text that may be one.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from hubbub.bundles import Bundle
from hubbub.catalog.values.value_kind import BOOLEANS
from hubbub.client.lazy_log import warn
from hubbub.client.outcome import Outcome
from hubbub.client.settings import check_arguments
from hubbub.client.state.contract import Dropped
from hubbub.errors import (
    BadParameter,
    HubbubError,
    NotListed,
    StateUnusable,
    UnknownMetric,
    ValueOutOfDomain,
)
from hubbub.errors.message_words import did_you_mean, first_names
from hubbub.fields.rules import metric_name_of

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


Read = TypeVar("Read")
_TIMEOUT_SECONDS: Final = 10.0  # of flush() and close()


class Mistakes:
    """What a client does with the mistakes of its app."""

    def __init__(self, bundle: Bundle, diagnostics: Diagnostics, *, strict: bool) -> None:
        self._bundle, self._diagnostics, self.strict = bundle, diagnostics, strict

    def outcome_of(self, error: HubbubError, outcome: Outcome, metric: str = "") -> Outcome:
        """Raises a mistake if strict; else logs it once per metric, and returns the outcome."""
        if self.strict:
            self._diagnostics.outcomes[outcome] += 1  # report() counts what it returns
            raise error
        subject = f"{outcome.value} {metric}"
        self._diagnostics.warn_once(subject, "report() is used wrongly: %s", error)
        return outcome

    def outcome_of_failure(self, error: Exception, metric: str, value: Any) -> Outcome:
        """Returns the outcome of a report that raised; a strict client raises the error again."""
        if isinstance(error, UnknownMetric):
            if not self._bundle.streams:  # of a disabled client, whose bundle could not be read
                return Outcome.DISABLED
            # PRIVACY: a text that is no metric's name may be a value.
            names = [*self._bundle.metrics, *self._bundle.models] if self.strict else []
            hinted_error = UnknownMetric(f"{error}{did_you_mean(metric, names)}")
            return self.outcome_of(hinted_error, Outcome.UNKNOWN_METRIC)
        if isinstance(error, ValueOutOfDomain):
            definition = self._bundle.metric(metric)
            if self.strict and isinstance(error, NotListed):
                self._diagnostics.outcomes[Outcome.NOT_A_VALUE] += 1
                # PRIVACY: the hint is near the value; it is raised to a developer, never logged.
                hint = value_hint(definition.values or (), value)
                raise NotListed(f"{error}: {hint}") from None
            return self.outcome_of(error, Outcome.NOT_A_VALUE, definition.name)
        if self.strict:
            raise error
        # The text of the error may contain the value: only its type is logged.
        self._diagnostics.warn_once("failed", "report() failed: %s", type(error).__name__)
        return Outcome.FAILED

    def refuse_missing(self, fields: Sequence[str]) -> None:
        """Raises BadParameter, or warns once if not strict, if breakdowns need public fields."""
        if not fields:
            return
        message = f"metrics are split by {', '.join(fields)}, which the app does not pass; "
        message += f'give Client public = {{"{fields[0]}": ...}}'
        if self.strict:
            raise BadParameter(message)
        self._diagnostics.warn_once("public", "%s", message)

    def seconds(self, timeout: float) -> float:
        """Returns the timeout of a call; of none that is a number raises BadParameter or warns."""
        try:
            check_arguments(timeout=timeout)
        except BadParameter as error:
            if self.strict:
                raise
            self._diagnostics.warn_once("timeout", "%s", error)
            return _TIMEOUT_SECONDS
        return timeout


def value_hint(values: Sequence[str], value: Any) -> str:
    """Returns the first accepted values, and the one most similar to `value`: never for a log."""
    if sorted(values) == [*BOOLEANS]:
        return 'True and False, also as texts "true" and "false"'
    return f"{first_names(values)}{did_you_mean(value, values)}"


def unreadable(subject: str, error: Exception) -> ValueOutOfDomain:
    """Returns the error for an object of the app that raised `error` when it was read."""
    return ValueOutOfDomain(f"{subject}: cannot be read: {type(error).__name__}")


def find_named(kind: str, choices: Mapping[str, object], find: Callable[[], Read]) -> Read:
    """Returns the metric or model that is found; or UnknownMetric, which does not show its name."""
    try:
        return find()
    except Exception:  # noqa: BLE001 an object of the app's in its place may raise anything
        names = ", ".join(sorted(choices)) or "none"
        raise UnknownMetric(
            f"the bundle has no {kind} of this name; it has {names}; pass the name first, "
            "then the value"
        ) from None
