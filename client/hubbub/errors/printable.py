"""Text as a terminal may have it: every message, table and line goes through here."""

from typing import Final

# Printable by their category, and yet nothing is seen of them: Unicode's default ignorable letters
# and marks, and the Braille pattern without a dot.
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
    """A text that a terminal shows and does not obey: nothing moves, turns or hides what is read.

    What is unseen or commands stands as an escape of JSON's, so that JSON stays the same JSON.
    """
    return "".join(c if c.isprintable() and c not in UNSEEN else _escape(c) for c in text)


def visible_lines(text: str) -> str:
    """The same of a text whose line ends are our own."""
    return "\n".join(map(visible, text.split("\n")))


def _escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
