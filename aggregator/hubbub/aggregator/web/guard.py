"""Guard between the network and the application: identifies callers, limits rates, sets headers.

Without tokens everybody who can connect may query, so the service listens on this machine only.
Then a request must also use a name of this machine: otherwise a foreign page could make its browser
send requests under a name that now resolves to this machine (DNS rebinding).

A request with a session comes from our own pages: browsers send its cookie with no request from
elsewhere (SameSite=Strict), and a request that changes something must declare its origin (CSRF).
"""

import hashlib
import logging
import math
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from starlette.datastructures import Headers, MutableHeaders

from hubbub.aggregator.access.audit_trail import AuditTrail, Seen
from hubbub.aggregator.access.callers import Access
from hubbub.aggregator.access.tokens import EVERYONE
from hubbub.aggregator.web.problems import problem
from hubbub.errors import AccessRefused, ServiceUnavailable, StoreUnavailable
from hubbub.errors.address_checks import is_loopback
from hubbub.runtime.http.server import App, Message, Receive, Scope, Send
from hubbub.runtime.rpc.call_checks import log_fault
from hubbub.runtime.rpc.rate_limiter import Limiter, network_of

_log: Final = logging.getLogger("hubbub.aggregator.web")

# Pages load scripts and styles from this service, send requests only to it, and allow no frames.
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
# Needed before a token exists, and equal for everyone.
_OPEN: Final = ("/health", "/ready", "/static/", "/openapi.json", "/login")
# Beside /metrics; neither a page's files nor a health check.
_AUDITED: Final = ("/v1/", "/login", "/logout")
_READING: Final = {"GET", "HEAD"}
# Largest body with a million candidate strings; and largest other body, which is parsed at once.
LARGEST_STRINGS_BYTES: Final = 32 << 20
_LARGEST_BODY: Final = 512 << 10  # texts of 65,536 characters fit
_OF_STRINGS: Final = ("/v1/metrics/", "/v1/candidates/")


@dataclass(eq=False, slots=True, kw_only=True)
class Guard:
    """An ASGI application that checks every request before it calls another.

    Args:
        pages: paths of pages, which everybody may load; their queries are checked.
        origins: whose pages may also query, with the headers of `shared`.
        audit: gets a line for every query; None for no audit.
        requests: counts the application's answers by status.
    """

    app: App
    access: Access
    limiter: Limiter
    pages: Collection[str]
    origins: Collection[str] = ()
    refusals: Counter[str] = field(default_factory=Counter)
    audit: AuditTrail | None = None
    requests: Counter[int] = field(default_factory=Counter)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        scope.setdefault("state", {}).update(caller=None, seen=Seen())
        headers = Headers(scope=scope)
        refusal = self._misplaced(scope, headers) or await self._unknown(scope, headers)
        method = scope["method"]
        # The server leaves out the body of the answer to HEAD.
        answered = {**scope, "method": "GET" if method == "HEAD" else method}
        sender: Send = _SendWithHeaders(send, answered, Counter() if refusal else self.requests)
        if self.audit and (scope["path"] == "/metrics" or scope["path"].startswith(_AUDITED)):
            sender = _send_with_audit(receive, sender, scope, self.audit)
        try:
            await (refusal or self.app)(answered, receive, sender)
        except Exception as error:  # noqa: BLE001 the boundary; who asked was answered already
            log_fault(_log, f"{method} of HTTP", error)

    def _misplaced(self, scope: Scope, headers: Headers) -> App | None:
        if not self.access.asks and not is_loopback(headers.get("host", "") or "?"):
            return problem(403, "WrongHost", "use a name of this machine: 127.0.0.1")
        if scope["method"] not in _READING:
            site, origin = headers.get("sec-fetch-site", "same-origin"), headers.get("origin")
            is_own_origin = origin is None or _has_own_origin(headers)
            is_own_page = site in {"same-origin", "none"} and is_own_origin
            if not (is_own_page or origin in self.origins):
                return problem(403, "OtherOrigin", "pages of other origins may not send requests")
        if "transfer-encoding" in headers:
            return problem(411, "LengthRequired", "send a Content-Length, not chunks")
        max_bytes = (
            LARGEST_STRINGS_BYTES if scope["path"].startswith(_OF_STRINGS) else _LARGEST_BODY
        )
        if int(headers.get("content-length") or 0) > max_bytes:
            return problem(
                413, "TooLarge", f"a request of this path has at most {max_bytes:,} bytes"
            )
        return None

    async def _unknown(self, scope: Scope, headers: Headers) -> App | None:
        asking = network_of(scope.get("client"))
        # Before the token is checked, which may request keys from a provider.
        if wait_seconds := self.limiter.wait_seconds(asking):
            return self._too_many(wait_seconds)
        authorization, refusal = headers.get("authorization", ""), None
        caller = None if self.access.asks else EVERYONE
        try:
            caller = caller or await self.access.caller(authorization, headers.get("cookie", ""))
        except AccessRefused as error:
            refusal = self._refuse_unidentified(authorization, str(error))
        except (ServiceUnavailable, StoreUnavailable) as error:
            refusal = problem(503, type(error).__name__, str(error), {"retry-after": "5"})
        if caller and caller.way != "machine":
            asking = f"{caller.way} {caller.subject or caller.name}"
            if wait_seconds := self.limiter.wait_seconds(asking):
                return self._too_many(wait_seconds)
        self.limiter.charge(asking, 1)
        scope["state"]["caller"] = caller
        if caller is None:
            is_open = scope["path"] in self.pages or scope["path"].startswith(_OPEN)
            return None if is_open else refusal or self._refuse_unidentified(authorization)
        if caller.way == "login" and scope["method"] not in _READING:
            # The headers must prove that a page of this service sent the request.
            is_same_site = headers.get("sec-fetch-site") == "same-origin"
            if not (is_same_site or _has_own_origin(headers)):
                return problem(403, "OtherOrigin", "a session is only for pages of this service")
        return None

    def _too_many(self, wait_seconds: float) -> App:
        self.refusals["peer_limit"] += 1
        delay = str(math.ceil(wait_seconds))
        return problem(429, "TooManyRequests", f"wait {delay} s", {"retry-after": delay})

    def _refuse_unidentified(self, authorization: str, why: str = "") -> App:
        """Returns the refusal of an unknown caller; `why` states why its token was refused."""
        login = self.access.login
        if login and not authorization:
            title, detail = "NotLoggedIn", "log in, or send a token"
        elif authorization:
            title, detail = "TokenRefused", why or "the service does not know this token"
        else:
            title, detail = "NoToken", "send a token: Authorization: Bearer hubbub_..."
        way = {"login": login.oidc.title} if login else {}
        return problem(401, title, detail, {"www-authenticate": "Bearer"}, **way)


