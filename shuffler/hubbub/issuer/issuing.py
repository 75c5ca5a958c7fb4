"""Issuing: POST /v1/tokens: blinded elements of an account in, evaluated ones and a proof out.

PRIVACY: an account, and how many tokens of which stream and epoch it asks for, which is the same
for every device of a bundle; nothing of a token. Nothing of a request is logged.

Subjects are accounts by the app's own logins, read from tokens of its OpenID Connect provider:
an ID token that the app has got, or an access token for the issuer (RFC 9068): who it is about is
the account. What else it says of a person is not looked at.

Redis keeps which tokens an account has had:

    issuer:{ACCOUNT}:SECONDS:EPOCH   hash: stream -> 16 bytes for each device that had its tokens

ACCOUNT is a keyed hash: who reads this Redis reads no account's name. A key goes with its epoch.

The stream table, which `hubbub catalog build` makes for the shuffler, has the length of an epoch
and the number of reports of one device.
"""

import asyncio
import hashlib
import hmac
import json
import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from google.protobuf.unknown_fields import UnknownFieldSet

from hubbub.epochs import begins
from hubbub.errors import AccessRefused, BadParameter, ServiceUnavailable, StoreUnavailable
from hubbub.issuer.accounts import Accounts
from hubbub.runtime.http import bodies_and_problems
from hubbub.runtime.http.server import Receive, Scope, Send
from hubbub.runtime.monitoring.metric_declaration import MetricDeclaration
from hubbub.runtime.oidc_tokens import ProviderKeys
from hubbub.runtime.redis.command_sender import RedisServer, lua, script
from hubbub.runtime.rpc.rate_limiter import Limiter, network_of
from hubbub.runtime.untrusted_messages import hint_seconds, read_message
from hubbub.tokens import poprf
from hubbub.tokens.token import token_info
from hubbub.wire.v1.services_pb2 import IssuedTokens, TokenRequest, TokenResponse

_AHEAD_SECONDS: Final = 600  # a device's clock may be so far ahead
_REMEDY: Final = "make it with: hubbub catalog build"


@dataclass(frozen=True, slots=True)
class IssuedStream:
    """One stream. `tokens` is the number of tokens that one device gets for an epoch."""

    epoch_seconds: int
    grace_seconds: int
    tokens: int

    def is_open(self, epoch: int, now: float) -> bool:
        """Whether tokens for an epoch are issued: from the epoch before it until it closes."""
        opens = begins(epoch - 1, self.epoch_seconds) - _AHEAD_SECONDS
        return opens <= now < self.closes(epoch)

    def closes(self, epoch: int) -> int:
        """When the shuffler stops taking reports of the epoch, in seconds since 1970."""
        return begins(epoch + 1, self.epoch_seconds) + self.grace_seconds


@dataclass(frozen=True, slots=True)
class IssuedStreams:
    """All streams by name. `devices` is how many devices of one account get tokens."""

    streams: Mapping[str, IssuedStream]
    devices: int


