"""Subjects: accounts that are the app's own logins, told by tokens of its OpenID Connect provider.

An ID token that the app has got, or an access token for the issuer (RFC 9068): who it is about is
the account. What else it says of a person is not looked at.
"""

from collections.abc import Callable, Sequence
from typing import Final

from hubbub.errors import AccessRefused
from hubbub.runtime.oidc import ProviderKeys, check_claims

_LONGEST: Final = 255  # OpenID Connect Core 1.0, sec. 2


class Subjects:
    """Those of one provider.

    provider: its address, as it calls itself. audiences: whom a token must be for: the app, as the
    provider calls it, or the issuer. clock: seconds since 1970.
    """

    def __init__(
        self,
        provider: str,
        keys: ProviderKeys,
        audiences: Sequence[str],
        clock: Callable[[], float],
    ) -> None:
        self._provider, self._keys = provider, keys
        self._audiences, self._clock = audiences, clock

    async def account(self, token: str) -> str:
        """The account of a token: no name of a key, and no other provider's.

        Raises:
            AccessRefused: it is not the provider's, not for us, or not of now.
            ServiceUnavailable: the provider's keys are not known, and it does not answer.
        """
        claims, _ = await self._keys.opened(token)
        check_claims(claims, issuer=self._provider, audiences=self._audiences, now=self._clock())
        subject = claims["sub"]
        if not isinstance(subject, str) or not 0 < len(subject) <= _LONGEST:
            raise AccessRefused(f'the token\'s "sub" is no text of up to {_LONGEST} letters')
        # Names of keys begin otherwise, and an address has no space.
        return f"/{self._provider} {subject}"


def is_signed(token: str) -> bool:
    """Whether what is shown is a token of a provider by its form; no key of ours has a dot."""
    return token.count(".") == 2  # noqa: PLR2004 header, claims, signature
