"""The way to the shuffler: sealed reports out, refusals back."""

from collections.abc import Sequence
from typing import Protocol

from hubbub.client.state.contract import OutboxReport
from hubbub.errors import HubbubError

__all__ = ["NotSent", "Transport"]


class NotSent(HubbubError):
    """A submission failed. `retry`: whether the same bytes may do better later.

    reason: a name for counting. after_seconds: how long the server asks to wait, if it says.
    """

    def __init__(self, reason: str, *, retry: bool, after_seconds: float | None = None) -> None:
        super().__init__(f"the shuffler did not take the reports: {reason}")
        self.reason = reason
        self.retry = retry
        self.after_seconds = after_seconds


class Transport(Protocol):
    """Carries sealed reports to the shuffler."""

    def submit(self, reports: Sequence[OutboxReport], timeout_seconds: float) -> dict[int, str]:
        """The refused ones by their place, with the reason. Every other report was taken.

        Raises NotSent unless the shuffler answered.
        """
        ...

    def pause(self) -> None:
        """Let go of the connection, and of what is on it at this moment; the next submit dials."""
        ...
