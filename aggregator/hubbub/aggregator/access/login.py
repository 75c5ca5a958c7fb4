"""Login: of people by the provider's page and a session, of programs by the provider's tokens.

Authlib implements OAuth 2.0 (authorization code, PKCE with S256: RFC 6749, RFC 7636). The service
contacts the provider when somebody logs in, and for unknown keys; never at the start, so that an
unreachable provider does not affect people who are logged in.
"""

import asyncio
import secrets
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlencode

import httpx2
from authlib.common.security import generate_token
from authlib.integrations.base_client import OAuthError
from authlib.integrations.httpx_client import AsyncOAuth2Client
from authlib.oidc.core import CodeIDToken
from joserfc.errors import JoseError

from hubbub.aggregator.access.access_file import Oidc
from hubbub.aggregator.access.sessions import Begun, EndedSessions, Session, Sessions
from hubbub.aggregator.access.tokens import Caller, Grant, Way, granted
from hubbub.errors import AccessRefused, ServiceUnavailable
from hubbub.errors.message_words import visible
from hubbub.runtime.oidc_tokens import CALL_SECONDS, Claims, ProviderKeys, check_address, shorten


def groups_of(claims: Claims, claim: str) -> tuple[str, ...] | None:
    """Groups in a claim, by its name or by a dotted path; None if the claim is missing.

    A claim that is a single text is one group.
    """
    value: Any = claims
    for name in [claim] if claim in claims else claim.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list):
        return tuple(group for group in value if isinstance(group, str))
    return None


def name_of(claims: Claims) -> str:
    """The name of the person for display."""
    names = (claims.get(claim) for claim in ("email", "preferred_username", "name", "sub"))
    return shorten(next(name for name in names if isinstance(name, str) and name))


CALLBACK: Final = "/login/callback"

_SECRET_LENGTH: Final = 43  # 256 bits, as RFC 7636 wants of a verifier
_REMEDY: Final = "try again, or use a token of hubbub keys token"


