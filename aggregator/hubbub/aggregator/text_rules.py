"""Rules for texts from people: refuse or repair them before they are stored or shown."""

import unicodedata
from typing import Final

from hubbub.errors import BadParameter

# Control characters, which a terminal obeys, and lone surrogates, which readers refuse.
_BAD: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})
# Characters that change the reading direction of a line.
_TURNS: Final = frozenset(
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)


def check_words(subject: str, text: str, longest: int) -> None:
    """Raises BadParameter for a long text, and for control or unencodable characters."""
    if len(text) > longest:
        raise BadParameter(f"{subject} has {len(text)} characters; {longest} at most")
    if any(map(_is_bad, text)):
        raise BadParameter(f"{subject} has control or invalid characters; write it in plain text")


def mended(text: str) -> str:
    """The text with a replacement character for each that `check_words` refuses."""
    return "".join("\ufffd" if _is_bad(letter) else letter for letter in text)


def _is_bad(letter: str) -> bool:
    return letter in _TURNS or unicodedata.category(letter) in _BAD
