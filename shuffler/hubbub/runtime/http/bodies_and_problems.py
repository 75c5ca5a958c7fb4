"""What the HTTP services for devices share: bodies in, answers and problems (RFC 9457) out."""

import json
import logging
import math
from collections.abc import Awaitable
from http import HTTPStatus
from typing import Any, Final

from hubbub.runtime.http.server import Receive, Send
from hubbub.runtime.rpc.call_checks import log_fault

PROBLEM_TYPE: Final = "application/problem+json"

Headers = tuple[tuple[bytes, bytes], ...]
Answer = tuple[int, Headers, bytes]
"""Status, headers and body."""


class Refused(Exception):
    """A request that is answered with a problem; `members` adds or replaces members of its JSON."""

    def __init__(
        self, status: HTTPStatus, detail: str, *headers: tuple[bytes, bytes], **members: Any
    ) -> None:
        super().__init__(detail)
        fields = {"type": "about:blank", "title": status.phrase, "status": status, "detail": detail}
        self.status = status
        self.headers: Headers = ((b"content-type", PROBLEM_TYPE.encode()), *headers)
        self.body = json.dumps({**fields, **members}).encode()


def refused_for_now(seconds: float, detail: str, **members: Any) -> Refused:
    """A refusal of a request that may be sent again after these seconds."""
    after = (b"retry-after", str(math.ceil(seconds)).encode())
    return Refused(HTTPStatus.TOO_MANY_REQUESTS, detail, after, **members)


async def respond(
    answer: Awaitable[Answer], send: Send, log: logging.Logger, common: Headers = ()
) -> None:
    """Sends an answer, or the problem that it raises, with the headers that all answers have."""
    try:
        status, headers, body = await answer
    except Refused as refused:
        status, headers, body = refused.status, refused.headers, refused.body
    except ConnectionError:
        return  # the caller has disconnected
    except Exception as error:  # noqa: BLE001 the boundary to callers
        log_fault(log, "a request of HTTP", error)
        fault = Refused(HTTPStatus.INTERNAL_SERVER_ERROR, "a fault of ours; see our log")
        status, headers, body = fault.status, fault.headers, fault.body
    headers = (*headers, *common)
    if status not in {HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED}:
        headers = (*headers, (b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": int(status), "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def read_body(receive: Receive, max_bytes: int) -> bytes | None:
    """Reads the whole body, whatever Content-Length says; None if it exceeds `max_bytes`.

    Raises ConnectionError if the client has disconnected.
    """
    body, is_unfinished = bytearray(), True
    while is_unfinished:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionError
        body += message.get("body", b"")
        if len(body) > max_bytes:
            return None
        is_unfinished = message.get("more_body", False)
    return bytes(body)


def media_type(headers: dict[bytes, bytes]) -> bytes:
    """The type in Content-Type, in lower case and without parameters; empty for none."""
    return headers.get(b"content-type", b"").partition(b";")[0].strip().lower()


def open_to_pages(headers: bytes) -> Headers:
    """CORS headers that let pages of any origin send POST requests with these request headers."""
    return (
        (b"access-control-allow-origin", b"*"),
        (b"access-control-allow-methods", b"POST"),
        (b"access-control-allow-headers", headers),
        (b"access-control-expose-headers", b"retry-after"),
        (b"access-control-max-age", b"86400"),
    )
