"""Passes a sealed request to the gateway and its sealed answer back, and nothing else.

PRIVACY: of a request only type, length and the sender's network are looked at; the network goes to
the limiter alone, in memory. No header but the type is passed on, and nothing is logged.
"""

import asyncio
import logging
from collections import Counter
from http import HTTPStatus
from http.cookiejar import DefaultCookiePolicy
from typing import Final

import httpx2

from hubbub.runtime.http import bodies_and_problems
from hubbub.runtime.http.server import Receive, Scope, Send
from hubbub.runtime.monitoring.metric_declaration import MetricDeclaration
from hubbub.runtime.rpc.rate_limiter import Limiter, network_of
from hubbub.runtime.untrusted_messages import hint_seconds

_log: Final = logging.getLogger("hubbub.relay")

RELAYED_REQUESTS: Final = MetricDeclaration(
    "hubbub_relayed_requests_total",
    "Requests that came to the relay: passed, or what became of them",
    ("outcome",),
)

_REQUEST: Final = b"message/ohttp-req"
_RESPONSE: Final = "message/ohttp-res"
_LARGEST_BYTES: Final = (2 << 20) + (1 << 16)  # a submission, with its envelope
_LARGEST_ANSWER_BYTES: Final = 1 << 20
_GATEWAY_SECONDS: Final = 10.0  # of the whole call: an answer may drip, and hold a connection
# Statuses of the gateway itself, which are returned unchanged.
_GATEWAYS: Final = frozenset({400, 413, 415, 422, 429, 503})
_ANYONE: Final = bodies_and_problems.open_to_pages(b"content-type")


class RelayApp:
    """The relay's ASGI application; `counts` has the number of requests by outcome."""

    def __init__(self, gateway: str, client: httpx2.AsyncClient, limiter: Limiter) -> None:
        self._gateway, self._client, self._limiter = gateway, client, limiter
        # The library's own default headers are of no use to the gateway.
        client.headers.clear()
        # PRIVACY: a cookie of one answer would be sent with the next device's request.
        client.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=()))
        self.counts: Counter[str] = Counter(passed=0)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        await bodies_and_problems.respond(self._answer(scope, receive), send, _log, _ANYONE)

    async def _answer(self, scope: Scope, receive: Receive) -> bodies_and_problems.Answer:
        if scope["method"] == "POST":
            return await self._take(scope, receive)
        if scope["method"] == "OPTIONS":
            return HTTPStatus.NO_CONTENT, (), b""
        if scope["method"] in {"GET", "HEAD"} and scope["path"] == "/health":
            return HTTPStatus.OK, ((b"content-type", b"text/plain"),), b"ok\n"
        detail = "only POST of sealed requests is supported"
        raise self._refusal("no_request", HTTPStatus.METHOD_NOT_ALLOWED, detail)

    async def _take(self, scope: Scope, receive: Receive) -> bodies_and_problems.Answer:
        caller = network_of(scope["client"])
        if wait_seconds := self._limiter.wait_seconds(caller):
            self.counts["peer_limit"] += 1
            detail = "too many requests of one address; send again later"
            raise bodies_and_problems.refused_for_now(hint_seconds(wait_seconds), detail)
        self._limiter.charge(caller, 1)
        headers: dict[bytes, bytes] = dict(scope["headers"])
        if bodies_and_problems.media_type(headers) != _REQUEST or b"content-encoding" in headers:
            detail = f"send {_REQUEST.decode()}, as it is"
            raise self._refusal("no_request", HTTPStatus.UNSUPPORTED_MEDIA_TYPE, detail)
        body = await bodies_and_problems.read_body(receive, _LARGEST_BYTES)
        if body is None:
            detail = "a sealed request has 2 MiB at most"
            raise self._refusal("too_large", HTTPStatus.REQUEST_ENTITY_TOO_LARGE, detail)
        return await self._pass_on(body)

    async def _pass_on(self, body: bytes) -> bodies_and_problems.Answer:
        try:
            sealed = {"content-type": _REQUEST.decode()}
            async with (
                asyncio.timeout(_GATEWAY_SECONDS),
                self._client.stream("POST", self._gateway, content=body, headers=sealed) as answer,
            ):
                answer_bytes = b""
                async for part in answer.aiter_raw():
                    answer_bytes += part
                    if len(answer_bytes) > _LARGEST_ANSWER_BYTES:
                        raise httpx2.DecodingError("an answer is too large")
        except (httpx2.HTTPError, TimeoutError) as error:
            if not self.counts["gateway_away"]:
                _log.warning("the gateway cannot be reached: %s", type(error).__name__)
            detail = "the gateway is away"
            raise self._refusal("gateway_away", HTTPStatus.BAD_GATEWAY, detail) from error
        kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        if answer.status_code == HTTPStatus.OK and kind == _RESPONSE:
            self.counts["passed"] += 1
            content_type = (b"content-type", _RESPONSE.encode())
            return HTTPStatus.OK, (content_type, (b"cache-control", b"no-store")), answer_bytes
        if answer.status_code not in _GATEWAYS or kind != bodies_and_problems.PROBLEM_TYPE:
            detail = "the gateway's answer is invalid"
            raise self._refusal("gateway_refused", HTTPStatus.BAD_GATEWAY, detail)
        self.counts["gateway_refused"] += 1
        after = answer.headers.get("retry-after", "")
        headers = ((b"retry-after", after.encode()),) if after and after.isascii() else ()
        content_type = (b"content-type", bodies_and_problems.PROBLEM_TYPE.encode())
        return answer.status_code, (content_type, *headers), answer_bytes

    def _refusal(self, reason: str, status: HTTPStatus, detail: str) -> bodies_and_problems.Refused:
        self.counts[reason] += 1
        return bodies_and_problems.Refused(status, detail)
