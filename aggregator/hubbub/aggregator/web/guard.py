"""Guard: between the network and the application. Who asks, how often, and what a browser may do.

Without tokens whoever can connect may ask, so the service is for this machine alone; then a request
must name it so, or a page of somebody else's could have its browser ask under a name that suddenly
means this machine (DNS rebinding).
"""

import hashlib
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from typing import Any, Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.cors import CORSMiddleware

from hubbub.aggregator.web.access import ROLES, Role, Token, Tokens
from hubbub.aggregator.web.problems import problem
from hubbub.runtime import Limiter
from hubbub.runtime.http.connections import network_of
from hubbub.runtime.rpc.strict import log_fault
from hubbub.runtime.tls import is_loopback

__all__ = ["EVERYONE", "Guard", "allowed", "shared"]

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_log: Final = logging.getLogger("hubbub.aggregator.web")

EVERYONE: Final = Token("this machine", ROLES[-1], "", 0)
"""Who asks where no tokens are asked for."""

# Scripts, styles and requests are the service's own; nothing is framed, nothing is sent elsewhere.
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
_HEADERS: Final = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
# Needed before there is a token, and all the same for everyone.
_OPEN: Final = ("/health", "/ready", "/static/", "/openapi.json", "/docs")
_LARGEST_BODY: Final = 32 << 20


class Guard:
    """An ASGI application around another.

    tokens: None where everyone on this machine may ask. limiter: of requests. pages: the paths of
        those that are open to all; what they ask is not. origins: whose pages may ask too; their
        browsers are told so by `shared`. refusals: counts, by reason.
    """

    def __init__(
        self,
        app: App,
        tokens: Tokens | None,
        limiter: Limiter,
        pages: Collection[str],
        origins: Collection[str] = (),
        *,
        refusals: Counter[str] | None = None,
    ) -> None:
        self._refusals = Counter() if refusals is None else refusals
        self._app = app
        self._pages = pages
        self._origins = origins
        self._tokens = tokens
        self._limiter = limiter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = self._refusal(scope) or self._app
        try:
            await answer(scope, receive, _with_headers(send, scope))
        except Exception as error:  # noqa: BLE001 the boundary; who asked was answered already
            log_fault(_log, f"{scope['method']} of HTTP", error)

    def _refusal(self, scope: Scope) -> App | None:
        """What is answered to who may not ask; None to who may."""
        headers = Headers(scope=scope)
        return self._misplaced(scope, headers) or self._unknown(scope, headers)

    def _misplaced(self, scope: Scope, headers: Headers) -> App | None:
        if self._tokens is None and not is_loopback(headers.get("host", "") or "?"):
            return problem(403, "WrongHost", "ask under a name of this machine: 127.0.0.1")
        if scope["method"] not in {"GET", "HEAD"} and _from_elsewhere(headers, self._origins):
            return problem(403, "OtherOrigin", "pages of other origins may not ask")
        if "transfer-encoding" in headers:
            return problem(411, "LengthRequired", "send a Content-Length, not chunks")
        if int(headers.get("content-length") or 0) > _LARGEST_BODY:
            return problem(413, "TooLarge", f"a request has at most {_LARGEST_BODY >> 20} MiB")
        return None

    def _unknown(self, scope: Scope, headers: Headers) -> App | None:
        token: Token | None = EVERYONE
        if self._tokens is not None:
            scheme, _, secret = headers.get("authorization", "").partition(" ")
            token = self._tokens.find(secret) if scheme.lower() == "bearer" else None
        caller = (
            f"token {token.name}"
            if token and token is not EVERYONE
            else network_of(scope.get("client"))
        )
        wait_seconds = self._limiter.wait_seconds(caller)
        if wait_seconds:
            self._refusals["peer_limit"] += 1
            after = {"retry-after": str(int(wait_seconds) + 1)}
            return problem(429, "TooManyRequests", f"wait {wait_seconds:.1f} seconds", after)
        self._limiter.charge(caller, 1)
        if token is None and not (scope["path"] in self._pages or scope["path"].startswith(_OPEN)):
            asks = {"www-authenticate": "Bearer"}
            return problem(401, "NoToken", "send a token: Authorization: Bearer hubbub_...", asks)
        scope.setdefault("state", {})["token"] = token
        return None


def allowed(role: Role, token: Token | None) -> bool:
    """Whether who has this token may do what asks for this role."""
    return token is not None and ROLES.index(token.role) >= ROLES.index(role)


def shared(app: App, origins: Collection[str]) -> App:
    """The application, telling browsers that pages of these origins may read its answers (CORS)."""
    return CORSMiddleware(
        app,
        allow_origins=list(origins),
        allow_methods=["GET", "POST", "PUT", "DELETE"],
        allow_headers=["authorization", "content-type"],
        expose_headers=["etag", "link", "retry-after"],
    )


def _from_elsewhere(headers: Headers, origins: Collection[str]) -> bool:
    site = headers.get("sec-fetch-site", "same-origin")
    origin = headers.get("origin")
    if origin in origins:
        return False
    own = origin is None or origin.partition("://")[2] == headers.get("host")
    return site not in {"same-origin", "none"} or not own


def _with_headers(send: Send, scope: Scope) -> Send:
    """Security headers on everything; an ETag on what was read, and nothing where it is known."""
    started: list[Message] = []
    known = Headers(scope=scope).get("if-none-match", "")

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            if "access-control-allow-origin" in headers:
                headers["cross-origin-resource-policy"] = "cross-origin"
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
            headers.setdefault("cache-control", "no-cache")
            if scope["method"] != "GET" or message["status"] != 200 or "etag" in headers:  # noqa: PLR2004 OK
                await send(message)
            else:
                started.append(message)
            return
        if not started:
            await send(message)
            return
        await _tagged(started.pop(), message, known, send)

    return sending


async def _tagged(start: Message, body: Message, known: str, send: Send) -> None:
    if body.get("more_body"):
        await send(start)
        await send(body)
        return
    tag = f'"{hashlib.sha256(body.get("body", b"")).hexdigest()[:32]}"'
    headers = MutableHeaders(scope=start)
    headers["etag"] = tag
    if tag in [one.strip().removeprefix("W/") for one in known.split(",")]:
        start["status"] = 304
        del headers["content-length"]
        body["body"] = b""
    await send(start)
    await send(body)
