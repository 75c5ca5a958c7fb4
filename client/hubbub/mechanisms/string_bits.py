"""Spelling: a string as bits; strings with a common beginning have bits with a common beginning.

The first bits select an alphabet; then follow a code for each letter, and one for the end. In
words and host names, the code of a letter depends on the letter before; letters of other scripts
have codes of one length. A letter that the alphabet lacks follows an escape code, so every string
can be spelled. hubbub selects the alphabet that fits most letters, then the one with the fewest
bits. If the next letter does not fit, the remaining bits show only that: all texts with the same
spelled letters have the same bits. All of this is on the wire: it never changes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, NamedTuple, Protocol

from hubbub.mechanisms.letter_codes import HOST_CODE_LENGTHS, HOSTS, WORD_CODE_LENGTHS, WORDS

_Code = tuple[int, int]
"""Some bits as a number, and how many they are."""

_ESCAPED_BITS: Final = 21
# If letters have at least this many bits, one more bit says whether there is one.
_MARKED_BITS: Final = 12
_LAST_CHARACTER: Final = 0x10FFFF
_SURROGATES: Final = range(0xD800, 0xE000)
# Characters of words and hosts besides letters; each adds this many bits.
_RARE_BITS: Final = 6
_RARE_IN_WORDS: Final = "0123456789.,!?:;_/()@#&+=%äöüßéèêàçñáíóúãõâîôûëïåøæœęłışğčž"
_RARE_IN_HOSTS: Final = "_/:?=&%+~@#ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class Spelled(NamedTuple):
    """A text from its bits; `used` is the number of bits with the end, None without an end."""

    text: str
    used: int | None


class _Alphabet(Protocol):
    """A script's letters, coded by the letter before; "" is the end, `least` the fewest bits."""

    least: int

    def code(self, before: str, letter: str) -> _Code:
        """The code of a letter."""

    def next_letter(self, before: str, bits: "_Bits") -> str | None:
        """The next letter; None for bits that are no letter's code. Raises EOFError at the end."""


@dataclass(slots=True)
class _Bits:
    """A reader of bits, the first one first."""

    number: int
    size: int
    used: int = 0

    def take(self, count: int) -> int:
        """Reads the next `count` bits. Raises EOFError if fewer are left."""
        if self.used + count > self.size:
            raise EOFError
        self.used += count
        return self.number >> (self.size - self.used) & ((1 << count) - 1)

    def coded(self, places: Mapping[int, int]) -> int:
        """Reads a code, and returns its place; keys have a 1 before the code. Raises EOFError."""
        number, bits_left, code = self.number, self.size - self.used, 1
        while (place := places.get(code)) is None:
            if not bits_left:
                raise EOFError
            bits_left -= 1
            code = code << 1 | number >> bits_left & 1
        self.used = self.size - bits_left
        return place

    def escaped(self) -> str | None:
        """Reads a letter that the alphabet lacks."""
        point = self.take(_ESCAPED_BITS)
        return None if point > _LAST_CHARACTER or point in _SURROGATES else chr(point)


class _Paired:
    """An alphabet with codes that depend on the letter before; rare letters share a code."""

    def __init__(self, letters: str, rare: str, lengths: Sequence[str]) -> None:
        self._place = {letter: place for place, letter in enumerate(("", *letters))}
        self._letters: tuple[str, ...] = ("", *letters)
        self._rare = rare
        self.least = 1
        self._codes = [_canonical([int(code, 16) for code in line]) for line in lengths]
        # A 1 before a code keeps the zeros that it begins with.
        self._read = [
            {1 << size | code: place for place, (code, size) in enumerate(codes)}
            for codes in self._codes
        ]

    def _row_after(self, before: str) -> int:
        return self._place.get(before, len(self._letters))

    def code(self, before: str, letter: str) -> _Code:
        codes = self._codes[self._row_after(before)]
        if (place := self._place.get(letter)) is not None:
            return codes[place]
        bits, size = codes[-1]
        if letter in self._rare:
            return bits << _RARE_BITS | self._rare.index(letter) + 1, size + _RARE_BITS
        escaped = bits << _RARE_BITS + _ESCAPED_BITS | ord(letter)
        return escaped, size + _RARE_BITS + _ESCAPED_BITS

    def next_letter(self, before: str, bits: _Bits) -> str | None:
        place = bits.coded(self._read[self._row_after(before)])
        if place < len(self._letters):
            return self._letters[place]
        rare = bits.take(_RARE_BITS)
        if not rare:
            return bits.escaped()
        return self._rare[rare - 1] if rare <= len(self._rare) else None


