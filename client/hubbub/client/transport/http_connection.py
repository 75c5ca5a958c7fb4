"""HTTP to the shuffler, and the meaning of its answers."""

import binascii
import json
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Final

from hubbub.client.transport.contract import (
    FOR_GOOD,
    MAX_HINT_DIGITS,
    GivenUp,
    SealedReport,
    Submitted,
    TryAgain,
    hint_of,
)
from hubbub.client.transport.http_exchange import HttpAnswer, HttpExchange
from hubbub.client.transport.messages import answer_in, request_of

REPORTS_PATH: Final = "/v1/reports"
REPORTS_TYPE: Final = "application/protobuf"

# The names that gRPC uses for the same failures in counters.
_REASONS: Final = {400: "invalid_argument", 429: "resource_exhausted", 503: "unavailable"}
_NEVER: Final = frozenset({400, 413})
_LATER: Final = frozenset({429, 503})


class HttpConnection:
    """Connections to a shuffler at HOST or HOST:PORT, perhaps with the path of a proxy.

    `roots` are authorities as PEM; None for the system's.
    """

    def __init__(self, place: str, roots: str | None, *, insecure: bool) -> None:
        trust = None
        if not insecure:
            from hubbub.errors.tls_authorities import trusting  # noqa: PLC0415 loads TLS

            trust = trusting(roots)
        self._exchange = HttpExchange(place.rstrip("/") + REPORTS_PATH, REPORTS_TYPE, trust)

    def submit(self, reports: Sequence[SealedReport], timeout_seconds: float) -> Submitted:
        return meaning(self._exchange.post(request_of(reports), timeout_seconds), len(reports))

    def close(self) -> None:
        """Ends every call, and closes the connections."""
        self._exchange.close()


def meaning(answer: HttpAnswer, reports: int) -> Submitted:
    """Returns the results in an answer to `reports` reports. Raises TryAgain or GivenUp."""
    if answer.status != HTTPStatus.OK:
        raise not_sent(answer)
    # Another server's 200, for example of a login page, does not accept reports.
    if answer.type != REPORTS_TYPE:
        raise TryAgain("no_shuffler")
    return answer_in(answer.body, reports)


def not_sent(answer: HttpAnswer) -> TryAgain | GivenUp:
    """The error for an answer with another status."""
    reason = _REASONS.get(answer.status, f"http_{answer.status}")
    if answer.status in _NEVER and answer.headers.get(FOR_GOOD[0]) == FOR_GOOD[1]:
        return GivenUp(reason)
    if answer.status not in _LATER:
        return TryAgain(reason)
    try:
        body = json.loads(answer.body)
    except (ValueError, RecursionError):
        body = None
    members: dict[str, Any] = body if isinstance(body, dict) else {}  # whoever sent the document
    milliseconds, text = members.get("retry_after_ms"), members.get("notice")
    try:
        notice = binascii.a2b_base64(text) if isinstance(text, str) else b""
    except ValueError:
        notice = b""
    # A shuffler's delay is in milliseconds; otherwise Retry-After holds.
    if isinstance(milliseconds, int) and 0 <= milliseconds < 10**MAX_HINT_DIGITS:
        return TryAgain(reason, milliseconds / 1000, notice)
    return TryAgain(reason, hint_of(answer.headers.get("retry-after", "")), notice)