def _has_own_origin(headers: Headers) -> bool:
    return headers.get("origin", "").partition("://")[2] == headers.get("host")


def _send_with_audit(receive: Receive, send: Send, scope: Scope, audit: AuditTrail) -> Send:
    """Writes the audit line before the answer; if that fails, answers with the failure."""
    unwritten: list[str] = []

    async def sending(message: Message) -> None:
        if unwritten:
            return
        if message["type"] == "http.response.start":
            try:
                audit.note(scope, network_of(scope.get("client")), message["status"])
            except ServiceUnavailable as error:
                unwritten.append(str(error))
                _log.error("%s", error)
                await problem(503, type(error).__name__, str(error))(scope, receive, send)
                return
        await send(message)

    return sending


@dataclass(eq=False, slots=True)
class _SendWithHeaders:
    """Counts answers; adds security headers, and ETags to GET answers; 304 if the ETag matches."""

    send: Send
    scope: Scope
    requests: Counter[int]
    started: Message | None = None  # until the answer's body gives the tag

    async def __call__(self, message: Message) -> None:
        """Sends one message of the answer."""
        if message["type"] == "http.response.start":
            self.requests[message["status"]] += 1
            headers = MutableHeaders(scope=message)
            if "access-control-allow-origin" in headers:
                headers["cross-origin-resource-policy"] = "cross-origin"
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
            headers.setdefault("cache-control", "private, no-cache")
            is_answered_get = self.scope["method"] == "GET" and message["status"] == 200  # noqa: PLR2004 OK
            if is_answered_get and "etag" not in headers:
                self.started = message
                return
        elif self.started is not None:
            start, self.started = self.started, None
            if not message.get("more_body"):
                tag = f'"{hashlib.sha256(message.get("body", b"")).hexdigest()[:32]}"'
                headers = MutableHeaders(scope=start)
                headers["etag"] = tag
                etags = Headers(scope=self.scope).get("if-none-match", "")
                if tag in etags or etags.strip() == "*":  # the browser has this body
                    start["status"] = 304
                    del headers["content-length"]
                    message["body"] = b""
            await self.send(start)
        await self.send(message)
