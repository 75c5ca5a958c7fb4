"""The HTTP service: POST /v1/reports for devices, and signed files to hand out; see admission.py.

PRIVACY: of a request only path, length, type and the sender's network are looked at; the network
goes to the limiter, in memory. No cookie, Origin, Referer or User-Agent is read, and nothing of a
request is logged.

The gateway decrypts requests that relays pass on (RFC 9458): only the relay knows who sent such a
request, and it cannot read it.
"""

import base64
import logging
from collections.abc import Callable, Collection
from functools import lru_cache
from http import HTTPStatus
from ipaddress import ip_network
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from hubbub.errors import BadParameter, BadPayload, KeysUnusable
from hubbub.oblivious.binary_http import Request, Response, read_request, write_response
from hubbub.oblivious.encapsulation import Gateway
from hubbub.oblivious.key_config import GATEWAY_PATH, KEYS_TYPE, REQUEST_TYPE, RESPONSE_TYPE
from hubbub.programs.text_files import read_list
from hubbub.runtime.http.bodies_and_problems import (
    Answer,
    Refused,
    media_type,
    read_body,
    refused_for_now,
    respond,
)
from hubbub.runtime.http.connection_limit import OpenConnections, among
from hubbub.runtime.http.server import Receive, Scope, Send
from hubbub.runtime.rpc.rate_limiter import network_of
from hubbub.runtime.untrusted_messages import hint_seconds, read_message
from hubbub.shuffler.admission import (
    LARGEST_SUBMIT_BYTES,
    MAX_SUBMIT_FIELDS,
    UNLIMITED,
    Admission,
    ComeBack,
    Never,
)
from hubbub.shuffler.public_files import BundleFile, PublicBytes
from hubbub.wire.v1.services_pb2 import SubmitRequest

UNKNOWN_KEY: Final = "https://iana.org/assignments/http-problem-types#ohttp-key"
"""The answer to a client whose key is not ours any more (RFC 9458, section 5.2)."""
_ANSWER_STEP_BYTES: Final = 4 << 10
# Status, headers and text of a problem are smaller.
_PROBLEM_BYTES: Final = 1 << 10
# A refusal has at most 7 bytes, and the report that it concerns more than 56.
_REQUEST_TO_REFUSALS: Final = 8


class OhttpGateway:
    """A gateway and its keys. `relays` are networks exempt from the limits of one address."""

    def __init__(self, keys: Collection[X25519PrivateKey], relays: Collection[str] = ()) -> None:
        self._gateway = Gateway(list(keys))
        self.relays = [ip_network(relay) for relay in relays]
        self.public_keys = PublicBytes(self._gateway.configs, KEYS_TYPE.encode())

    def open(self, raw: bytes) -> tuple[Request, Callable[[Response, int], bytes]]:
        """Decrypts a request; returns it with a function that encrypts the answer.

        PRIVACY: the answer's length depends on the request's length, which the relay has seen, and
        on the size of whatever is public in answers (the second argument of the returned function):
        whether reports were refused, how many, or what was fetched does not change it.

        Raises:
            BadParameter: it is encrypted to a key that is not here.
            BadPayload: it is not an encapsulated request, or was altered.
        """
        content, seal = self._gateway.open(raw)

        def seal_padded(answer: Response, public_bytes: int) -> bytes:
            longest = _PROBLEM_BYTES + len(raw) // _REQUEST_TO_REFUSALS + public_bytes
            step = longest + -longest % _ANSWER_STEP_BYTES
            return seal(write_response(answer, padded_to=step))

        return read_request(content), seal_padded


def read_gateway_keys(path: Path) -> list[X25519PrivateKey]:
    """Reads the keys that `hubbub keys gateway` wrote. Raises KeysUnusable."""
    try:
        keys = [base64.b64decode(line, validate=True) for line in read_list(path)]
        return [X25519PrivateKey.from_private_bytes(key) for key in keys]
    except ValueError as error:
        if not path.exists():
            raise KeysUnusable(str(error)) from error
        raise KeysUnusable(f"{path}: no gateway's keys: hubbub keys gateway FOLDER") from error


_log: Final = logging.getLogger("hubbub.shuffler")

