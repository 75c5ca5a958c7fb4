"""Payloads for people: the bytes that were sent, and what they could have meant."""

from collections.abc import Sequence
from typing import Final

_MEANINGS: Final = 3
_HEX: Final = 16


def sent(payload: str) -> str:
    """A payload in hex, as wide as a column is."""
    return payload if len(payload) <= _HEX else f"{payload[: _HEX - 2]}.."


def likeliest(meanings: Sequence[tuple[str, float]], others: int = 0) -> str:
    """The likeliest of some meanings, and how many more there are. others: besides these."""
    texts = [f"{value} {chance:.1%}" for value, chance in meanings[:_MEANINGS]]
    more = len(meanings) - len(texts) + others
    return ", ".join(texts) + (f", or {more:,} other{'s' * (more > 1)}" if more else "")
