"""Bytes as text: how keys and signatures stand in files (base64, strict), and how they may not."""

import base64
from typing import Final

__all__ = ["MALFORMED", "from_text", "to_text"]

MALFORMED: Final = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    OverflowError,
    RecursionError,
)
"""What reading JSON of another shape than ours raises."""


def to_text(raw: bytes) -> str:
    """The text of some bytes."""
    return base64.b64encode(raw).decode()


def from_text(text: str) -> bytes:
    """The bytes of a text. Raises ValueError if it is none of ours."""
    return base64.b64decode(text, validate=True)