def read_issued_streams(path: Path) -> IssuedStreams:
    """Reads a stream table. Raises BadParameter if it is invalid or requires no tokens."""
    try:
        document = json.loads(path.read_bytes())
        streams = {name: _stream(table) for name, table in document["streams"].items()}
        needs_tokens = any(stream.tokens for stream in streams.values())
        devices = _whole_number(document["devices"]) if needs_tokens else 0
    except OSError as error:
        raise BadParameter(f"{path}: cannot be read: {error.strerror}; {_REMEDY}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadParameter(f"{path}: not a stream table; {_REMEDY}") from error
    if not devices:
        raise BadParameter(
            f"{path}: its streams take reports without tokens; write tokens = {{ issuer = ... }} "
            f"in the catalog, and {_REMEDY}"
        )
    return IssuedStreams(streams, devices)


def _stream(table: Mapping[str, Any]) -> IssuedStream:
    numbers = table["epoch_seconds"], table["grace_seconds"], table.get("tokens", 0)
    return IssuedStream(*map(_whole_number, numbers))


def _whole_number(number: Any) -> int:
    if type(number) is not int or number < 0:
        raise ValueError("invalid count")
    return number


TOKEN_REQUESTS: Final = MetricDeclaration(
    "hubbub_token_requests_total",
    "Requests for tokens: issued, or what became of them",
    ("outcome",),
)
ISSUED_TOKENS: Final = MetricDeclaration(
    "hubbub_issued_tokens_total",
    "Tokens: issued, refused as the account has had its own, or not given to anybody",
    ("outcome",),
)

_ALLOW: Final = lua(__package__, "scripts/allow")
_QUESTION_BYTES: Final = 16


async def allow(
    server: RedisServer,
    key: bytes,
    account: str,
    period: tuple[int, int],
    requests: Mapping[str, Sequence[bytes]],
    *,
    devices: int,
    keep: int,
) -> list[bool]:
    """For each stream, whether the account may have tokens for these blinded elements.

    Redis remembers them for `keep` seconds, under a name that is hashed with `key`. `period` is the
    epoch's length in seconds and its number, `devices` how many devices of one account get tokens.
    Raises StoreUnavailable if Redis does not answer.
    """
    name = hmac.digest(key, b"account|" + account.encode(), "sha256")[:16].hex()
    questions = [
        part
        for stream, blinded in requests.items()
        for part in (stream, hashlib.sha256(b"".join(blinded)).digest()[:_QUESTION_BYTES])
    ]
    of_period = f"issuer:{{{name}}}:{period[0]}:{period[1]}"
    [answers] = await server.durable([script(_ALLOW, [of_period], [devices, keep, *questions])])
    return [bool(answer) for answer in answers]


class Subjects:
    """Accounts identified by the signed tokens of one OpenID Connect provider.

    `audiences` are the accepted values of "aud": the app's name at the provider, or the issuer.
    """

    def __init__(self, provider: str, keys: ProviderKeys, audiences: Sequence[str]) -> None:
        self._provider, self._keys, self._audiences = provider, keys, audiences

    async def account(self, token: str) -> str:
        """The account of a token, which never equals a key's account or another provider's.

        Raises:
            AccessRefused: the token is not of the provider, not for these audiences, or expired.
            ServiceUnavailable: the provider's keys are unknown, and it does not answer.
        """
        claims, _ = await self._keys.open_token(token, *self._audiences)
        # Cannot collide: names of keys begin differently, and an address has no space.
        return f"/{self._provider} {claims['sub']}"


_log: Final = logging.getLogger("hubbub.issuer")

PATH: Final = "/v1/tokens"
_MESSAGE: Final = b"application/protobuf"
_LARGEST_BYTES: Final = 1 << 20
_MAX_FIELDS: Final = _LARGEST_BYTES // 32  # an element's bytes
# A page sends its account's key itself, without cookies.
_ANYONE: Final = bodies_and_problems.open_to_pages(b"authorization, content-type")


class TokensApp:
    """The ASGI application of POST /v1/tokens.

    `server` is the Redis that remembers what accounts had; `key` is the issuer's private key;
    without `subjects` only keys identify accounts. `counts` holds the number of requests by
    outcome, `tokens` that of tokens.
    """

    def __init__(
        self,
        streams: IssuedStreams,
        accounts: Accounts,
        server: RedisServer,
        key: bytes,
        *,
        limiter: Limiter,
        subjects: Subjects | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._server, self._subjects = server, subjects
        self.use(streams, accounts)
        self._key, self._limiter, self._clock = key, limiter, clock
        self.counts: Counter[str] = Counter(issued=0)
        self.tokens: Counter[str] = Counter(issued=0, refused=0, not_given=0)

    def use(self, streams: IssuedStreams, accounts: Accounts) -> None:
        """Replaces streams and accounts from now on."""
        self._streams, self._accounts = streams, accounts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        await bodies_and_problems.respond(self._answer(scope, receive), send, _log, _ANYONE)

    async def _answer(self, scope: Scope, receive: Receive) -> bodies_and_problems.Answer:
        if scope["path"] == "/health":
            return HTTPStatus.OK, ((b"content-type", b"text/plain"),), b"ok\n"
        if scope["path"] != PATH:
            raise self._refusal("no_request", HTTPStatus.NOT_FOUND, f"tokens are at {PATH}")
        if scope["method"] == "OPTIONS":
            return HTTPStatus.NO_CONTENT, (), b""
        if scope["method"] != "POST":
            raise self._refusal("no_request", HTTPStatus.METHOD_NOT_ALLOWED, "it takes POST")
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        address = network_of(scope["client"])
        try:
            account, is_named = await self._account(headers)
        except bodies_and_problems.Refused:
            self._charge(address)
            raise
        # A backend requests tokens of all its users from one address.
        caller = f"account {account}" if is_named else address
        self._charge(caller)
        body = await bodies_and_problems.read_body(receive, _LARGEST_BYTES)
        if body is None:
            raise self._refusal("too_large", HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "1 MiB at most")
        request = read_message(TokenRequest.FromString, body, _MAX_FIELDS)
        if not isinstance(request, str) and any(len(UnknownFieldSet(w)) for w in request.wanted):
            request = "fields that this version does not know"
        if isinstance(request, str):
            raise self._refusal("no_request", HTTPStatus.BAD_REQUEST, request)
        elements = sum(len(stream_request.blinded) for stream_request in request.wanted)
        self._limiter.charge(caller, max(0, elements - 1))  # one was for the request
        response = await self._issue(account, request)
        self.counts["issued"] += 1
        answer_headers = ((b"content-type", _MESSAGE), (b"cache-control", b"no-store"))
        return HTTPStatus.OK, answer_headers, response.SerializeToString()

    def _refusal(self, reason: str, status: HTTPStatus, detail: str) -> bodies_and_problems.Refused:
        self.counts[reason] += 1
        return bodies_and_problems.Refused(status, detail)

    def _charge(self, caller: str) -> None:
        """Charges the caller for one token; raises Refused if it has asked for too many."""
        if wait_seconds := self._limiter.wait_seconds(caller):
            detail = "too many requests for tokens from one address; try again later"
            self.counts["peer_limit"] += 1
            raise bodies_and_problems.refused_for_now(hint_seconds(wait_seconds), detail)
        self._limiter.charge(caller, 1)

    async def _account(self, headers: Mapping[bytes, str]) -> tuple[str, bool]:
        scheme, _, token = headers.get(b"authorization", "").partition(" ")
        token = token.strip() if scheme.lower() == "bearer" else ""
        try:
            # Header, claims, signature: a key of ours never has two dots.
            if self._subjects and token.count(".") == 2:  # noqa: PLR2004
                return await self._subjects.account(token), False
            return self._accounts.account(token, headers.get(b"hubbub-account", ""))
        except AccessRefused as error:
            raise self._refusal("no_account", HTTPStatus.UNAUTHORIZED, str(error)) from None
        except ServiceUnavailable as error:
            status = HTTPStatus.SERVICE_UNAVAILABLE
            raise self._refusal("provider_away", status, str(error)) from None

    async def _issue(self, account: str, request: TokenRequest) -> TokenResponse:
        table = self._streams  # a reload meanwhile concerns the next request
        requests = self._blinded_elements(request, table.streams)
        try:
            # Checked before they use up anything.
            elements = [element for wanted in request.wanted for element in wanted.blinded]
            await asyncio.to_thread(poprf.check_elements, elements)
            allowed: dict[tuple[str, int], bool] = {}
            for period, blinded in requests.items():
                closes = max(table.streams[name].closes(period[1]) for name in blinded)
                keep, devices = max(1, math.ceil(closes - self._clock())), table.devices
                record = self._server, self._key, account
                answers = await allow(*record, period, blinded, devices=devices, keep=keep)
                allowed |= zip(((name, period[1]) for name in blinded), answers, strict=True)
            return await asyncio.to_thread(self._evaluate_request, request, allowed, table.streams)
        except StoreUnavailable:
            detail = "the accounts' records are not available now; try again"
            raise self._refusal("store_away", HTTPStatus.SERVICE_UNAVAILABLE, detail) from None
        except BadParameter as error:
            raise self._refusal("no_request", HTTPStatus.BAD_REQUEST, str(error)) from None

    def _blinded_elements(
        self, request: TokenRequest, streams: Mapping[str, IssuedStream]
    ) -> dict[tuple[int, int], dict[str, Sequence[bytes]]]:
        """The blinded elements for open streams with tokens, by epoch and stream; no others."""
        now = self._clock()
        requests: dict[tuple[int, int], dict[str, Sequence[bytes]]] = {}
        keys: set[tuple[str, int]] = set()
        for stream_request in request.wanted:
            if (stream_request.stream, stream_request.epoch) in keys or not stream_request.blinded:
                detail = f"{stream_request.stream!a}: ask once, for one token or more"
                raise self._refusal("no_request", HTTPStatus.BAD_REQUEST, detail)
            keys.add((stream_request.stream, stream_request.epoch))
            stream = streams.get(stream_request.stream)
            if stream is not None and stream.tokens and stream.is_open(stream_request.epoch, now):
                of_epoch = requests.setdefault((stream.epoch_seconds, stream_request.epoch), {})
                of_epoch[stream_request.stream] = stream_request.blinded
        return requests

    def _evaluate_request(
        self,
        request: TokenRequest,
        allowed: Mapping[tuple[str, int], bool],
        streams: Mapping[str, IssuedStream],
    ) -> TokenResponse:
        response = TokenResponse()
        for stream_request in request.wanted:
            may = allowed.get((stream_request.stream, stream_request.epoch))
            if not may:
                reason = "not_given" if may is None else "refused"
                self.tokens[reason] += len(stream_request.blinded)
                response.issued.append(IssuedTokens(not_given=may is None))
                continue
            info = token_info(stream_request.stream, stream_request.epoch)
            # A device of another bundle may ask for more than this table gives.
            elements = stream_request.blinded[: streams[stream_request.stream].tokens]
            evaluated, proof = poprf.blind_evaluate(self._key, elements, info)
            self.tokens["issued"] += len(evaluated)
            response.issued.append(IssuedTokens(evaluated=evaluated, proof=proof))
        return response
