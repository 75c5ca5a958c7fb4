"""The suite itself is tried: a mechanism broken on purpose must fail at least one proof."""

import math
from collections.abc import Callable
from fractions import Fraction
from operator import attrgetter
from typing import Any

import pytest

from hubbub.errors import BadPayload, ProofFailed
from hubbub.fields.frozen import frozen
from hubbub.mechanisms import REGISTRY, AnyMechanism, BitSource, Probability, build
from hubbub.mechanisms.grr import GeneralizedRandomizedResponse
from hubbub.mechanisms.pure_protocols import Pure
from hubbub.mechanisms.subset import SubsetSelection
from hubbub.mechanisms.unary import OptimizedUnary, SymmetricUnary
from hubbub.mechanisms.uniform_subsets import choose
from hubbub.privacy.proofs.enumeration import PROOFS

pytestmark = pytest.mark.thorough


def _tampered(mechanism: AnyMechanism, **fields: object) -> AnyMechanism:
    for name, value in fields.items():
        object.__setattr__(mechanism, name, value)
    return mechanism


class FillsUpWithTheTruth(GeneralizedRandomizedResponse):
    """Lies uniformly over all values, the true one included."""

    def randomize(self, value: int, source: BitSource) -> bytes:
        truthful = source.chance(self.keep)
        return self.layout.encode(value if truthful else source.below(self.categories))


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


@frozen()
class WrongVariance(GeneralizedRandomizedResponse):
    """Uses the small-frequency approximation."""

    def variance(self, true: float, reports: int) -> float:
        del true
        return self.channel.variance(0, reports)


class SubsetFillsUpWithTheTruth(SubsetSelection):
    """May draw the true value where it should leave it out: the peers' real 1.37 for .5."""

    def randomize(self, value: int, source: BitSource) -> bytes:
        if source.chance(self.include):
            return SubsetSelection.randomize(self, value, source)
        return self.layout.encode(choose(self.categories, self.layout.ones, source))


def _published_second_step() -> dict[str, object]:
    """The second step as published: it drops ten intermediate values and wastes half of epsilon."""
    a, b, d = math.exp(1.0), math.exp(0.5), 12
    p1, q1 = a / (a + d - 1), 1 / (a + d - 1)
    p2 = (q1 - b * p1) / (-p1 * b + d * q1 * b - q1 * b - p1 * (d - 1) + q1)
    q2 = (1 - p2) / (d - 1)
    both = Pure(Fraction(p1 * p2 + (1 - p1) * q2), Fraction(q1 * p2 + (1 - q1) * q2))
    return {"fresh": Probability.at_most(p2), "channel": both}


_five: dict[str, Any] = {"epsilon": 1.0, "categories": 5}
_grr = build("grr", **_five)
_range: dict[str, Any] = {"epsilon": 1.1, "low": -2.5, "high": 7}
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
    "subset fills up with the truth": SubsetFillsUpWithTheTruth(epsilon=1.0, categories=6),
    "epsilon doubled in the window of a table": _tampered(
        build("mean.table", **_range),
        window=build("mean.table", **(_range | {"epsilon": 2.2})).window,  # type: ignore[attr-defined]
    ),
    "outputs of another epsilon in the estimator": _tampered(
        build("mean.table", **_range),
        outputs=build("mean.table", **(_range | {"epsilon": 1.4})).outputs,  # type: ignore[attr-defined]
    ),
    "second step of the published kind": _tampered(
        build("long.grr", epsilon=0.5, permanent_epsilon=1.0, categories=12),
        **_published_second_step(),
    ),
}


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_a_broken_mechanism_fails_the_suite(mutant: AnyMechanism) -> None:
    assert _fails(mutant)


class Tampered:
    """A mechanism whose randomizer alone is broken; it still claims what the whole one claims."""

    def __init__(
        self, mechanism: AnyMechanism, randomize: Callable[[Any, BitSource], bytes]
    ) -> None:
        self._whole = mechanism
        self.randomize = randomize

    def __getattr__(self, name: str) -> Any:
        return getattr(self._whole, name)


class WrongCoins:
    """Coins of other chances than were asked for: in every question, or in one number alone."""

    def __init__(
        self,
        source: BitSource,
        wrong: Callable[[Probability], Probability],
        only: int | None = None,
    ) -> None:
        self._source = source
        self._wrong = wrong
        self._only = only
        self._draws = 0

    def chance(self, probability: Probability, /) -> bool:
        return self._source.chance(self._tampered(probability))

    def below(self, limit: int, /) -> int:
        return self._source.below(limit)

    def mask(self, probability: Probability, width: int, /) -> int:
        return self._source.mask(self._tampered(probability), width)

    def _tampered(self, probability: Probability) -> Probability:
        self._draws += 1
        return self._wrong(probability) if self._only in {None, self._draws} else probability


def _rarer(probability: Probability) -> Probability:
    return Probability.at_most(probability.exact * Fraction(15, 16))


def _swapped(name: str, small: dict[str, Any]) -> AnyMechanism:
    """Says what it should rarely say often, and the other way round.

    In one question: twice would undo it. Of `buckets` in the second, since the first only starts
    the choice of a subset, which comes out right whatever the coins.
    """
    whole = build(name, **small)
    only, complement = (2 if name == "buckets" else 1), attrgetter("complement")
    return Tampered(  # type: ignore[return-value]
        whole, lambda value, source: whole.randomize(value, WrongCoins(source, complement, only))
    )


def _biased(name: str, small: dict[str, Any]) -> AnyMechanism:
    """Its coins come up a sixteenth too rarely."""
    whole = build(name, **small)
    return Tampered(  # type: ignore[return-value]
        whole, lambda value, source: whole.randomize(value, WrongCoins(source, _rarer))
    )


def _off_by_one(name: str, small: dict[str, Any]) -> AnyMechanism:
    whole = build(name, **small)
    values = list(whole.probes())
    following = dict(zip(values, values[1:] + values[:1], strict=True))
    return Tampered(whole, lambda value, source: whole.randomize(following[value], source))  # type: ignore[return-value]


def _doubled_epsilon(name: str, small: dict[str, Any]) -> AnyMechanism:
    bolder = dict(small)
    for key in ("epsilon", "permanent_epsilon"):
        if key in small:
            bolder[key] = 2 * small[key]
    if "f" in small:
        bolder["f"] = small["f"] / 4
    bold = build(name, **bolder)
    return Tampered(build(name, **small), bold.randomize)  # type: ignore[return-value]


@pytest.mark.parametrize("broken", [_swapped, _biased, _off_by_one, _doubled_epsilon])
@pytest.mark.parametrize("name", REGISTRY)
def test_every_mechanism_broken_in_every_way_fails_the_suite(
    name: str, broken: Callable[[str, dict[str, Any]], AnyMechanism]
) -> None:
    for small in REGISTRY[name].SMALL:
        assert _fails(broken(name, dict(small))), small


def _fails(mechanism: AnyMechanism) -> bool:
    """Whether a proof fails; a payload that its own layout refuses fails one too."""
    for proof in PROOFS:
        try:
            proof(mechanism)
        except (ProofFailed, BadPayload):
            return True
    return False
