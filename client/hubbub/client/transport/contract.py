"""The contract of transports: sealed reports out; one result per report and a notice back.

Only a transport depends on its protocol. All transports pass tests/unit/test_transports.py, and so
do those of `hubbub.client.testing`.
"""

from collections.abc import Sequence
from dataclasses import field
from typing import Final, NamedTuple, Protocol

from hubbub.errors import HubbubError
from hubbub.errors.message_words import visible
from hubbub.fields.frozen import frozen

TLS_FAILED: Final = "tls_failed"
"""The reason where no handshake came about; `cause` names the check that failed."""

# Only a shuffler's own marked answer can refuse a report for good. Killed or restarting servers,
# proxies, gateways and login pages may answer with any status (gRPC maps each of HTTP's to one):
# discarding a report after such an answer would lose it.
FOR_GOOD: Final = ("hubbub-refused", "for-good")

_LONGEST_CAUSE: Final = 200
MAX_HINT_DIGITS: Final = 9


@frozen(kw_only=True)
class SealedReport:
    """A report as it is sent; only the aggregator can open it.

    Attributes:
        key_id: identifies the key to which the report is sealed.
        token: the report's token, outside the seal; empty for none.
    """

    stream: str
    epoch: int
    key_id: int
    sealed: bytes = field(repr=False)
    token: bytes = field(default=b"", repr=False)


class Submitted(NamedTuple):
    """The shuffler's answer to a submission.

    Attributes:
        results: one per report, in order: None if accepted, else the reason of the final refusal.
        notice: the operator's newest signed notice; empty for none.
        models: for a submission without reports, the signed state of all models; empty for none.
        time: for such a submission, the shuffler's clock, in seconds since 1970; 0 if it does not
            send any.
    """

    results: Sequence[str | None]
    notice: bytes = b""
    models: bytes = b""
    time: int = 0


class NotSent(HubbubError):
    """The shuffler did not accept a submission.

    Attributes:
        reason: a name for counting.
        cause: the text of the system or TLS, for the log; may be empty.
    """

    def __init__(self, reason: str, cause: str = "") -> None:
        self.reason, self.cause = reason, visible(cause)[:_LONGEST_CAUSE]
        cause_text = f" ({self.cause})" if cause else ""
        super().__init__(f"the shuffler did not take the reports: {reason}{cause_text}")


class TryAgain(NotSent):
    """The same reports may be accepted later; perhaps they have been accepted already.

    Attributes:
        after_seconds: the delay that the server requests, if any.
        notice: the operator's newest signed notice; empty for none.
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
    """The shuffler will never accept this submission."""


def hint_of(text: str) -> int | None:
    """Returns the delay that a server requests, in its header's unit; None for another text."""
    is_valid = text.isascii() and text.isdecimal() and len(text) <= MAX_HINT_DIGITS
    return int(text) if is_valid else None


class Transport(Protocol):
    """Sends sealed reports to the shuffler. Safe between threads.

    A transport with resources that a fork must not copy also has `before_fork`,
    `after_fork_in_parent` and `after_fork_in_child` (decision 0201).
    """

    def submit(self, reports: Sequence[SealedReport], timeout_seconds: float) -> Submitted:
        """Sends reports; returns each report's result and the operator's notice.

        Raises:
            TryAgain: no answer within that time, or not now. Without time nothing is sent.
            GivenUp: all reports are refused for good.
        """

    def close(self) -> None:
        """Ends all calls and closes the connection; the next submit opens another one."""
