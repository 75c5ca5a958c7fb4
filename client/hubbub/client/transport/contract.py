"""The way to the shuffler, in plain types: sealed reports out, one result each and a notice back.

How reports travel is a transport's own business; nobody else knows of any protocol. All transports
pass tests/unit/test_transports.py, and so do those of `hubbub.client.testing`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from hubbub.errors import HubbubError
from hubbub.errors.printable import visible

TLS_FAILED: Final = "tls_failed"
"""The reason where no handshake came about; `cause` names the check that failed."""

_LONGEST_CAUSE: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedReport:
    """A report as it travels: only the aggregator opens it.

    Attributes:
        key_id: of the key that it is sealed to.
        token: that goes with it, outside the seal; empty for none.
    """

    stream: str
    epoch: int
    key_id: int
    sealed: bytes = field(repr=False)
    token: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Submitted:
    """What a shuffler answered to reports that it looked at.

    Attributes:
        results: of each report, in their order: None for taken, else why it is refused for good.
        notice: the operator's newest, signed; empty for none.
        models: to a submission without a report, the state of all models, signed; empty for none.
        time: to such a submission, the shuffler's clock, in seconds since 1970; 0 where it does
            not say.
    """

    results: Sequence[str | None]
    notice: bytes = b""
    models: bytes = b""
    time: int = 0


class NotSent(HubbubError):
    """A submission was not taken.

    Attributes:
        reason: a name for counting.
        cause: what the system or TLS says of it, for the log; empty for nothing.
    """

    def __init__(self, reason: str, cause: str = "") -> None:
        self.reason, self.cause = reason, visible(cause)[:_LONGEST_CAUSE]
        more = f" ({self.cause})" if cause else ""
        super().__init__(f"the shuffler did not take the reports: {reason}{more}")


class TryAgain(NotSent):
    """The same reports may be taken later; whether they were is not known.

    Attributes:
        after_seconds: how long the server asks to wait, if it says.
        notice: the operator's newest, signed; empty for none.
    """

    def __init__(
        self,
        reason: str,
        after_seconds: float | None = None,
        notice: bytes = b"",
        cause: str = "",
    ) -> None:
        super().__init__(reason, cause)
        self.after_seconds = after_seconds
        self.notice = notice


class GivenUp(NotSent):
    """The shuffler itself says that it will never take this submission, as it is."""


class Transport(Protocol):
    """Carries sealed reports to the shuffler. Safe between threads.

    One that holds what a fork must not copy has `before_fork`, `after_fork_in_parent` and
    `after_fork_in_child` too (decision 0201); the others need none of them.
    """

    def submit(self, reports: Sequence[SealedReport], timeout_seconds: float) -> Submitted:
        """Each report's result, and what the operator lets everybody know.

        Raises:
            TryAgain: not within that time, or not now. Without any time nothing is sent.
            GivenUp: never, all of them together.
        """
        ...

    def close(self) -> None:
        """Let go of the connection, and end what is on it; another submit opens one again."""
        ...