class _Flat:
    """Letters that all have codes of one length. spans: first and last of those that follow.

    Of few letters, 0 is the end; of many that would be long, and a bit before each says that there
    is one.
    """

    def __init__(self, *spans: str) -> None:
        self._spans = [(ord(span[0]), ord(span[-1])) for span in spans]
        # 1 is any letter that is not among them.
        count = 2 + sum(last_point - first_point + 1 for first_point, last_point in self._spans)
        self._size = (count - 1).bit_length()
        self._marked = self._size >= _MARKED_BITS
        self.least = self._size + self._marked

    def code(self, before: str, letter: str) -> _Code:
        del before
        size = self._size + self._marked
        mark = self._marked << self._size
        if not letter:
            return 0, 1 if self._marked else size
        point, place = ord(letter), 2
        for first_point, last_point in self._spans:
            if first_point <= point <= last_point:
                return mark | place + point - first_point, size
            place += last_point - first_point + 1
        return (mark | 1) << _ESCAPED_BITS | point, size + _ESCAPED_BITS

    def next_letter(self, before: str, bits: _Bits) -> str | None:
        del before
        if self._marked and not bits.take(1):
            return ""
        place = bits.take(self._size)
        if place <= 1:
            return bits.escaped() if place else None if self._marked else ""
        place -= 2
        for first_point, last_point in self._spans:
            if place <= last_point - first_point:
                return chr(first_point + place)
            place -= last_point - first_point + 1
        return None


def _canonical(lengths: Sequence[int]) -> list[_Code]:
    """The prefix code with these lengths: shorter codes first, equal ones in order."""
    codes: list[_Code] = [(0, 0)] * len(lengths)
    code = size = 0
    for place in sorted(range(len(lengths)), key=lambda place: (lengths[place], place)):
        code <<= lengths[place] - size
        size = lengths[place]
        codes[place] = code, size
        code += 1
    return codes


@cache
def _alphabets() -> tuple[tuple[_Code, _Alphabet], ...]:
    """Every alphabet, with the bits that name it."""
    flat = (
        _Flat(" ~"),  # printable ASCII
        _Flat("09", "af", "-"),  # hexadecimal digits
        _Flat("09", "+:", " ", "%"),  # numbers, dates, versions
        _Flat(" ~", "\u00a0\u017f"),  # Latin with accents
        _Flat("\u0430\u045f", " ", "-"),  # Cyrillic, small letters
        _Flat("\u0400\u045f", "09", " ", "-", ".", ",", "!", "?"),
        _Flat("\u03ac\u03ce", " ", "-", "."),  # Greek, small letters
        _Flat("\u05d0\u05ea", " ", "-", "."),  # Hebrew
        _Flat("\u0621\u064a", "\u067e", "\u0686", "\u0698", "\u06a9", "\u06af", "\u06cc", " ", "."),
        _Flat("\u0901\u0970", " ", "-", "."),  # Devanagari
        _Flat("\u0e01\u0e5b", " ", "09", "."),  # Thai
        _Flat("\u3041\u3096", "\u30a1\u30fe", "\u3001\u3002", " "),  # Kana
        _Flat("\u3001\u30fe", "\u4e00\u9fff", "\uff01\uff5e", " ~"),  # Chinese and Japanese
        _Flat("\uac00\ud7a3", " ~"),  # Korean
        _Flat("\U0001f000\U0001faff", "\u2600\u27bf", "\ufe0f", "\u200d", "\u2b50", " ~"),  # emoji
        _Flat(" \u1fff"),  # any of these scripts together
    )
    words = _Paired(WORDS, _RARE_IN_WORDS, WORD_CODE_LENGTHS)
    hosts = _Paired(HOSTS, _RARE_IN_HOSTS, HOST_CODE_LENGTHS)
    others = [((0b110000 + place, 6), letter) for place, letter in enumerate(flat)]
    return ((0b0, 1), words), ((0b10, 2), hosts), *others


