"""What a mechanism refuses to be built from, and what a layout refuses to read."""

import pytest

from hubbub.errors import BadParameter, BadPayload
from hubbub.mechanisms import BitVector, CohortBits, OneHot, build
from hubbub.mechanisms.pure import Pure


def test_rr_is_for_two_values() -> None:
    with pytest.raises(BadParameter, match="categories 3 is not 2; use grr"):
        build("rr", epsilon=1.0, categories=3)


def test_rappor_needs_room_for_its_hashes() -> None:
    with pytest.raises(BadParameter, match="hashes 3 is above bits 2"):
        build("rappor", bits=2, hashes=3, cohorts=1, f=0.5, p=0.25, q=0.75)


def test_a_loss_without_measure_is_a_number_all_the_same() -> None:
    bold = build("rappor", bits=64, hashes=8, cohorts=1, f=1e-300, p=0.0, q=1.0)
    assert 16 * 64 * 0.69 < bold.permanent_loss() < 16 * 65 * 0.7  # type: ignore[attr-defined]


def test_a_channel_that_says_nothing_is_refused() -> None:
    quarter = build("rr", epsilon=1.0).channel.q  # type: ignore[attr-defined]
    with pytest.raises(BadParameter, match="say nothing"):
        Pure(quarter, quarter)


def test_more_than_four_hashes_come_from_a_second_digest() -> None:
    few = build("rappor", bits=4096, hashes=4, cohorts=2, f=0.5, p=0.25, q=0.75)
    many = build("rappor", bits=4096, hashes=8, cohorts=2, f=0.5, p=0.25, q=0.75)
    for first, both in zip(few.positions("a"), many.positions("a"), strict=True):  # type: ignore[attr-defined]
        assert set(first) < set(both)
        assert len(both) == 8


def test_bit_i_is_bit_i_mod_8_of_byte_i_div_8() -> None:
    """The peers' mistake 9: an undocumented order silently permutes the estimates."""
    layout = BitVector(11)
    for bit in range(11):
        payload = layout.encode(1 << bit)
        assert payload == bytes([1 << bit % 8 if byte == bit // 8 else 0 for byte in range(2)])
        assert layout.cells(payload) == {bit: 1}


@pytest.mark.parametrize(
    ("layout", "payload"),
    [
        (OneHot(300), b"\x2c\x01"),
        (OneHot(5), b"\x05"),
        (BitVector(11), b"\xff\x08"),
        (CohortBits(3, 11), b"\x00\x00\xff\x08"),
        (CohortBits(3, 11), b"\x03\x00\xff\x00"),
        (CohortBits(3, 11), b"\x00"),
    ],
    ids=repr,
)
def test_range_and_padding_are_checked(layout: OneHot, payload: bytes) -> None:
    with pytest.raises(BadPayload):
        layout.cells(payload)


def test_a_cohort_number_has_two_bytes() -> None:
    assert CohortBits(300, 3).cells(b"\x2b\x01\x05") == {299 * 4: 1, 299 * 4 + 1: 1, 299 * 4 + 3: 1}
    with pytest.raises(BadParameter, match="cohorts 65537 is outside"):
        CohortBits(65537, 3)
