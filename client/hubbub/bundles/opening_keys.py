"""Opening keys: devices encrypt reports to them, and the aggregator opens reports with them.

Every epoch has one opening key for everybody: the one whose period contains the epoch's start. Its
id goes with a report; other ids are refused, so that an id cannot mark anybody.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import field
from dataclasses import replace as replaced
from typing import TYPE_CHECKING, Any, Final, Self

from hubbub.bundles.encoding import from_text, to_text
from hubbub.bundles.signatures import KEY_BYTES, refuse_weak_opening_key
from hubbub.errors import BadParameter
from hubbub.fields.frozen import frozen, set_derived
from hubbub.fields.rules import int_if_whole, is_whole
from hubbub.sealing import hpke

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

_LAST_ID: Final = (1 << 32) - 1  # as the wire has it
DEVELOPMENT_IDS: Final = 1 << 31
"""Keys of development installations have ids from here on; those of production count from 1.

A device sends the id with its report, and a shuffler refuses one that it does not have.
"""
_LAST_SECOND: Final = 1 << 40  # 34,000 years from now


@frozen(kw_only=True)
class OpeningKeyPublic:
    """A public key that encrypts reports of epochs that start in [start, end) seconds since 1970.

    Args:
        public: X25519 half.
        x_wing: half for metrics with X-Wing, 1,216 bytes; empty in keys of earlier versions, and in
            bundles without such metrics.

    Raises:
        BadParameter: a number out of range, or a key that protects nothing.
    """

    id: int
    start: int
    end: int
    public: bytes
    x_wing: bytes = b""
    _hybrid: hpke.PublicKey | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not (is_whole(self.id) and 0 <= self.id <= _LAST_ID):
            raise BadParameter(f"an opening key's id must be a whole number in [0, {_LAST_ID}]")
        are_integers = is_whole(self.start) and is_whole(self.end)
        if not (are_integers and -_LAST_SECOND <= self.start < self.end <= _LAST_SECOND):
            raise BadParameter(f"opening key {self.id} has no period: start < end, in seconds")
        refuse_weak_opening_key(self.public)
        set_derived(self, _hybrid=hpke.x_wing_public(self.x_wing) if self.x_wing else None)
        if self.x_wing:
            refuse_weak_opening_key(self.x_wing[-KEY_BYTES:])

    def half(self, kem: hpke.Kem) -> hpke.PublicKey:
        """The key that a metric of this KEM is sealed to. Raises BadParameter if it has none.

        The X25519 half is made here, since that loads the library, which a start can do without.
        """
        if kem == hpke.X25519:
            from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey  # noqa: PLC0415 as above

            return X25519PublicKey.from_public_bytes(self.public)
        if self._hybrid is None:
            raise BadParameter(f"opening key {self.id} has no X-Wing half")
        return self._hybrid

    def words(self) -> dict[str, Any]:
        """The JSON form, for bundles and the operator's folder."""
        words = {"id": self.id, "start": self.start, "end": self.end}
        halves = {"public": self.public, "x_wing": self.x_wing}
        return words | {name: to_text(half) for name, half in halves.items() if half}

    @classmethod
    def load(cls, words: Mapping[str, Any]) -> Self:
        """Reads what `words()` returned. Raises one of MALFORMED for another shape."""
        return cls(
            id=int_if_whole(words["id"]),
            start=int_if_whole(words["start"]),
            end=int_if_whole(words["end"]),
            public=from_text(words["public"]),
            x_wing=from_text(words.get("x_wing", "")),
        )


@frozen()
class OpeningKey:
    """The private half, for the aggregator; `x_wing` is the seed of the X-Wing half, if any."""

    id: int
    private: bytes
    x_wing: bytes = b""

    def load(self) -> "X25519PrivateKey":
        """Its X25519 half."""
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey  # noqa: PLC0415 as above

        return X25519PrivateKey.from_private_bytes(self.private)

    def halves(self) -> dict[hpke.Kem, hpke.PrivateKey]:
        """The private keys by KEM."""
        keys: dict[hpke.Kem, hpke.PrivateKey] = {hpke.X25519: self.load()}
        if self.x_wing:
            keys[hpke.X_WING] = hpke.x_wing_private(self.x_wing)
        return keys

    def with_x_wing(self) -> "OpeningKey":
        """The key with an X-Wing half, its own if it has one."""
        return self if self.x_wing else replaced(self, x_wing=os.urandom(hpke.SEED_BYTES))

    def __repr__(self) -> str:
        return f"OpeningKey(id={self.id})"


def key_at(keys: Sequence[OpeningKeyPublic], start: int) -> OpeningKeyPublic | None:
    """The key of an epoch that starts at this second; None if there is none yet."""
    return next((key for key in keys if key.start <= start < key.end), None)


def is_development(keys: Sequence[OpeningKeyPublic]) -> bool:
    """Whether these are keys of a development installation."""
    return bool(keys) and all(key.id >= DEVELOPMENT_IDS for key in keys)
