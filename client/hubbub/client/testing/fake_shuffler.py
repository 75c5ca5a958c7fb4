"""FakeShuffler: a transport that answers as told, without a network."""

from collections.abc import Sequence

from hubbub.client.state.contract import OutboxReport
from hubbub.client.transport.contract import NotSent

__all__ = ["FakeShuffler"]


class FakeShuffler:
    """Gives the answers it was made with, one a call; then takes everything.

    An answer is a NotSent to raise, or which reports are refused, by place, and why.
    submissions: what was submitted, call by call, also where the answer was an error.
    """

    def __init__(self, *answers: NotSent | dict[int, str]) -> None:
        self.answers = list(answers)
        self.submissions: list[tuple[OutboxReport, ...]] = []

    def submit(self, reports: Sequence[OutboxReport], timeout_seconds: float) -> dict[int, str]:
        """As the Transport protocol says."""
        if not timeout_seconds > 0:
            raise NotSent("deadline_exceeded", retry=True)
        self.submissions.append(tuple(reports))
        answer = self.answers.pop(0) if self.answers else {}
        if isinstance(answer, NotSent):
            raise answer
        return answer

    def pause(self) -> None:
        """There is no connection to let go of."""

    def reports(self) -> list[OutboxReport]:
        """Every report submitted, in order."""
        return [report for reports in self.submissions for report in reports]
