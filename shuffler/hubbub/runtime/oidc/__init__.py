"""What a provider of OpenID Connect signed: whom a token is about, for whom, and when.

For programs of more than one role: an aggregator whose people log in, an issuer of tokens.
"""

from hubbub.runtime.oidc.provider_keys import ProviderKeys, check_address
from hubbub.runtime.oidc.signed_claims import Claims, check_claims, short

__all__ = ["Claims", "ProviderKeys", "check_address", "check_claims", "short"]
