"""Claims in a provider's signed token, and checks that they are meant for us and current.

Sources: JSON Web Tokens, RFC 7519; access tokens, RFC 9068; OpenID Connect Core 1.0, sec. 3.1.3.7.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from joserfc import jwt
from joserfc.errors import ExpiredTokenError, InvalidClaimError, MissingClaimError
from joserfc.jwk import KeySet
from joserfc.jws import JWSRegistry

from hubbub.errors import AccessRefused
from hubbub.errors.printable import visible

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
        audience_text = audience if isinstance(audience, str) else ", ".join(map(str, audience))
        return (
            f'the token is for another audience, "{shorten(audience_text)}"; configure the '
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