@cache
def _alphabets_by_name() -> Mapping[_Code, _Alphabet]:
    return dict(_alphabets())


def _codes(alphabet: _Alphabet, text: str) -> Iterator[_Code]:
    before = ""
    for letter in text:
        yield alphabet.code(before, letter)
        before = letter
    yield alphabet.code(before, "")


def spell(text: str, size: int) -> int:
    """As much of a text as fits in `size` bits, as a number; bits after its end are 0."""
    (bits, used), alphabet = _best_alphabet(text, size)
    if used >= size:
        return bits >> used - size
    for before, (code, bit_count) in zip(("", *text), _codes(alphabet, text), strict=True):
        if used + bit_count > size:
            return bits << size - used | _filling_bits(alphabet, before, size - used)
        bits, used = bits << bit_count | code, used + bit_count
    return bits << size - used


def _filling_bits(alphabet: _Alphabet, before: str, room: int) -> int:
    """The remaining bits where a letter does not fit: the beginning of the longest code."""
    code, bit_count = alphabet.code(before, chr(_LAST_CHARACTER))
    return code >> bit_count - room


def _best_alphabet(text: str, size: int) -> tuple[_Code, _Alphabet]:
    """The alphabet that fits most letters, the end among them, in the fewest bits."""
    best, max_letters, min_bits = _alphabets()[0], -1, size
    for candidate in _alphabets():
        (_, needed), alphabet = candidate
        fitting, possible = 0, min(len(text), (size - needed) // alphabet.least)
        if possible + 1 < max_letters or (
            possible < max_letters and needed + possible * alphabet.least >= min_bits
        ):
            continue
        for _, bit_count in _codes(alphabet, text):
            if needed + bit_count > size:
                # If not even the first letter fits, only the alphabet is encoded.
                needed += 0 if fitting else bit_count
                break
            fitting, needed = fitting + 1, needed + bit_count
        if fitting > max_letters or (fitting == max_letters and needed < min_bits):
            best, max_letters, min_bits = candidate, fitting, needed
    return best


def read(bits: int, size: int, *, complete: bool = False) -> Spelled | None:
    """The text of some leading bits; None if they begin no text. `complete`: no bits follow."""
    reader = _Bits(bits, size)
    text: list[str] = []
    alphabet, begun = None, 0
    try:
        first = reader.take(1) and 2 + reader.take(1)
        prefix = (first, 2) if first == 0b10 else (first, 1)  # noqa: PLR2004 as `_alphabets` has it
        if first == 0b11:  # noqa: PLR2004 as above
            prefix = 0b110000 + reader.take(4), 6
        alphabet, begun = _alphabets_by_name()[prefix], reader.used
        while letter := alphabet.next_letter(text[-1] if text else "", reader):
            text.append(letter)
            begun = reader.used
    except EOFError:
        text_bits = size - begun
        if complete and alphabet is not None:
            no_more = _filling_bits(alphabet, text[-1] if text else "", text_bits)
            if bits & ((1 << text_bits) - 1) != no_more:
                return None
        return Spelled("".join(text), None)
    # The bits after an end are 0, and no text is spelled in two ways.
    if letter is None or bits & ((1 << size - reader.used) - 1):
        return None
    string = "".join(text)
    return Spelled(string, reader.used) if spell(string, size) == bits else None
