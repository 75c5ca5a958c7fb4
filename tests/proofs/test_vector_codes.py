"""Codes of directions keep the contract of a mechanism, and their vectors come back unbiased."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hubbub.errors import BadParameter, BadPayload, ProofFailed, ShapeMismatch, ValueOutOfDomain
from hubbub.mechanisms import AnyMechanism, BitSource, KeyedBits, Probability, SystemBits, Totals
from hubbub.mechanisms.directions import UNIT, book, steps, top_sums
from hubbub.mechanisms.vector_codes import VectorCodes, words_for
from hubbub.privacy.proofs.enumeration import PROOFS

SMALL = [VectorCodes(**small) for small in VectorCodes.SMALL]
KNOWN = Path(__file__).parent / "directions.json"
# Asi, Feldman, Talwar (2022): what no mechanism betters, at 64 numbers.
OPTIMUM = {1.0: 406.0, 2.0: 103.5, 4.0: 27.9, 8.0: 8.5}


@pytest.mark.parametrize("mechanism", SMALL, ids=repr)
@pytest.mark.parametrize("proof", PROOFS, ids=lambda proof: proof.__name__)
def test_contract(mechanism: AnyMechanism, proof: Callable[[AnyMechanism], None]) -> None:
    proof(mechanism)


class Complement:
    """Coins that fall the other way."""

    def __init__(self, source: BitSource) -> None:
        self._source = source
        self.below, self.mask = source.below, source.mask

    def chance(self, probability: Probability, /) -> bool:
        return self._source.chance(probability.complement)


class FarForNear(VectorCodes):
    """Says what it should rarely say often."""

    def randomize(self, value: Any, source: BitSource) -> bytes:
        return VectorCodes.randomize(self, value, Complement(source))


class Opposite(VectorCodes):
    """Reports the opposite direction."""

    def randomize(self, value: Any, source: BitSource) -> bytes:
        return VectorCodes.randomize(self, [-one for one in value], source)


class Bolder(VectorCodes):
    """Randomizes for twice the epsilon that it claims."""

    def randomize(self, value: Any, source: BitSource) -> bytes:
        bold = VectorCodes(2 * self.epsilon, self.dimensions, self.words, self.books)
        return bold.randomize(value, source)


@pytest.mark.parametrize("broken", [FarForNear, Opposite, Bolder])
def test_a_broken_one_fails_the_proofs(broken: type[VectorCodes]) -> None:
    failed = []
    for proof in PROOFS:
        try:
            proof(broken(**VectorCodes.SMALL[1]))
        except ProofFailed:
            failed.append(proof.__name__)
    assert failed


@pytest.mark.parametrize("epsilon", OPTIMUM)
def test_the_error_is_within_8_in_100_of_the_optimum(epsilon: float) -> None:
    codes = VectorCodes(epsilon, 64, words_for(epsilon), 1)
    assert codes.squared_error < 1.08 * OPTIMUM[epsilon]


def test_the_largest_of_normal_numbers_are_those_of_the_tables() -> None:
    """Of two: 1/sqrt(pi); of three: 3/(2 sqrt(pi)), and the two largest as much."""
    [two] = top_sums(2)
    assert math.isclose(two[0], 1 / math.sqrt(math.pi), rel_tol=1e-9)
    assert math.isclose(two[1], 1.0, rel_tol=1e-9)
    for top, _ in top_sums(3):
        assert math.isclose(top, 1.5 / math.sqrt(math.pi), rel_tol=1e-9)


def test_the_directions_are_known_answers() -> None:
    known = json.loads(KNOWN.read_text(encoding="utf-8"))
    assert list(steps()) == known["steps"]
    assert book("a seed", 7, 4, 5) == known["book"]
    codes = VectorCodes(**known["parameters"])
    coins = KeyedBits(bytes.fromhex(known["key"]))
    for value, payload in known["payloads"]:
        assert codes.randomize(value, coins).hex() == payload
    assert abs(sum(step * step for step in steps()) / len(steps()) / UNIT**2 - 1) < 1e-4


def test_what_is_no_unit_vector_is_refused_and_never_shown() -> None:
    codes: Any = SMALL[1]
    for value in (
        [1.0, 0.0],
        "abc",
        b"abc",
        None,
        7777,
        [1.0, 1.0, 0.0],
        [math.nan, 0, 1],
        [1, 0, "x"],
    ):
        for act in (codes.check, lambda v: codes.randomize(v, SystemBits()), codes.row):
            with pytest.raises(ValueOutOfDomain, match="no vector of 3 numbers of length 1"):
                act(value)


def test_wrong_parameters_payloads_and_totals_are_refused() -> None:
    with pytest.raises(BadParameter, match="dimensions 1 is outside"):
        VectorCodes(1.0, 1, 4, 4)
    with pytest.raises(BadParameter, match="together above"):
        VectorCodes(1.0, 4, 1024, 65536)
    with pytest.raises(BadParameter, match="seed is no text"):
        VectorCodes(1.0, 4, 4, 4, 5)  # type: ignore[arg-type]
    codes = SMALL[1]
    for hostile in (b"", b"\xff", b"\0\0"):
        with pytest.raises(BadPayload):
            codes.layout.cells(hostile)
    with pytest.raises(ShapeMismatch):
        codes.estimate(Totals([0], 0))
