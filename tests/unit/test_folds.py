"""Every numpy fold equals its plain reference, on honest and on hostile bytes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.aggregator.ingest.fold import (
    count_ones,
    count_ones_in_groups,
    fold,
    well_formed,
)
from hubbub.errors import BadPayload
from hubbub.mechanisms import BitVector, CohortBits, Layout, OneHot, Samples, Subset, layout, tally

layouts: st.SearchStrategy[Layout] = st.one_of(
    st.builds(OneHot, st.integers(2, 70_000)),
    st.builds(BitVector, st.integers(1, 40)),
    st.integers(1, 40).flatmap(lambda d: st.builds(Subset, st.just(d), st.integers(0, min(d, 4)))),
    st.integers(2, 300).flatmap(
        lambda d: st.builds(Samples, st.just(d), st.integers(1, min(d, 4)))
    ),
    st.builds(CohortBits, st.integers(1, 300), st.integers(1, 20)),
)


@st.composite
def batches(draw: st.DrawFn) -> tuple[Layout, list[bytes]]:
    layout = draw(layouts)
    size = layout.payload_bytes
    # Small bytes are often well formed, any bytes often not.
    payload = st.one_of(
        st.binary(min_size=size, max_size=size),
        st.lists(st.integers(0, 1), min_size=size, max_size=size).map(bytes),
    )
    return layout, draw(st.lists(payload, max_size=30))


def _matrix(
    layout: Layout, payloads: list[bytes]
) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    flat = np.frombuffer(b"".join(payloads), dtype=np.uint8)
    return flat.reshape(len(payloads), layout.payload_bytes)


def _is_honest(layout: Layout, payload: bytes) -> bool:
    try:
        layout.cells(payload)
    except BadPayload:
        return False
    return True


@pytest.mark.slow
@given(batches())
def test_a_fold_is_the_reference(batch: tuple[Layout, list[bytes]]) -> None:
    layout, payloads = batch
    mask = well_formed(layout, _matrix(layout, payloads))
    assert mask.tolist() == [_is_honest(layout, payload) for payload in payloads]
    good = [payload for payload, is_good in zip(payloads, mask, strict=True) if is_good]
    assert fold(layout, _matrix(layout, good)).tolist() == tally(layout, good).cells


@pytest.mark.slow
@given(batches())
def test_adding_commutes_and_splits(batch: tuple[Layout, list[bytes]]) -> None:
    layout, payloads = batch
    good = [payload for payload in payloads if _is_honest(layout, payload)]
    whole = fold(layout, _matrix(layout, good))
    mixed = good[::-1]
    half = len(mixed) // 2
    parts = [fold(layout, _matrix(layout, part)) for part in (mixed[:half], mixed[half:])]
    assert (whole == parts[0] + parts[1]).all()
    assert whole.dtype == np.int64


@given(layouts, st.binary(max_size=64))
def test_hostile_bytes_only_ever_raise_bad_payload(layout: Layout, payload: bytes) -> None:
    try:
        cells = layout.cells(payload)
    except BadPayload:
        return
    assert len(payload) == layout.payload_bytes
    assert all(0 <= cell < layout.size and amount == 1 for cell, amount in cells.items())
    assert list(cells) == sorted(cells)


@given(st.integers(2, 70_000).flatmap(lambda d: st.tuples(st.just(d), st.integers(0, d - 1))))
def test_an_index_reads_back(pair: tuple[int, int]) -> None:
    size, index = pair
    assert OneHot(size).cells(OneHot(size).encode(index)) == {index: 1}


@pytest.mark.slow
@given(st.integers(0, 3000), st.integers(1, 20), st.integers(1, 40), st.integers(0, 10**6))
def test_ones_are_counted_as_one_by_one(rows: int, width: int, number: int, seed: int) -> None:
    """Rows in numbers that need several rounds of carries; groups even, and all in a few."""
    chance = np.random.default_rng(seed)
    payloads = chance.integers(256, size=(rows, width), dtype=np.uint8)
    bits = np.unpackbits(payloads, axis=1, bitorder="little")
    assert (count_ones(payloads) == bits.sum(axis=0)).all()
    for groups in (
        chance.integers(number, size=rows),
        chance.integers(number, size=rows) ** 9 % number,
    ):
        expected = np.zeros((number, 8 * width), dtype=np.int64)
        np.add.at(expected, groups, bits)
        assert (count_ones_in_groups(payloads, groups, number) == expected).all()


def test_every_layout_has_a_fast_fold() -> None:
    every: list[Layout] = [OneHot(3), BitVector(9), Subset(9, 2), Samples(9, 2), CohortBits(4, 9)]
    kinds = [kind for kind in vars(layout).values() if hasattr(kind, "payload_bytes")]
    assert {*kinds} == {Layout, *map(type, every)}
    for own in every:
        none = np.zeros((0, own.payload_bytes), dtype=np.uint8)
        assert fold(own, none).tolist() == [0] * own.size
        assert len(well_formed(own, none)) == 0