_MESSAGE: Final = b"application/protobuf"
_REPORTS: Final = "/v1/reports"
_BUNDLE: Final = "/v1/bundle"
_NOTICE: Final = "/v1/notice"
_MODELS: Final = "/v1/models"
_HEALTH: Final = "/health"
_METHODS: Final = {
    _REPORTS: ("POST",),
    **dict.fromkeys((_BUNDLE, _NOTICE, _MODELS, _HEALTH), ("GET", "HEAD")),
    GATEWAY_PATH: ("GET", "HEAD", "POST"),
}
_SERVED: Final = frozenset({_BUNDLE, _NOTICE, _MODELS, GATEWAY_PATH})
# Any page may send, as any program may; headers that a browser adds by itself are ignored.
_ANYONE: Final = (b"access-control-allow-origin", b"*")
# Headers of an answer that a page may read.
_EXPOSED_HEADERS: Final = (b"access-control-expose-headers", b"etag, hubbub-refused, retry-after")
_PREFLIGHT: Final = (
    (b"access-control-allow-methods", b"GET, HEAD, POST"),
    (b"access-control-allow-headers", b"content-type, if-none-match"),
    (b"access-control-max-age", b"86400"),
)
# Proxies do not use it: clients accept a final refusal only from a shuffler.
_FOR_GOOD: Final = (b"hubbub-refused", b"for-good")
# As for gRPC: requests being processed are in memory, each up to the largest message.
_MAX_WORKED_ON: Final = 256
_WAIT_SECONDS: Final = 1.0
# Answers to sealed requests that were not charged to a limit yet.
_UNREAD: Final = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.UNSUPPORTED_MEDIA_TYPE})


