"""Spelling: every string has its bits, and its bits no other string."""

import hypothesis.strategies as st
import pytest
from hypothesis import given

from hubbub.mechanisms.string_bits import (
    HOST_CODE_LENGTHS,
    HOSTS,
    WORD_CODE_LENGTHS,
    WORDS,
    read,
    spell,
)

ENOUGH = 4096
# Their bits, which are on the wire: a change is another mechanism.
KNOWN_CODES = {
    "": "111100000000000000000000000000000000000000000000",
    "you": "101111000111110000110000000000000000000000000000",
    "example.org": "101010011010011001101101111000001010101110010111",
    "Привет": "110101010000110000100111010011010001101111000100",
    "日本": "111100100110001110010110011010001011000000000000",
}
CUT = {
    "example.org": "001011101110101010100010",
    "日本": "111100100110001110010110",
    "Привет": "110101010000110000100000",
}
SCRIPTS = (
    "don't",
    "naïve",
    "example.org",
    "Grüße",
    "NullPointerException",
    "3.11.4",
    "00ff-12ab",
    "привет",
    "Москва",
    "αβγ",
    "שלום",
    "مرحبا",
    "नमस्ते",
    "ไทย",
    "こんにちは",
    "日本",
    "안녕",
    "தமிழ்",
    "😀",
    "👩‍👩‍👧",
    "\U0010ffff",
    "\0",
    "a\nb",
    "\ue000",
)


@pytest.mark.parametrize("text", SCRIPTS)
def test_every_script_is_spelled_and_read_again(text: str) -> None:
    reading = read(spell(text, ENOUGH), ENOUGH)
    assert reading is not None
    assert reading.text == text
    assert reading.used is not None


@given(st.text(max_size=40))
def test_any_string_is_encoded_and_decoded(text: str) -> None:
    reading = read(spell(text, ENOUGH), ENOUGH)
    assert reading is not None
    assert (reading.text, reading.used is None) == (text, False)


@given(st.text(max_size=60), st.integers(1, 128))
def test_the_first_bits_spell_a_beginning(text: str, size: int) -> None:
    bits = spell(text, size)
    assert bits < 1 << size
    reading = read(bits, size, complete=True)
    assert reading is not None
    assert text.startswith(reading.text)
    assert reading.used is None or reading.text == text


@given(st.text(max_size=30), st.text(max_size=9), st.text(max_size=9), st.integers(44, 128))
def test_texts_with_the_same_encoded_letters_have_the_same_bits(
    text: str, ending: str, other: str, size: int
) -> None:
    bits, others = spell(text + ending, size), spell(text + other, size)
    reading, second = read(bits, size, complete=True), read(others, size, complete=True)
    assert reading is not None
    assert second is not None
    cut = reading.used is None and second.used is None
    assert (bits == others) == (reading == second)
    assert not cut or (reading.text == second.text) == (bits == others)


def test_no_text_encodes_to_unused_bits() -> None:
    """Of a string that was found the rest is known, too: nothing else begins as it does."""
    size, letters = 9, "abcdefghijklmnopqrstuvwxyz .-0129"
    texts = [*map(chr, range(32, 0x600)), *(letter + two for letter in letters for two in letters)]
    spelled = {spell(text, size) for text in texts}
    begun = [bits for bits in range(1 << size) if read(bits, size) is not None]
    readable_bits = [bits for bits in begun if read(bits, size, complete=True) is not None]
    assert spelled <= set(readable_bits) < set(begun)


@given(st.integers(0, 2**48 - 1))
def test_the_end_of_a_string_has_unique_bits(bits: int) -> None:
    reading = read(bits, 48)
    if reading is not None and reading.used is not None:
        assert spell(reading.text, 48) == bits


@pytest.mark.slow
def test_every_bit_sequence_spells_one_string_or_none() -> None:
    """Every alphabet has codes that no letter has; what is read of the others is spelled so."""
    size = 15
    readings = {bits: read(bits, size) for bits in range(1 << size)}
    assert None in readings.values()
    whole = {
        bits: reading.text
        for bits, reading in readings.items()
        if reading and reading.used is not None
    }
    assert len(set(whole.values())) == len(whole)
    assert all(spell(text, size) == bits for bits, text in whole.items())


@pytest.mark.parametrize(
    ("letters", "table"), [(WORDS, WORD_CODE_LENGTHS), (HOSTS, HOST_CODE_LENGTHS)]
)
def test_lengths_are_those_of_a_whole_prefix_code(letters: str, table: tuple[str, ...]) -> None:
    assert len(table) == len(letters) + 2
    for line in table:
        assert len(line) == len(letters) + 2
        assert sum(2 ** -int(length, 16) for length in line) == 1


def test_known_strings_that_do_not_fit_keep_their_bits() -> None:
    assert {text: f"{spell(text, 24):024b}" for text in CUT} == CUT


def test_known_strings_keep_their_bits() -> None:
    assert {text: f"{spell(text, 48):048b}" for text in KNOWN_CODES} == KNOWN_CODES
