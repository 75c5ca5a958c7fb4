"""Allowances: which tokens an account has had, in Redis, behind the prefix "issuer:".

    issuer:{ACCOUNT}:SECONDS:EPOCH   hash: stream -> 16 bytes for each device that had its tokens

ACCOUNT is a keyed hash: who reads this Redis reads no account's name. A key goes with its epoch.
"""

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from typing import Final

from hubbub.runtime import RedisServer, lua, script

_ALLOW: Final = lua(__package__, "scripts/allow")
_QUESTION_BYTES: Final = 16


class Allowances:
    """What accounts have had. key: their names are hashed with it."""

    def __init__(self, server: RedisServer, key: bytes) -> None:
        self._server, self._key = server, key

    async def allow(
        self,
        account: str,
        period: tuple[int, int],
        requests: Mapping[str, Sequence[bytes]],
        *,
        devices: int,
        keep: int,
    ) -> list[bool]:
        """Of each stream whether the account may have tokens for these blinded elements.

        period: the epoch, by its length in seconds and its number. devices: of one account that get
        tokens. keep: seconds to remember it.

        Raises:
            StoreUnavailable: it cannot be told.
        """
        name = hmac.digest(self._key, b"account|" + account.encode(), "sha256")[:16].hex()
        key = f"issuer:{{{name}}}:{period[0]}:{period[1]}"
        questions = [
            part
            for stream, blinded in requests.items()
            for part in (stream, hashlib.sha256(b"".join(blinded)).digest()[:_QUESTION_BYTES])
        ]
        step = script(_ALLOW, [key], [devices, keep, *questions])
        [answers] = await self._server.durable([step])
        return [bool(answer) for answer in answers]
