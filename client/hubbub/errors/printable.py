"""Makes text safe for terminals; every message, table and line passes through here."""

from typing import Final

# Printable by category but invisible: Unicode's default ignorable letters and marks, and the
# Braille pattern without dots.
UNSEEN: Final = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
    + "".join(map(chr, (*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
)


def visible(text: str) -> str:
    """The text with control and invisible characters as JSON escapes, which no terminal obeys."""
    return "".join(c if c.isprintable() and c not in UNSEEN else _escape(c) for c in text)


def visible_lines(text: str) -> str:
    """The same for text whose line breaks are our own."""
    return "\n".join(map(visible, text.split("\n")))


def _escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
