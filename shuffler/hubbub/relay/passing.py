"""Passes a sealed request to the gateway and its sealed answer back, and nothing else.

PRIVACY: of a request only type, length and the sender's network are looked at; the network goes to
the limiter alone, in memory. No header but the type is passed on, and nothing is logged.
"""

import asyncio
import logging
import math
from collections import Counter
from http import HTTPStatus
from http.cookiejar import DefaultCookiePolicy
from typing import Final

import httpx2

from hubbub.runtime.http.connections import network_of
from hubbub.runtime.http.problem import PROBLEM_TYPE, problem
from hubbub.runtime.http.public_door import open_to_pages
from hubbub.runtime.http.request_body import read_body
from hubbub.runtime.http.server import Receive, Scope, Send
from hubbub.runtime.messages import hint_seconds
from hubbub.runtime.rpc.interceptor import log_fault
from hubbub.runtime.rpc.limiter import Limiter

_log: Final = logging.getLogger("hubbub.relay")

_REQUEST: Final = b"message/ohttp-req"
_RESPONSE: Final = "message/ohttp-res"
_LARGEST_BYTES: Final = (2 << 20) + (1 << 16)  # a submission, with its envelope
_LARGEST_ANSWER_BYTES: Final = 1 << 20
_GATEWAY_SECONDS: Final = 10.0  # of the whole call: an answer may drip, and hold a connection
# Statuses of the gateway itself, which are returned unchanged.
_GATEWAYS: Final = frozenset({400, 413, 415, 422, 429, 503})
_ANYONE: Final = open_to_pages(b"content-type")

Answer = tuple[int, dict[str, str], bytes]


class RelayApp:
    """The relay's ASGI application.

    `client` keeps connections to the gateway open. `counts` holds the number of requests by
    outcome.
    """

    def __init__(self, gateway: str, client: httpx2.AsyncClient, limiter: Limiter) -> None:
        self._gateway, self._client, self._limiter = gateway, client, limiter
        # The library's own default headers are of no use to the gateway.
        client.headers.clear()
        # PRIVACY: a cookie of one answer would be sent with the next device's request.
        client.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=()))
        self.counts: Counter[str] = Counter(passed=0)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        try:
            status, headers, body = await self._answer(scope, receive)
        except ConnectionError:
            return  # the caller has disconnected
        except Exception as error:  # noqa: BLE001 the boundary to callers
            log_fault(_log, "a request", error)
            status, headers, body = _problem(HTTPStatus.INTERNAL_SERVER_ERROR, "a fault of ours")
        pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
        if status != HTTPStatus.NO_CONTENT:
            pairs.append((b"content-length", str(len(body)).encode()))
        start = {"type": "http.response.start", "status": status, "headers": [*pairs, *_ANYONE]}
        await send(start)
        await send({"type": "http.response.body", "body": body})

    async def _answer(self, scope: Scope, receive: Receive) -> Answer:
        if scope["method"] == "POST":
            return await self._take(scope, receive)
        if scope["method"] == "OPTIONS":
            return HTTPStatus.NO_CONTENT, {}, b""
        if scope["method"] in {"GET", "HEAD"} and scope["path"] == "/health":
            return HTTPStatus.OK, {"content-type": "text/plain"}, b"ok\n"
        why = "only POST of sealed requests is supported"
        return self._refused("no_request", HTTPStatus.METHOD_NOT_ALLOWED, why)

    async def _take(self, scope: Scope, receive: Receive) -> Answer:
        caller = network_of(scope["client"])
        wait_seconds = self._limiter.wait_seconds(caller)
        if wait_seconds:
            return self._come_back(wait_seconds)
        self._limiter.charge(caller, 1)
        headers: dict[bytes, bytes] = dict(scope["headers"])
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if kind != _REQUEST or b"content-encoding" in headers:
            why = f"send {_REQUEST.decode()}, as it is"
            return self._refused("no_request", HTTPStatus.UNSUPPORTED_MEDIA_TYPE, why)
        body = await read_body(receive, _LARGEST_BYTES)
        if body is None:
            why = "a sealed request has 2 MiB at most"
            return self._refused("too_large", HTTPStatus.REQUEST_ENTITY_TOO_LARGE, why)
        return await self._pass_on(body)

    async def _pass_on(self, body: bytes) -> Answer:
        try:
            request_headers = {"content-type": _REQUEST.decode()}
            async with (
                asyncio.timeout(_GATEWAY_SECONDS),
                self._client.stream(
                    "POST", self._gateway, content=body, headers=request_headers
                ) as answer,
            ):
                answer_bytes = b""
                async for part in answer.aiter_raw():
                    answer_bytes += part
                    if len(answer_bytes) > _LARGEST_ANSWER_BYTES:
                        raise httpx2.DecodingError("an answer is too large")
        except (httpx2.HTTPError, TimeoutError) as error:
            if not self.counts["gateway_away"]:
                _log.warning("the gateway is not reached: %s", type(error).__name__)
            return self._refused("gateway_away", HTTPStatus.BAD_GATEWAY, "the gateway is away")
        kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        if answer.status_code == HTTPStatus.OK and kind == _RESPONSE:
            self.counts["passed"] += 1
            return (
                HTTPStatus.OK,
                {"content-type": _RESPONSE, "cache-control": "no-store"},
                answer_bytes,
            )
        self.counts["gateway_refused"] += 1
        if answer.status_code not in _GATEWAYS or kind != PROBLEM_TYPE:
            return _problem(HTTPStatus.BAD_GATEWAY, "the gateway's answer is invalid")
        after = answer.headers.get("retry-after", "")
        more = {"retry-after": after} if after and after.isascii() else {}
        return answer.status_code, {"content-type": PROBLEM_TYPE, **more}, answer_bytes

    def _come_back(self, wait_seconds: float) -> Answer:
        hint = hint_seconds(wait_seconds)
        why = "too many requests of one address; send again later"
        status, headers, body = self._refused("peer_limit", HTTPStatus.TOO_MANY_REQUESTS, why)
        return status, {**headers, "retry-after": str(math.ceil(hint))}, body

    def _refused(self, reason: str, status: HTTPStatus, why: str) -> Answer:
        self.counts[reason] += 1
        return _problem(status, why)


def _problem(status: HTTPStatus, why: str) -> Answer:
    return status, {"content-type": PROBLEM_TYPE}, problem(status, why)
