"""The device's secret, and the permanent coins that follow from it."""

import hashlib
import hmac
from dataclasses import dataclass
from typing import Final

from hubbub.mechanisms import KeyedBits

__all__ = ["SECRET_BYTES", "DeviceMemo"]

SECRET_BYTES: Final = 32


@dataclass(frozen=True, slots=True, repr=False)
class DeviceMemo:
    """A device's permanent coins for one metric: nothing but the secret is stored.

    HMAC-SHA256 under the secret separates metrics and purposes; values enter only hashed.
    """

    secret: bytes
    metric: str

    def coins(self, purpose: bytes, /) -> KeyedBits:
        """The coins of this purpose, the same for as long as the secret lives."""
        return KeyedBits(self._key(b"coins", purpose))

    def tag(self, permanent_key: bytes) -> str:
        """A name for a permanent response that only this device can make: no value is kept."""
        return self._key(b"tag", permanent_key).hex()[:16]

    def _key(self, use: bytes, purpose: bytes) -> bytes:
        # The purpose is hashed so that parts of any content cannot run into each other.
        parts = (b"hubbub/1", use, self.metric.encode(), hashlib.sha256(purpose).digest())
        return hmac.digest(self.secret, b"|".join(parts), "sha256")
