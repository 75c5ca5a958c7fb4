"""Codes of directions keep the contract of a mechanism, and their vectors come back unbiased."""

import json
import math
from functools import partial
from itertools import pairwise
from statistics import NormalDist
from typing import Any

import pytest

from hubbub.errors import BadParameter, BadPayload, ProofFailed, ShapeMismatch, ValueOutOfDomain
from hubbub.mechanisms import BitSource, Probability, SystemBits, Totals
from hubbub.mechanisms.direction_pool import UNIT, steps, top_sums
from hubbub.mechanisms.portable_floats import binomial, density, falling, normal_tail
from hubbub.mechanisms.probability import log_at_least
from hubbub.mechanisms.vector_codes import VectorCodes, pool_for, words_for
from hubbub.privacy.proofs.enumeration import PROOFS, distribution
from tests.proofs.vectors import directions

# Asi, Feldman, Talwar (2022): what no mechanism betters, at 64 numbers.
OPTIMUM = {1.0: 406.0, 2.0: 103.5, 4.0: 27.9, 8.0: 8.5}


@pytest.mark.parametrize(
    "vector",
    [
        [0.3, -0.4],
        [0.0, 0.0],
        [0.0, 1.0],
        [2.0, 0.0],
        [1e-9, 0.0],
        [3e-162, 4e-162],
        [5e-324, 0.0],
        [1, 1],
    ],
)
def test_a_shorter_vector_is_its_direction_or_the_opposite_with_its_own_mean(
    vector: list[float],
) -> None:
    codes = VectorCodes(epsilon=1.0, dimensions=2, words=5, books=2, max_length=2.0)
    length = math.hypot(*vector)
    scaled = [x / max(map(abs, vector)) for x in vector] if length else [1.0, 0.0]
    direction = [2 * x / math.hypot(*scaled) for x in scaled]
    law, straight, opposite = (
        distribution(partial(codes.randomize, way))
        for way in (vector, direction, [-x for x in direction])
    )
    turned = (1 - length / 2) / 2
    for payload, chance in law.items():
        mixed = (1 - turned) * float(straight[payload]) + turned * float(opposite[payload])
        assert float(chance) == pytest.approx(mixed, abs=1e-15)
        # What a payload could have meant is weighed by the same law, exactly.
        cells = codes.layout.cells(payload)
        assert chance == codes.likelihood(vector, cells) / codes.books
    ratio = max(law[payload] / opposite[payload] for payload in law)
    assert log_at_least(ratio) <= codes.privacy_loss()
    rows = [codes.row(way) for way in (vector, direction, [-x for x in direction])]
    for mixture, ahead, behind in zip(*rows, strict=True):
        mixed = (1 - turned) * float(ahead) + turned * float(behind)
        assert float(mixture) == pytest.approx(mixed, abs=1e-15)


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
        return VectorCodes.randomize(self, [-component for component in value], source)


class Bolder(VectorCodes):
    """Randomizes for twice the epsilon that it claims."""

    def randomize(self, value: Any, source: BitSource) -> bytes:
        bold = VectorCodes(
            epsilon=2 * self.epsilon, dimensions=self.dimensions, words=self.words, books=self.books
        )
        return bold.randomize(value, source)


@pytest.mark.parametrize("broken", [FarForNear, Opposite, Bolder])
def test_a_broken_mechanism_fails_the_proofs(broken: type[VectorCodes]) -> None:
    failed = []
    for proof in PROOFS:
        try:
            proof(broken(**VectorCodes.SMALL[1]))
        except ProofFailed:
            failed.append(proof.__name__)
    assert failed


@pytest.mark.parametrize("epsilon", OPTIMUM)
def test_the_error_is_within_8_in_100_of_the_optimum(epsilon: float) -> None:
    codes = VectorCodes(epsilon=epsilon, dimensions=64, words=words_for(epsilon), books=1)
    assert codes.squared_error < 1.08 * OPTIMUM[epsilon]
    pool: Any = pool_for(epsilon)
    assert (
        pool["words"] * pool["books"]
        == VectorCodes(epsilon=epsilon, dimensions=64, **pool).layout.size
        == 1 << 20
    )


