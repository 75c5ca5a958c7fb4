"""Claims of who logs in: whether they answer the login that was begun, and who it is.

OpenID Connect Core 1.0, sec. 3.1.3.7.
"""

from collections.abc import Mapping
from typing import Any

from authlib.oidc.core import CodeIDToken
from joserfc.errors import JoseError

from hubbub.errors import AccessRefused
from hubbub.runtime.oidc import Claims, short


def check_id_token(
    claims: Claims, header: Claims, *, client: str, nonce: str, access_token: str
) -> None:
    """Raises AccessRefused unless it answers the login that was begun, for this client."""
    parameters = {"nonce": nonce, "client_id": client, "access_token": access_token}
    checked = CodeIDToken(claims, header, None, parameters)
    try:
        checked.validate_nonce()
        checked.validate_azp()
        checked.validate_at_hash()
    except JoseError as error:
        claim = getattr(error, "claim", "")
        raise AccessRefused(
            f'the provider\'s answer is not to this login ("{claim}" differs); log in again'
        ) from error


def groups_of(claims: Claims, claim: str) -> tuple[str, ...] | None:
    """The groups of a claim, by its name or by a path of names with dots; None where there is none.

    A claim that holds one text is one group.
    """
    value: Any = claims
    if claim in claims:
        value = claims[claim]
    else:
        for name in claim.split("."):
            value = value.get(name) if isinstance(value, Mapping) else None
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list):
        return tuple(group for group in value if isinstance(group, str))
    return None


def name_of(claims: Claims) -> str:
    """What people call who it is about."""
    named = (claims.get(claim) for claim in ("email", "preferred_username", "name", "sub"))
    return short(next(name for name in named if isinstance(name, str) and name))
