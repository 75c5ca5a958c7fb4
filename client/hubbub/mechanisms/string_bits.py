"""Spelling: a string as bits; strings with a common beginning have bits with a common beginning.

The first bits select an alphabet; then follow a code for each letter, and one for the end. In
words and host names, the code of a letter depends on the letter before; letters of other scripts
have codes of one length. A letter that the alphabet lacks follows an escape code, so every string
can be spelled. hubbub selects the alphabet that fits most letters, then the one with the fewest
bits. If the next letter does not fit, the remaining bits show only that: all texts with the same
spelled letters have the same bits. All of this is on the wire: it never changes.

Each line of code lengths has those (hexadecimal) after one letter: first after the beginning, then
after each letter in its order, then after anything else. Within a line: the end, each letter,
anything else. Source: Huffman's method on pairs of letters in this project's pages and in a public
list of domains.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, NamedTuple, Protocol

WORDS: Final = "abcdefghijklmnopqrstuvwxyz'- "
HOSTS: Final = "abcdefghijklmnopqrstuvwxyz0123456789-."

WORD_CODE_LENGTHS: Final = (
    "c4544456649754554843466588a5cb7",
    "5a544985a5c6343a5e34366786b9ed7",
    "43657398844b37847a5573ac9486ca7",
    "53c683ac45d448929a5635bcf8f8eb7",
    "24875297a3aa68849d54759bc7d7977",
    "25844667a8c956485733496758c7b97",
    "34a77448b2ec48838a46549bd6e7b96",
    "258892a554da58558d44748bca87977",
    "3299929b93fa7783af6765bde8c7b97",
    "75645555bab844245b543b5e7d6bec7",
    "4596718986b678647b747399a7b6ba7",
    "2588628694db58466a837595cad6a87",
    "3487527993d949837d955589c4a8b97",
    "4259729ca4e965843e9575cae8e8ca7",
    "3484336395b779657c943679c7b6b97",
    "4765476697b654254d35546579a9dc7",
    "4398738a75c839834c35457ad5d7ca7",
    "3677557876a957567a45619898a7a96",
    "33966276a4b775548a544678c5c7a97",
    "16b6939a55c878866a9535a8d7d7987",
    "2496738c33db67847d4565b7a6a7b97",
    "75456456c5fd44374f3339adaca9ed7",
    "429aa198a3dc98968a989aabb9abda7",
    "3398739933dc59439d457ac78ca7a97",
    "2474747974cb77973c77299b7786b97",
    "17877488a5cb66554a744a86c795977",
    "4485817873a975658a666899a776a97",
    "15656657769b66676953577688a6b97",
    "4454445655875555474345768787997",
    "64544456558744554843467598a7bb7",
    "3465536664975644584445777687987",
)

HOST_CODE_LENGTHS: Final = (
    "e44445545566545647544654767d8999acaa9eb7",
    "675438657596444759344667756cbaabecedc847",
    "936573877378467479346498768aa9decbbeb847",
    "6486559946a557517a5656a998adbccceedcd957",
    "84566366738765446954555686898a99cacba737",
    "645545767787554669343765578cb9abccbbc737",
    "846664478387467268464587768aaadaddbad957",
    "347673765499466378456588978ca9aaeeebe837",
    "636663767387666378555487868c8a9dddddd837",
    "846355658896443468543859786dbaeeffffd957",
    "746564677477657336636475766bb8bbcbcccb47",
    "446663776487566568545587758c989addbaa827",
    "637653778397467368755578759eabaaceeff837",
    "1477739695a987846a9677a9869ebbbbfbdcf946",
    "447542547586576579854878868ebcbeffcce837",
    "67666976979761455b466566789dcbefdfcee947",
    "646563775487466349455588779b99aacbddb737",
    "656565765576555556655265775b78b88bbbba37",
    "436563748495666479654558969eaabebcbee837",
    "657574774486666447653587b699eacbdbbbe727",
    "34767378439976747a456556969cbabcdfefc737",
    "454555769595553649334978777bddbaebeeea57",
    "44867297829777358a677787a779a9baddcbb947",
    "747663876488776468736882889dbb9dadbbdb37",
    "546465676488656538754677667a7aaabaaab827",
    "646564666578554458644576987ca9bb9ac9b727",
    "34666366647855636766657686599ccc9ccccc37",
    "665565867698656569666777669336667a6a7727",
    "65856667869865657a66678796944356a5567727",
    "6585567575686565696557867894663366787637",
    "65755586757865555665568898aa665673676727",
    "55746566569675646a65568678865766664a6727",
    "5574557575876464796657766787496657976927",
    "5475557775876454695557778783696647959837",
    "55756466759764546955577667895569a65a9727",
    "5575557675866554695547778785566777759627",
    "5574557465866454685557658789565799974637",
    "73644565648853654b53466699a98b9ccccccb77",
    "b6516776948986347c675657bbafddddffffefb7",
    "4464546664865453685546667678888999999847",
)


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
def _alphabets() -> Mapping[_Code, _Alphabet]:
    """Every alphabet, by the bits that name it."""
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
    others = {(0b110000 + place, 6): alphabet for place, alphabet in enumerate(flat)}
    return {(0b0, 1): words, (0b10, 2): hosts, **others}


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
    best, max_letters, min_bits = next(iter(_alphabets().items())), -1, size
    for candidate in _alphabets().items():
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
        alphabet, begun = _alphabets()[prefix], reader.used
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
