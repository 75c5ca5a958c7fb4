"""Verifies tokens of an OpenID Connect provider: who signed them, for whom, and when.

Used by several roles: an aggregator whose people log in, and an issuer of tokens.
"""

from hubbub.runtime.oidc.provider_keys import CALL_SECONDS, ProviderKeys, check_address
from hubbub.runtime.oidc.signed_claims import Claims, check_claims, short

__all__ = ["CALL_SECONDS", "Claims", "ProviderKeys", "check_address", "check_claims", "short"]
