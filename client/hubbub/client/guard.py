"""The guard: what report() says when it is used wrongly, or fails. An app is never hurt by it."""

from collections import Counter
from typing import Any

from hubbub.client.delivery.sender import Sender
from hubbub.client.outcome import Outcome
from hubbub.client.reporter import Reporter
from hubbub.errors import HubbubError, UnknownMetric, ValueOutOfDomain

__all__ = ["Guard"]


class Guard:
    """Asks a reporter, and counts what it says.

    strict: raise; otherwise a mistake is an outcome, logged the first time, without the value.
    """

    def __init__(self, reporter: Reporter, sender: Sender, *, strict: bool) -> None:
        self._reporter = reporter
        self._sender = sender
        self._strict = strict
        self.outcomes: Counter[Outcome] = Counter()

    def report(self, metric: str, value: Any) -> Outcome:
        """As `Client.report()`."""
        outcome = self._asked(metric, value)
        self.outcomes[outcome] += 1
        return outcome

    def _asked(self, metric: str, value: Any) -> Outcome:
        try:
            return self._reporter.report(metric, value)
        except UnknownMetric as error:
            return self._mistake(error, Outcome.UNKNOWN_METRIC)
        except ValueOutOfDomain as error:
            return self._mistake(error, Outcome.NOT_A_VALUE)
        except Exception as error:
            if self._strict:
                raise
            # Its text may hold the value: only its type is told.
            self._sender.say_once("failed", "report() failed: %s", type(error).__name__)
            return Outcome.FAILED

    def _mistake(self, error: HubbubError, outcome: Outcome) -> Outcome:
        if self._strict:
            raise error
        self._sender.say_once(str(error), "report() is used wrongly: %s", error)
        return outcome
