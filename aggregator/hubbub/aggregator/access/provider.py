"""The provider of OpenID Connect, as one where people log in: its answers to a code.

Authlib speaks OAuth 2.0 (authorization code, PKCE with S256: RFC 6749, RFC 7636). The provider is
asked when somebody logs in, and for keys that are not known yet; never at the start, so that one
that is down keeps nobody out who is in.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlencode

import httpx2
from authlib.common.security import generate_token
from authlib.integrations.base_client import OAuthError
from authlib.integrations.httpx_client import AsyncOAuth2Client

from hubbub.aggregator.access.access_file import Oidc
from hubbub.aggregator.access.claims import check_id_token
from hubbub.aggregator.access.sessions import Begun
from hubbub.errors import AccessRefused, ServiceUnavailable
from hubbub.errors.printable import visible
from hubbub.runtime.oidc import Claims, ProviderKeys, check_address, check_claims
from hubbub.runtime.oidc.provider_keys import CALL_SECONDS

CALLBACK: Final = "/login/callback"

_SECRET_LENGTH: Final = 43  # 256 bits, as RFC 7636 wants of a verifier
_REMEDY: Final = "try again, or use a token of hubbub keys token"


class Provider:
    """One provider. clock: seconds since 1970."""

    def __init__(self, settings: Oidc, clock: Callable[[], float]) -> None:
        self.settings = settings
        self._clock = clock
        self._keys = ProviderKeys(settings.issuer, settings.authority, clock, _REMEDY)

    async def begin(self, to: str, *, anew: bool = False) -> tuple[str, Begun]:
        """Where a browser goes to log in, and what the answer must match.

        anew: as somebody else, perhaps, than whom the provider knows.

        Raises:
            ServiceUnavailable: the provider does not answer, or not as one.
        """
        described = await self._keys.description()
        state, nonce, verifier = (generate_token(_SECRET_LENGTH) for _ in range(3))
        begun = Begun(state, nonce, verifier, to)
        async with self._client(described) as client:
            url, _ = client.create_authorization_url(
                described["authorization_endpoint"],
                state=begun.state,
                nonce=begun.nonce,
                code_verifier=begun.verifier,
                **({"prompt": "login"} if anew else {}),
            )
        return url, begun

    async def finish(self, begun: Begun, answer: Mapping[str, str]) -> Claims:
        """Who logged in, by what the provider answered to the browser.

        Raises:
            AccessRefused: it let nobody in, or its answer is not to this login.
            ServiceUnavailable: the provider does not answer, or not as one.
        """
        described = await self._keys.description()
        issuer = described["issuer"]
        if answer.get("iss", issuer) != issuer:  # RFC 9207: another provider's answer
            raise AccessRefused("the answer is another provider's; log in again")
        if "error" in answer:
            raise AccessRefused(f"the provider let nobody in: {_said(answer)}")
        if not answer.get("code"):
            raise AccessRefused("the provider's answer has no code; log in again")
        async with self._client(described) as client:
            token = await self._exchanged(client, described, begun, answer["code"])
            access_token = str(token.get("access_token", ""))
            claims, header = await self._keys.opened(str(token.get("id_token", "")))
            self._check(claims, self.settings.client)
            check_id_token(
                claims,
                header,
                client=self.settings.client,
                nonce=begun.nonce,
                access_token=access_token,
            )
            return await self._with_more(described, claims, access_token)

    async def read(self, token: str) -> Claims:
        """Who a program's token is about.

        Raises:
            AccessRefused: it is not the provider's, not for us, or not of now.
            ServiceUnavailable: the provider's keys are not known, and it does not answer.
        """
        claims, _ = await self._keys.opened(token)
        self._check(claims, self.settings.audience)
        return claims

    async def logout_url(self) -> str | None:
        """Where a browser goes to log out there too; None where there is no such place."""
        try:
            described = await self._keys.description()
        except ServiceUnavailable:
            return None
        if not isinstance(end := described.get("end_session_endpoint"), str):
            return None
        parameters = {
            "client_id": self.settings.client,
            "post_logout_redirect_uri": f"{self.settings.origin}/",
        }
        return f"{end}{'&' if '?' in end else '?'}{urlencode(parameters)}"

    def _check(self, claims: Claims, audience: str) -> None:
        own = self.settings
        check_claims(claims, issuer=own.issuer, audiences=(audience,), now=self._clock())

    async def _exchanged(
        self, client: AsyncOAuth2Client, described: Mapping[str, Any], begun: Begun, code: str
    ) -> Mapping[str, Any]:
        try:
            tokens: Mapping[str, Any] = await client.fetch_token(
                described["token_endpoint"],
                grant_type="authorization_code",
                code=code,
                code_verifier=begun.verifier,
            )
        except OAuthError as error:
            reason = visible(f"{error.error}: {error.description or ''}"[:200])
            raise AccessRefused(
                f"the provider does not take what it sent ({reason}); log in again, and if that "
                "does not help, compare client, secret and origin with what the provider has"
            ) from error
        except (httpx2.HTTPError, ValueError) as error:
            raise self._keys.down(error) from error
        if not tokens.get("id_token"):
            raise ServiceUnavailable("the provider's answer has no ID token: is it OpenID Connect?")
        return tokens

    async def _with_more(self, described: Mapping[str, Any], claims: Claims, token: str) -> Claims:
        """The claims, with those that the provider tells at its userinfo endpoint alone."""
        first = self.settings.groups_claim.partition(".")[0]
        has_claims = self.settings.groups_claim in claims or first in claims
        where = described.get("userinfo_endpoint")
        if has_claims or not where or not token:
            return claims
        check_address("userinfo_endpoint", where)
        headers = {"authorization": f"Bearer {token}"}
        more = await self._keys.ask(where, headers)
        # Core 1.0, sec. 5.3.2: of somebody else it must not be used.
        return {**more, **claims} if more.get("sub") == claims["sub"] else claims

    def _client(self, described: Mapping[str, Any]) -> AsyncOAuth2Client:
        own = self.settings
        ways = described.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        way = "client_secret_basic" if "client_secret_basic" in ways else "client_secret_post"
        return AsyncOAuth2Client(
            own.client,
            own.secret or None,
            token_endpoint_auth_method=way if own.secret else "none",
            redirect_uri=own.origin + CALLBACK,
            scope=" ".join(own.scopes),
            code_challenge_method="S256",
            timeout=CALL_SECONDS,
            verify=self._keys.verify,
            follow_redirects=False,
        )


def _said(answer: Mapping[str, str]) -> str:
    return visible(f"{answer['error']} {answer.get('error_description', '')}".strip())[:300]
