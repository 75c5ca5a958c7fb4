"""FakeShuffler: a transport with scripted answers, without a network."""

import threading
from collections.abc import Mapping, Sequence

from hubbub.client.transport.contract import GivenUp, SealedReport, Submitted, TryAgain

Answer = TryAgain | GivenUp | Mapping[int, str] | None
"""What is answered to a submission: which reports are refused, by their place, and why; an error;
or None for no answer, until its time is over or the transport is closed."""


class FakeShuffler:
    """A transport that returns one of the given answers per call, and then accepts every report.

    Attributes:
        submissions: the reports of every call, including calls answered with an error.
        notice: the operator's signed notice, in every answer.
        models: the signed state of models, in answers to submissions without a report.
    """

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.notice = b""
        self.models = b""
        self.submissions: list[tuple[SealedReport, ...]] = []
        self._closed = threading.Event()

    def submit(self, reports: Sequence[SealedReport], timeout_seconds: float) -> Submitted:
        if not timeout_seconds > 0:
            raise TryAgain("deadline_exceeded")
        closed = self._closed
        self.submissions.append(tuple(reports))
        answer = self.answers.pop(0) if self.answers else {}
        if answer is None:
            raise TryAgain("cancelled" if closed.wait(timeout_seconds) else "deadline_exceeded")
        if isinstance(answer, TryAgain | GivenUp):
            raise answer
        results = [answer.get(place) for place in range(len(reports))]
        return Submitted(results, self.notice, b"" if reports else self.models)

    def close(self) -> None:
        """As the Transport protocol defines; ends all waiting calls."""
        closed, self._closed = self._closed, threading.Event()
        closed.set()

    def reports(self) -> list[SealedReport]:
        """Returns all submitted reports, in order."""
        return [report for reports in self.submissions for report in reports]
