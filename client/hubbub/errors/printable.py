"""Makes text safe for terminals; every message, table and line passes through here."""

from typing import Final

# Printable by category but invisible: Unicode's default ignorable letters and marks, and the
# Braille pattern without dots.
UNSEEN: Final = frozenset(
    map(
        chr,
        (
            0x034F,
            0x115F,
            0x1160,
            0x17B4,
            0x17B5,
            0x2800,
            0x3164,
            0xFFA0,
            *range(0x180B, 0x1810),
            *range(0xFE00, 0xFE10),
            *range(0xE0100, 0xE01F0),
        ),
    )
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