class ReportsApp:
    """The shuffler's ASGI application.

    `connections` are the server's, which know its proxies; `bundle` is handed out to anybody;
    `gateway` opens requests from relays.
    """

    def __init__(
        self,
        admission: Admission,
        connections: OpenConnections,
        bundle: BundleFile | None = None,
        gateway: OhttpGateway | None = None,
    ) -> None:
        self._admission = admission
        self._connections = connections
        self._bundle = bundle
        self._gateway = gateway
        self._worked_on = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        await respond(self._answer(scope, receive), send, _log, (_ANYONE, _EXPOSED_HEADERS))

    async def _answer(self, scope: Scope, receive: Receive) -> Answer:
        path, method = scope["path"], scope["method"]
        methods = _METHODS.get(path)
        served = self._served(path)
        if methods is None or (served is None and path in _SERVED):
            raise Refused(HTTPStatus.NOT_FOUND, f"nothing is here; reports go to {_REPORTS}")
        if method == "OPTIONS":
            return HTTPStatus.NO_CONTENT, _PREFLIGHT, b""
        if method not in methods:
            allow = (b"allow", ", ".join(methods).encode())
            raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, f"use {' or '.join(methods)} here", allow)
        headers: dict[bytes, bytes] = dict(scope["headers"])
        if self._gateway and path == GATEWAY_PATH and method == "POST":
            return await self._pass_on(self._gateway, scope, headers, receive)
        if path == _REPORTS:
            caller = self._caller(scope, headers)
            self._refuse_early(caller, headers, _MESSAGE)
            message = await self._take(await _body(receive), caller)
            return HTTPStatus.OK, ((b"content-type", _MESSAGE),), message
        if served:
            return served.answer(headers.get(b"if-none-match", b""))
        return HTTPStatus.OK, ((b"content-type", b"text/plain"),), b"ok\n"

    def _served(self, path: str) -> PublicBytes | None:
        if path == _NOTICE and self._admission.notice:
            return _public(self._admission.notice)
        if path == _MODELS and self._admission.models:
            return _public(self._admission.models)
        if path == GATEWAY_PATH and self._gateway:
            return self._gateway.public_keys
        return self._bundle.served() if path == _BUNDLE and self._bundle else None

    async def _pass_on(
        self,
        gateway: OhttpGateway,
        scope: Scope,
        headers: dict[bytes, bytes],
        receive: Receive,
    ) -> Answer:
        """Handles a relayed request as if it had come directly, and encrypts the answer."""
        client = scope["client"]
        caller = UNLIMITED if among(client, gateway.relays) else self._caller(scope, headers)
        self._refuse_early(caller, headers, REQUEST_TYPE.encode())
        raw = await _body(receive)
        try:
            request, seal = gateway.open(raw)
        except BadParameter as error:
            self._admission.spoiled(caller, len(raw))
            fields = {"type": UNKNOWN_KEY}
            raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, str(error), **fields) from None
        except BadPayload as error:
            self._admission.spoiled(caller, len(raw))
            raise Refused(HTTPStatus.BAD_REQUEST, str(error)) from None
        try:
            message = await self._submit_within(caller, request)
            answer = Response(HTTPStatus.OK, ((b"content-type", _MESSAGE),), message)
        except Refused as refused:
            if refused.status in _UNREAD:
                self._admission.spoiled(caller, len(raw))
            answer = Response(refused.status, refused.headers, refused.body)
        content_type = (b"content-type", RESPONSE_TYPE.encode())
        # Twice the notice's size, since a problem contains it as text.
        public_bytes = 2 * len(self._admission.notice) + len(self._admission.models)
        answer_headers = content_type, (b"cache-control", b"no-store")
        return HTTPStatus.OK, answer_headers, seal(answer, public_bytes)

    def _caller(self, scope: Scope, headers: dict[bytes, bytes]) -> str:
        # If a proxy names its client, the server has put that address here.
        by_proxy = among(scope["client"], self._connections.proxies)
        if by_proxy and b"x-forwarded-for" not in headers:
            if not self._admission.refusals["no_forwarded_for"]:
                _log.error(
                    "a proxy of --http-proxy does not name its client: make it set "
                    "X-Forwarded-For; until then its requests get status 500"
                )
            self._admission.refusals["no_forwarded_for"] += 1
            detail = "the proxy before this shuffler does not send X-Forwarded-For"
            raise Refused(HTTPStatus.INTERNAL_SERVER_ERROR, detail)
        return network_of(scope["client"])

    async def _submit_within(self, caller: str, request: Request) -> bytes:
        """Handles a submission inside a relayed request."""
        if (request.method, request.path) != (b"POST", _REPORTS.encode()):
            raise Refused(HTTPStatus.NOT_FOUND, f"a relayed request must be a POST to {_REPORTS}")
        # The header may name any length, or an invalid one; the received length is known.
        length = {b"content-length": str(len(request.content)).encode()}
        self._refuse_early(caller, dict(request.headers) | length, _MESSAGE)
        return await self._take(request.content, caller)

    def _refuse_early(self, caller: str, headers: dict[bytes, bytes], expected: bytes) -> None:
        """Raises Refused for a request that need not be read."""
        wait_seconds = self._admission.wait_seconds(caller)
        if wait_seconds:
            raise self._come_back(wait_seconds, "no room for this caller now; send again later")
        if media_type(headers) != expected or b"content-encoding" in headers:
            detail = f"send {expected.decode()}, as it is"
            raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, detail)
        if int(headers.get(b"content-length", b"0")) > LARGEST_SUBMIT_BYTES:
            raise _too_large()
        if self._worked_on >= _MAX_WORKED_ON:
            self._admission.refusals["calls_at_once"] += 1
            raise self._come_back(_WAIT_SECONDS, "too many calls at once; send again later")

    async def _take(self, raw: bytes, caller: str) -> bytes:
        request = read_message(SubmitRequest.FromString, raw, MAX_SUBMIT_FIELDS)
        if isinstance(request, str):
            self._admission.spoiled(caller, len(raw))
            raise Refused(HTTPStatus.BAD_REQUEST, request, _FOR_GOOD)
        self._worked_on += 1
        try:
            response = await self._admission.take(request.reports, caller, request.tokens)
        except Never as never:
            raise Refused(HTTPStatus.BAD_REQUEST, str(never), _FOR_GOOD) from None
        except ComeBack as back:
            if back.wait_seconds is None:
                unavailable = HTTPStatus.SERVICE_UNAVAILABLE
                raise Refused(unavailable, str(back), **self._notice_member()) from None
            raise self._come_back(back.wait_seconds, str(back)) from None
        finally:
            self._worked_on -= 1
        if not request.reports:
            response.models = self._admission.models
        return response.SerializeToString()

    def _come_back(self, wait_seconds: float, detail: str) -> Refused:
        """A refusal for now, with the notice: it can lower a flood before devices are let in."""
        hint = hint_seconds(wait_seconds)
        milliseconds = round(1000 * hint)
        return refused_for_now(hint, detail, retry_after_ms=milliseconds, **self._notice_member())

    def _notice_member(self) -> dict[str, str]:
        notice = self._admission.notice
        return {"notice": base64.b64encode(notice).decode()} if notice else {}


@lru_cache(maxsize=2)  # hashing half a megabyte for each request would keep a processor busy
def _public(signed: bytes) -> PublicBytes:
    return PublicBytes(signed)


async def _body(receive: Receive) -> bytes:
    raw = await read_body(receive, LARGEST_SUBMIT_BYTES)
    if raw is None:
        raise _too_large()
    return raw


def _too_large() -> Refused:
    detail = f"a submission has at most {LARGEST_SUBMIT_BYTES >> 20} MiB"
    close = (b"connection", b"close")
    return Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, detail, _FOR_GOOD, close)
