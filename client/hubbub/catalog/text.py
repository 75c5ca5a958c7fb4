"""Bytes as text: how keys and signatures stand in files (base64, strict)."""

import base64

__all__ = ["from_text", "to_text"]


def to_text(raw: bytes) -> str:
    """The text of some bytes."""
    return base64.b64encode(raw).decode()


def from_text(text: str) -> bytes:
    """The bytes of a text. Raises ValueError if it is none of ours."""
    return base64.b64decode(text, validate=True)