class Login:
    """Login at a provider.

    Its methods raise ServiceUnavailable if the provider is needed, and does not answer, or not as
    a provider.

    Args:
        rights: grants by group.
        clock: seconds since 1970.
        ended: ended sessions.
    """

    def __init__(
        self,
        oidc: Oidc,
        rights: Mapping[str, Grant],
        clock: Callable[[], float],
        ended: EndedSessions,
    ) -> None:
        self.oidc = oidc
        self.rights = rights
        self._clock = clock
        self._ended = ended
        self._keys = ProviderKeys(oidc.issuer, oidc.authority, clock, _REMEDY)
        self._sessions = Sessions(oidc.session_keys, clock)

    async def begin(self, return_path: str, *, anew: bool = False) -> tuple[str, Begun, str]:
        """Address to visit, what the answer must match, and the cookie of the begun login.

        With `anew`, the provider must ask who it is, even if it knows.
        """
        metadata = await self._keys.description()
        state, nonce, verifier = (generate_token(_SECRET_LENGTH) for _ in range(3))
        begun = Begun(state, nonce, verifier, return_path)
        async with self._client(metadata) as client:
            url, _ = client.create_authorization_url(
                metadata["authorization_endpoint"],
                state=begun.state,
                nonce=begun.nonce,
                code_verifier=begun.verifier,
                **({"prompt": "login"} if anew else {}),
            )
        return url, begun, self._sessions.seal_login(begun)

    def started_login(self, cookie: str, state: str) -> Begun:
        """The login that an answer belongs to. Raises AccessRefused for one of another browser."""
        login = self._sessions.open_login(cookie) if cookie else None
        if login is None or login.state != state:
            raise AccessRefused(
                "this login began in another browser or more than ten minutes ago, or has ended; "
                "log in again"
            )
        return login

    async def finish(self, begun: Begun, answer: Mapping[str, str]) -> tuple[Caller, str]:
        """The person who logged in, and their session as a cookie.

        `answer` is the provider's to the browser. Raises AccessRefused if the login failed, or if
        the answer belongs to another login, or if the person has no access.
        """
        claims = await self._claims(begun, answer)
        until = int(self._clock()) + self.oidc.session_seconds
        caller = self._caller(claims, "login", until)
        session = Session(
            id=secrets.token_urlsafe(16),
            issuer=self.oidc.issuer,
            client=self.oidc.client,
            subject=caller.subject,
            name=caller.name,
            groups=caller.groups,
            until=until,
        )
        return caller, self._sessions.seal(session)

    async def session(self, cookie: str) -> Caller | None:
        """The caller of a session, with the current rights of its groups; None if it is over.

        Raises StoreUnavailable if it is unknown whether the session was ended.
        """
        session = self._sessions.read_session(cookie)
        ours = (self.oidc.issuer, self.oidc.client)
        if session is None or (session.issuer, session.client) != ours:
            return None
        if await self._ended.has(session.id):
            return None
        return Caller(
            name=session.name,
            way="login",
            grants=granted(session.groups, self.rights),
            subject=session.subject,
            groups=session.groups,
            until=session.until,
        )

    async def script(self, token: str) -> Caller:
        """The caller of a program's token. Raises AccessRefused for one that is not for us."""
        claims, _ = await self._keys.open_token(token, self.oidc.audience)
        return self._caller(claims, "script", int(claims["exp"]))

    async def end(self, cookie: str) -> str | None:
        """Ends a session with all its copies; the provider's logout address, if it has one.

        Raises StoreUnavailable if the session continues.
        """
        if session := self._sessions.read_session(cookie):
            await self._ended.end(session.id, session.until)
        try:
            metadata = await self._keys.description()
        except ServiceUnavailable:
            return None
        if not isinstance(end := metadata.get("end_session_endpoint"), str):
            return None
        parameters = {
            "client_id": self.oidc.client,
            "post_logout_redirect_uri": f"{self.oidc.origin}/",
        }
        return f"{end}{'&' if '?' in end else '?'}{urlencode(parameters)}"

    def _caller(self, claims: Claims, way: Way, until: int) -> Caller:
        claim, name = self.oidc.groups_claim, name_of(claims)
        groups = groups_of(claims, claim)
        if groups is None:
            raise AccessRefused(
                f"{name} has logged in, but the provider sends no groups: it must put the claim "
                f'"{claim}" into its tokens, or the access file has to name another as groups_claim'
            )
        own_groups = tuple(right for right in self.rights if right in groups)
        if not own_groups:
            raise AccessRefused(
                f"{name} has logged in, but has no group with access; ask the operator of this "
                "service for a group of its access file"
            )
        return Caller(
            name=name,
            way=way,
            grants=granted(own_groups, self.rights),
            subject=str(claims["sub"]),
            groups=own_groups,
            until=until,
        )

    async def _claims(self, begun: Begun, answer: Mapping[str, str]) -> Claims:
        metadata = await self._keys.description()
        issuer = metadata["issuer"]
        if answer.get("iss", issuer) != issuer:  # RFC 9207: another provider's answer
            raise AccessRefused("the answer is another provider's; log in again")
        if "error" in answer:
            problem = f"{answer['error']} {answer.get('error_description', '')}".strip()
            raise AccessRefused(f"the provider refused the login: {visible(problem)[:300]}")
        if not answer.get("code"):
            raise AccessRefused("the provider's answer has no code; log in again")
        async with self._client(metadata) as client:
            token = await self._exchange_code(client, metadata, begun, answer["code"])
            access_token = str(token.get("access_token", ""))
            claims, header = await self._keys.open_token(str(token["id_token"]), self.oidc.client)
            parameters = {
                "nonce": begun.nonce,
                "client_id": self.oidc.client,
                "access_token": access_token,
            }
            checked = CodeIDToken(claims, header, None, parameters)
            try:  # that the token answers the begun login, for this client
                checked.validate_nonce()
                checked.validate_azp()
                checked.validate_at_hash()
            except JoseError as error:
                claim = getattr(error, "claim", "")
                raise AccessRefused(
                    f'the provider\'s answer belongs to another login ("{claim}" differs); log in '
                    "again"
                ) from error
            return await self._with_userinfo(metadata, claims, access_token)

    async def _exchange_code(
        self, client: AsyncOAuth2Client, metadata: Mapping[str, Any], begun: Begun, code: str
    ) -> Mapping[str, Any]:
        try:
            async with asyncio.timeout(CALL_SECONDS):
                tokens: Mapping[str, Any] = await client.fetch_token(
                    metadata["token_endpoint"],
                    grant_type="authorization_code",
                    code=code,
                    code_verifier=begun.verifier,
                )
        except OAuthError as error:
            reason = visible(f"{error.error}: {error.description or ''}"[:200])
            raise AccessRefused(
                f"the provider rejected its own answer ({reason}); log in again, and if that does "
                "not help, compare client, secret and origin with the provider's settings"
            ) from error
        except (httpx2.HTTPError, ValueError, TimeoutError) as error:
            raise self._keys.down(error) from error
        if not tokens.get("id_token"):
            raise ServiceUnavailable("the provider's answer has no ID token; use OpenID Connect")
        return tokens

    async def _with_userinfo(
        self, metadata: Mapping[str, Any], claims: Claims, token: str
    ) -> Claims:
        """The claims, together with those that only the userinfo endpoint has."""
        claim, userinfo_url = self.oidc.groups_claim, metadata.get("userinfo_endpoint")
        has_claims = claim in claims or claim.partition(".")[0] in claims
        if has_claims or not userinfo_url or not token:
            return claims
        check_address("userinfo_endpoint", userinfo_url)
        user_claims = await self._keys.ask(userinfo_url, {"authorization": f"Bearer {token}"})
        # OpenID Connect Core 1.0, sec. 5.3.2: claims of another subject must not be used.
        return {**user_claims, **claims} if user_claims.get("sub") == claims["sub"] else claims

    def _client(self, metadata: Mapping[str, Any]) -> AsyncOAuth2Client:
        ways = metadata.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        way = "client_secret_basic" if "client_secret_basic" in ways else "client_secret_post"
        return AsyncOAuth2Client(
            self.oidc.client,
            self.oidc.secret or None,
            token_endpoint_auth_method=way if self.oidc.secret else "none",
            redirect_uri=self.oidc.origin + CALLBACK,
            scope=" ".join(self.oidc.scopes),
            code_challenge_method="S256",
            **self._keys.calling(metadata["token_endpoint"]),
        )
