"""A provider of OpenID Connect, as far as tokens tell: its own description, and its keys.

joserfc reads what is signed. The provider is asked for keys that are not known yet; never at the
start, so that one that is down keeps nobody out whose token's key is known.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import httpx2
from joserfc.errors import InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet

from hubbub.errors import AccessRefused, KeysUnusable, ServiceUnavailable
from hubbub.errors.authorities import trusting_file
from hubbub.errors.printable import visible
from hubbub.runtime.oidc.signed_claims import ALGORITHMS, Claims, opened
from hubbub.runtime.tls import is_loopback

if TYPE_CHECKING:
    import ssl

CALL_SECONDS: Final = 10.0
_FRESH_SECONDS: Final = 3600.0
# An unknown key's name, which anybody may write, has us ask no more often.
_APART_SECONDS: Final = 10.0
_ENDPOINTS: Final = ("authorization_endpoint", "token_endpoint", "jwks_uri")
_WELL_KNOWN: Final = "/.well-known/openid-configuration"


class ProviderKeys:
    """One provider.

    issuer: its address, as its description says it. authority: a PEM file that its certificate
    chains to; None for the system's. clock: seconds since 1970. remedy: what who asks may do while
    it is down.

    Raises:
        KeysUnusable: the file has no authority.
    """

    def __init__(
        self,
        issuer: str,
        authority: Path | None,
        clock: Callable[[], float],
        remedy: str = "try again",
    ) -> None:
        self._issuer, self._clock, self._remedy = issuer, clock, remedy
        try:
            self.verify: ssl.SSLContext | bool = trusting_file(authority) if authority else True
        except OSError as error:
            raise KeysUnusable(f"{authority}: no authorities: {error.strerror}") from error
        self._described: tuple[float, Mapping[str, Any]] | None = None
        self._keys: tuple[float, KeySet] | None = None

    async def opened(self, token: str) -> tuple[Claims, Claims]:
        """A token's claims and header, if the provider signed it; check_claims looks at them.

        Raises:
            AccessRefused: it did not.
            ServiceUnavailable: its keys are not known, and it does not answer.
        """
        described = await self.description()
        offered = described.get("id_token_signing_alg_values_supported") or ["RS256"]
        algorithms = [one for one in ALGORITHMS if one in offered] or ["RS256"]
        try:
            return self._signed(token, await self._key_set(), algorithms)
        except InvalidKeyIdError:
            return self._signed(token, await self._key_set(new=True), algorithms, last=True)

    @staticmethod
    def _signed(
        token: str, keys: KeySet, algorithms: list[str], *, last: bool = False
    ) -> tuple[Claims, Claims]:
        try:
            return opened(token, keys, algorithms)
        except InvalidKeyIdError as error:
            if not last:
                raise
            raise AccessRefused("the token is signed by no key of the provider's") from error
        except (JoseError, ValueError, TypeError, KeyError, RecursionError) as error:
            raise AccessRefused("the token is not signed by the provider") from error

    async def _key_set(self, *, new: bool = False) -> KeySet:
        now = self._clock()
        held = self._keys
        if held and now - held[0] < (_APART_SECONDS if new else _FRESH_SECONDS):
            return held[1]
        described = await self.description()
        try:
            told: Any = await self.ask(described["jwks_uri"])
            keys = KeySet.import_key_set(told)
        except (ServiceUnavailable, JoseError, ValueError, TypeError, KeyError) as error:
            if held:
                return held[1]  # what was signed with these is signed
            if isinstance(error, ServiceUnavailable):
                raise
            raise ServiceUnavailable("the provider's keys cannot be read") from error
        self._keys = now, keys
        return keys

    async def description(self) -> Mapping[str, Any]:
        """What it says of itself. Raises ServiceUnavailable."""
        now = self._clock()
        if self._described and now - self._described[0] < _FRESH_SECONDS:
            return self._described[1]
        issuer = self._issuer
        try:
            found = await self.ask(issuer.rstrip("/") + _WELL_KNOWN)
        except ServiceUnavailable:
            if self._described:
                return self._described[1]
            raise
        if found.get("issuer") != issuer:
            raise ServiceUnavailable(
                f'the provider at {issuer} calls itself "{visible(str(found.get("issuer")))[:200]}"'
                "; write the issuer as it does"
            )
        for name in _ENDPOINTS:
            check_address(name, found.get(name))
        self._described = now, found
        return found

    async def ask(self, url: str, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
        """What stands at one of its addresses, as JSON. Raises ServiceUnavailable."""
        try:
            async with httpx2.AsyncClient(
                verify=self.verify, timeout=CALL_SECONDS, follow_redirects=False
            ) as client:
                answer = await client.get(url, headers=headers)
            answer.raise_for_status()
            found = answer.json()
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
            raise self.down(error) from error
        if not isinstance(found, dict):
            raise ServiceUnavailable(f"the provider's answer at {url} is none")
        return found

    def down(self, error: Exception) -> ServiceUnavailable:
        """What to raise for a call to it that failed."""
        return ServiceUnavailable(
            f"the provider at {self._issuer} does not answer as one ({type(error).__name__}); "
            f"{self._remedy}"
        )


def check_address(name: str, url: object) -> None:
    """Raises ServiceUnavailable unless an endpoint of a provider is at an https address."""
    parts = urlsplit(url) if isinstance(url, str) else urlsplit("")
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.netloc)):
        raise ServiceUnavailable(f"the provider's {name} is no https address")
