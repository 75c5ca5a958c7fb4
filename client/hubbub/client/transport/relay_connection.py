"""Reports through a relay (OHTTP): the relay sees senders and no content, the shuffler the reverse.

PRIVACY: the relay sees the rounded length of a request; neither the shuffler's answer nor the
number of reports.
"""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Final

from hubbub.client.transport.contract import SealedReport, Submitted, TryAgain
from hubbub.client.transport.http_connection import REPORTS_PATH, REPORTS_TYPE, meaning, not_sent
from hubbub.client.transport.http_exchange import HttpAnswer, HttpExchange
from hubbub.client.transport.messages import request_of
from hubbub.errors import BadPayload
from hubbub.errors.tls_authorities import trusting
from hubbub.oblivious.binary_http import Request, read_response, write_request
from hubbub.oblivious.encapsulation import encapsulate
from hubbub.oblivious.key_config import REQUEST_TYPE, RESPONSE_TYPE

_STEP_BYTES: Final = 1024


class RelayConnection:
    """Connections to the relay at a place, which forwards to the gateway with this public key.

    `shuffler` is HOST:PORT inside the encrypted request; `roots` are trusted beside the system's.
    """

    def __init__(self, place: str, gateway: bytes, shuffler: str, roots: str | None) -> None:
        self._exchange = HttpExchange(place, REQUEST_TYPE, trusting(roots, system=True))
        self._gateway, self._authority = gateway, shuffler.encode()

    def submit(self, reports: Sequence[SealedReport], timeout_seconds: float) -> Submitted:
        request = Request(
            method=b"POST",
            scheme=b"https",
            authority=self._authority,
            path=REPORTS_PATH.encode(),
            headers=((b"content-type", REPORTS_TYPE.encode()),),
            content=request_of(reports),
        )
        message, opened = encapsulate(self._gateway, write_request(request, padded_to=_STEP_BYTES))
        answer = self._exchange.post(message, timeout_seconds)
        if answer.status != HTTPStatus.OK:
            # PRIVACY: a relay's answer cannot refuse a report for good; only the shuffler's can.
            failure = not_sent(answer)
            hint = failure.after_seconds if isinstance(failure, TryAgain) else None
            raise TryAgain(f"relay_{failure.reason}", hint)
        if answer.type != RESPONSE_TYPE:
            raise TryAgain("no_relay")
        try:
            response = read_response(opened(answer.body))
        except BadPayload as error:
            raise TryAgain("no_gateway") from error
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in response.headers
        }
        return meaning(HttpAnswer(response.status, headers, response.content), len(reports))

    def close(self) -> None:
        """Ends all calls and closes the connection."""
        self._exchange.close()