def test_the_largest_of_normal_numbers_are_those_of_the_tables() -> None:
    """Of two: 1/sqrt(pi); of three: 3/(2 sqrt(pi)), and the two largest as much."""
    [two] = top_sums(2)
    assert math.isclose(two[0], 1 / math.sqrt(math.pi), rel_tol=1e-9)
    assert math.isclose(two[1], 1.0, rel_tol=1e-9)
    for top, _ in top_sums(3):
        assert math.isclose(top, 1.5 / math.sqrt(math.pi), rel_tol=1e-9)


def test_the_directions_are_known_answers() -> None:
    document = json.loads(directions.FILE.read_text(encoding="utf-8"))
    assert json.loads(json.dumps(directions.known_answers())) == document
    assert abs(sum(step * step for step in steps()) / len(steps()) / UNIT**2 - 1) < 1e-4


def test_no_library_rounds_a_step_otherwise() -> None:
    """Means of a normal number, by our own density at the edges that Python's library finds."""
    edges = [density(NormalDist().inv_cdf(part / 4096)) for part in range(1, 4096)]
    means = [4096 * (a - b) for a, b in pairwise([0.0, *edges, 0.0])]
    spread = math.sqrt(math.fsum(mean * mean for mean in means) / 4096)
    for mean, step in zip(means, steps(), strict=True):
        assert abs(mean / spread * UNIT - step) < 0.4995


def test_floats_of_our_own_are_those_of_the_library_but_for_the_last_digits() -> None:
    for z in (-8.0, -3.0, -2.0, -0.5, 0.0, 1e-9, 0.7, 1.999, 2.0, 3.3, 8.0):
        assert math.isclose(normal_tail(z), math.erfc(z / math.sqrt(2)) / 2, rel_tol=1e-12)
        assert math.isclose(density(z), NormalDist().pdf(z), rel_tol=1e-12)
        assert math.isclose(falling(z * z), math.exp(-z * z), rel_tol=1e-12)
    chances = binomial(9, 0.3, 0.7)
    for many, chance in enumerate(chances):
        right = math.comb(9, many) * 0.3**many * 0.7 ** (9 - many)
        assert math.isclose(chance, right, rel_tol=1e-12)
    assert binomial(3, 1e-300, 1.0)[0] == binomial(3, 1.0, 1e-300)[3] == 1.0


def test_an_invalid_vector_is_refused_and_never_shown() -> None:
    codes: Any = VectorCodes(epsilon=1.0, dimensions=3, words=5, books=3)
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
            with pytest.raises(ValueOutOfDomain, match="not a vector of 3 numbers of length 1 or"):
                act(value)


def test_wrong_parameters_payloads_and_totals_are_refused() -> None:
    with pytest.raises(BadParameter, match="dimensions 1 is outside"):
        VectorCodes(epsilon=1.0, dimensions=1, words=4, books=4)
    with pytest.raises(BadParameter, match="together above"):
        VectorCodes(epsilon=1.0, dimensions=4, words=1024, books=65536)
    with pytest.raises(BadParameter, match="seed must be a text"):
        VectorCodes(epsilon=1.0, dimensions=4, words=4, books=4, seed=5)  # type: ignore[arg-type]
    for length in (0.0, -1.0, math.nan, math.inf, 1e13, True, "1"):
        with pytest.raises(BadParameter, match="max_length"):
            VectorCodes(epsilon=1.0, dimensions=4, words=4, books=4, max_length=length)  # type: ignore[arg-type]
    codes = VectorCodes(epsilon=1.0, dimensions=3, words=5, books=3)
    for hostile in (b"", b"\xff", b"\0\0"):
        with pytest.raises(BadPayload):
            codes.layout.cells(hostile)
    with pytest.raises(ShapeMismatch):
        codes.estimate(Totals(cells=[0], reports=0))
