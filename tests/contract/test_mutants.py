"""The suite itself is tried: a mechanism broken on purpose must fail at least one proof."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest

from hubbub.mechanisms import AnyMechanism, BitSource, Probability, build
from hubbub.mechanisms.grr import GeneralizedRandomizedResponse
from hubbub.mechanisms.pure import Pure
from hubbub.mechanisms.unary import OptimizedUnary, SymmetricUnary
from tests.contract.proofs import PROOFS


def _tampered(mechanism: AnyMechanism, **fields: object) -> AnyMechanism:
    for name, value in fields.items():
        object.__setattr__(mechanism, name, value)
    return mechanism


class FillsUpWithTheTruth(GeneralizedRandomizedResponse):
    """Lies uniformly over all values, the true one included."""

    def randomize(self, value: int, source: BitSource) -> bytes:
        kept = source.chance(self.keep)
        return self.layout.encode(value if kept else source.below(self.categories))


class OffByOne(GeneralizedRandomizedResponse):
    """Never names the last value in place of another."""

    def randomize(self, value: int, source: BitSource) -> bytes:
        if source.chance(self.keep):
            return self.layout.encode(value)
        other = source.below(self.categories - 1)
        return self.layout.encode(min(other + (other > value), self.categories - 1))


class SwapsTheBits(OptimizedUnary):
    """Packs its bits from the other end."""

    def randomize(self, value: int, source: BitSource) -> bytes:
        return OptimizedUnary.randomize(self, self.categories - 1 - value, source)


class BiasedCoin(SymmetricUnary):
    """Its coins come up a little too rarely."""

    def randomize(self, value: int, source: BitSource) -> bytes:
        lie = Probability.at_most(self.lie.exact * Fraction(15, 16))
        return self.layout.encode(source.mask(lie, self.categories) ^ 1 << value)


class ForgetsTheTrueBit(OptimizedUnary):
    """Keeps the true bit with probability q in place of one half: the peers' mistake 1."""

    def randomize(self, value: int, source: BitSource) -> bytes:
        del value
        return self.layout.encode(source.mask(self.lie, self.categories))


@dataclass(frozen=True)
class WrongVariance(GeneralizedRandomizedResponse):
    """Uses the small-frequency approximation."""

    def variance(self, true: float, reports: int) -> float:
        del true
        return self.channel.variance(0, reports)


_five: dict[str, Any] = {"epsilon": 1.0, "categories": 5}
_grr = build("grr", **_five)
_doubled = build("grr", epsilon=2.0, categories=5)
MUTANTS = {
    "p and q swapped in the estimator": _tampered(
        build("unary.oue", **_five),
        channel=Pure(build("unary.oue", **_five).channel.p, Fraction(1, 5)),  # type: ignore[attr-defined]
    ),
    "epsilon doubled in the sampler": _tampered(
        build("grr", **_five),
        keep=_doubled.keep,  # type: ignore[attr-defined]
    ),
    "epsilon doubled everywhere": _tampered(
        build("grr", **_five),
        keep=_doubled.keep,  # type: ignore[attr-defined]
        channel=_doubled.channel,  # type: ignore[attr-defined]
    ),
    "keeps with the chance of a lie": _tampered(
        build("grr", **_five),
        keep=_grr.keep.complement,  # type: ignore[attr-defined]
    ),
    "fills up with the truth": FillsUpWithTheTruth(**_five),
    "off by one in the domain": OffByOne(**_five),
    "bits packed from the other end": SwapsTheBits(**_five),
    "a biased coin": BiasedCoin(**_five),
    "true bit not kept": ForgetsTheTrueBit(**_five),
    "approximate variance": WrongVariance(**_five),
}


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_a_broken_mechanism_fails_the_suite(mutant: AnyMechanism) -> None:
    failed = []
    for proof in PROOFS:
        try:
            proof(mutant)
        except AssertionError:
            failed.append(proof.__name__)
    assert failed
