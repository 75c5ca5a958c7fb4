"""Verifies tokens of an OpenID Connect provider: who signed them, for whom, and when.

Sources: JSON Web Tokens, RFC 7519; access tokens, RFC 9068; OpenID Connect Core 1.0, sec. 3.1.3.7.
joserfc verifies signatures. Keys are fetched when first needed, never at the start, so that a
provider that is down does not keep out people whose token's key is known.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast
from urllib.parse import urlsplit

import httpx2
from joserfc import jwt
from joserfc.errors import (
    ExpiredTokenError,
    InvalidClaimError,
    InvalidKeyIdError,
    JoseError,
    MissingClaimError,
)
from joserfc.jwk import KeySet
from joserfc.jws import JWSRegistry

from hubbub.errors import AccessRefused, ServiceUnavailable
from hubbub.errors.address_checks import proxy_to, secure_parts
from hubbub.errors.message_words import visible
from hubbub.errors.tls_authorities import trusting_file

if TYPE_CHECKING:
    import ssl

# Only signatures by a key that the provider alone has; none by a shared secret.
ALGORITHMS: Final = (
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "EdDSA",
    "Ed25519",
)
LEEWAY_SECONDS: Final = 60
"""So far two clocks may be apart."""

# Types of accepted tokens: neither logout notices nor token responses.
_TYPES: Final = {"", "jwt", "at+jwt", "application/at+jwt"}
_LONGEST: Final = 200
_END_OF_DATES: Final = 253_402_300_800  # of the year 10000, in seconds since 1970
_LONGEST_SUBJECT: Final = 255  # OpenID Connect Core 1.0, sec. 2

Claims = Mapping[str, Any]


def open_claims(token: str, keys: KeySet, algorithms: Sequence[str]) -> tuple[Claims, Claims]:
    """Claims and header of a signed token.

    Raises:
        joserfc.errors.InvalidKeyIdError: it is signed by a key that is not in `keys`.
        AccessRefused: it is of a kind that gives no access.
    """
    registry = JWSRegistry(algorithms=list(algorithms), strict_check_header=False)
    jwt_object = jwt.decode(token, keys, registry=registry)
    kind = jwt_object.header.get("typ", "")
    if not isinstance(kind, str) or kind.lower() not in _TYPES:
        raise AccessRefused("the token's type is not accepted")
    return jwt_object.claims, jwt_object.header


def check_claims(claims: Claims, *, issuer: str, audiences: Sequence[str], now: float) -> None:
    """Raises AccessRefused unless the claims are of `issuer`, for an audience, and valid now."""
    for name in ("exp", "nbf", "iat"):
        moment = claims.get(name, 0)
        if isinstance(moment, int | float) and not abs(moment) < _END_OF_DATES:
            raise AccessRefused(f'the token\'s "{name}" is no time')
    options = {
        "iss": {"essential": True, "value": issuer},
        "sub": {"essential": True},
        "aud": {"essential": True, "values": list(audiences)},
        "exp": {"essential": True},
    }
    registry = jwt.JWTClaimsRegistry(now=int(now), leeway=LEEWAY_SECONDS, **options)  # type: ignore[arg-type]  # its own TypedDict
    try:
        registry.validate(dict(claims))
    except ExpiredTokenError as error:
        ago = now - float(claims["exp"])
        raise AccessRefused(f"the token expired {ago:,.0f} seconds ago; get a new one") from error
    except MissingClaimError as error:
        raise AccessRefused(f'the token has no "{error.claim}"') from error
    except InvalidClaimError as error:
        raise AccessRefused(_claim_problem(error.claim, claims, audiences, now)) from error
    subject = claims["sub"]
    is_text = isinstance(subject, str) and 0 < len(subject) <= _LONGEST_SUBJECT
    if not is_text or not subject.isprintable():  # half of a surrogate pair cannot be encoded
        raise AccessRefused(
            f'the token\'s "sub" is not a text of up to {_LONGEST_SUBJECT} printable letters'
        )


def _claim_problem(claim: str, claims: Claims, audiences: Sequence[str], now: float) -> str:
    if claim == "aud":
        audience = claims["aud"]
        audience_text = ", ".join(map(str, audience)) if isinstance(audience, list) else audience
        return (
            f'the token is for another audience, "{shorten(str(audience_text))}"; configure the '
            f'provider to issue it for "{" or ".join(audiences)}", or add that audience '
            "to this service"
        )
    if claim == "iss":
        return "the token's issuer is not the one of this service"
    if claim in {"iat", "nbf"} and isinstance(claims[claim], int | float):
        seconds_ahead = float(claims[claim]) - now
        return (
            f"the token becomes valid {seconds_ahead:,.0f} seconds from now: correct the clock of "
            "this machine or of the provider"
        )
    return f'the token\'s "{claim}" is invalid'


def shorten(text: str) -> str:
    """The text, shortened and with control characters visible, for errors and lists."""
    return visible(text)[:_LONGEST]


CALL_SECONDS: Final = 10.0
# A provider's description and keys have some kilobytes.
_LARGEST_BYTES: Final = 1 << 20
_FAULTS: Final = (httpx2.HTTPError, httpx2.InvalidURL, ValueError, TimeoutError, RecursionError)
_FRESH_SECONDS: Final = 3600.0
# Least time between requests, since anybody can send the name of an unknown key.
_APART_SECONDS: Final = 10.0
_ENDPOINTS: Final = ("authorization_endpoint", "token_endpoint", "jwks_uri")
_WELL_KNOWN: Final = "/.well-known/openid-configuration"


_T = TypeVar("_T")


class _Document(Generic[_T]):
    """A document of the provider, fetched by one caller at a time and cached."""

    def __init__(self, fetch: Callable[[], Awaitable[_T]], clock: Callable[[], float]) -> None:
        self._fetch, self._clock = fetch, clock
        self._fetching = asyncio.Lock()
        self._value: _T | None = None
        self._fetched = self._tried = float("-inf")
        self._error = ServiceUnavailable("the provider has not been queried yet")

    async def value(self, max_age_seconds: float) -> _T:
        """The document, fetched again if older than `max_age_seconds`; else the cached one.

        Raises ServiceUnavailable if it was never fetched, and cannot be now.
        """
        if self._value is not None and self._is_since(self._fetched, max_age_seconds):
            return self._value
        async with self._fetching:
            if not self._is_since(self._tried, _APART_SECONDS):
                try:
                    self._value = await self._fetch()
                    self._fetched = self._clock()
                except ServiceUnavailable as error:
                    self._error = error
                finally:
                    self._tried = self._clock()
        if self._value is None:
            raise self._error
        return self._value

    def _is_since(self, moment: float, seconds: float) -> bool:
        # A clock that is set back is no reason to wait.
        return 0 <= self._clock() - moment < seconds


class ProviderKeys:
    """The keys of one provider.

    `issuer` is the provider's URL as its description gives it; `authority` a PEM file that its
    certificate chains to, None for the system's; `clock` returns seconds since 1970; `remedy` is
    the advice in errors while the provider is down. Raises KeysUnusable if the file has no
    authority.
    """

    def __init__(
        self,
        issuer: str,
        authority: Path | None,
        clock: Callable[[], float],
        remedy: str = "try again",
    ) -> None:
        self._issuer, self._clock, self._remedy = issuer, clock, remedy
        self.verify: ssl.SSLContext | bool = trusting_file(authority) if authority else True
        self._description = _Document(self._fetch_description, clock)
        self._keys = _Document(self._fetch_keys, clock)

    async def open_token(self, token: str, *audiences: str) -> tuple[Claims, Claims]:
        """Claims and header of a token that the provider signed for one of these audiences.

        Raises:
            AccessRefused: the provider did not sign it, or not for them, or it has expired.
            ServiceUnavailable: the provider's keys are unknown, and it does not answer.
        """
        metadata = await self.description()
        offered = metadata.get("id_token_signing_alg_values_supported")
        if not isinstance(offered, list):
            offered = ["RS256"]
        algorithms = [algorithm for algorithm in ALGORITHMS if algorithm in offered] or ["RS256"]
        try:
            keys = await self._keys.value(_FRESH_SECONDS)
            try:
                claims, header = open_claims(token, keys, algorithms)
            except InvalidKeyIdError:
                keys = await self._keys.value(_APART_SECONDS)
                claims, header = open_claims(token, keys, algorithms)
        except InvalidKeyIdError as error:
            raise AccessRefused("no key of the provider signed the token") from error
        except (JoseError, ValueError, TypeError, KeyError, RecursionError) as error:
            raise AccessRefused("the token is not signed by the provider") from error
        check_claims(claims, issuer=self._issuer, audiences=audiences, now=self._clock())
        return claims, header

    async def description(self) -> Mapping[str, Any]:
        """The provider's own description (its metadata). Raises ServiceUnavailable."""
        return await self._description.value(_FRESH_SECONDS)

    async def _fetch_keys(self) -> KeySet:
        document: Any = await self.ask((await self.description())["jwks_uri"])
        try:
            return KeySet.import_key_set(document)
        except (JoseError, ValueError, TypeError, KeyError) as error:
            raise ServiceUnavailable(
                "the provider's jwks_uri returns no valid set of keys"
            ) from error

    async def _fetch_description(self) -> Mapping[str, Any]:
        document = await self.ask(self._issuer.rstrip("/") + _WELL_KNOWN)
        if (name := document.get("issuer")) != self._issuer:
            raise ServiceUnavailable(
                f'the provider at {self._issuer} calls itself "{visible(str(name))[:200]}"; write '
                "the issuer as it does"
            )
        for name in _ENDPOINTS:
            check_address(name, document.get(name))
        return document

    async def ask(self, url: str, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Fetches JSON from one of the provider's addresses. Raises ServiceUnavailable."""
        try:
            async with (
                asyncio.timeout(CALL_SECONDS),  # of the whole call: a body may drip
                httpx2.AsyncClient(**self.calling(url)) as client,
            ):
                answer = await client.get(url, headers=headers)
            document = json.loads(answer.raise_for_status().content)
        except _FAULTS as error:
            raise self.down(error) from error
        if not isinstance(document, dict):
            raise ServiceUnavailable(f"the provider's answer at {url} is invalid")
        return document

    def calling(self, url: str) -> dict[str, Any]:
        """HTTPX options for calls to one of the provider's addresses."""
        return {
            "timeout": CALL_SECONDS,
            "follow_redirects": False,
            "headers": {"accept-encoding": "identity"},
            "event_hooks": {"response": [_read_bounded]},
            "verify": self.verify,
            "trust_env": proxy_to(urlsplit(url).hostname or "") != "",
        }

    def down(self, error: Exception) -> ServiceUnavailable:
        """The error to raise for a failed call to the provider."""
        return ServiceUnavailable(
            f"the provider at {self._issuer} does not answer as one ({type(error).__name__}); "
            f"{self._remedy}"
        )


async def _read_bounded(answer: httpx2.Response) -> None:
    """Reads an answer of a provider. Raises ServiceUnavailable if it is large or compressed."""
    if answer.headers.get("content-encoding", "identity").lower() != "identity":
        raise ServiceUnavailable(f"the provider's answer at {answer.url} is compressed, unasked")
    body = bytearray()
    async for part in cast("httpx2.AsyncByteStream", answer.stream):
        body += part
        if len(body) > _LARGEST_BYTES:
            raise ServiceUnavailable(f"the provider's answer at {answer.url} is too large")
    answer.stream = httpx2.ByteStream(bytes(body))


def check_address(name: str, url: object) -> None:
    """Raises ServiceUnavailable unless an endpoint's URL is https, or http on loopback."""
    if not isinstance(url, str) or secure_parts(url) is None:
        raise ServiceUnavailable(f"the provider's {name} is not an https address")
