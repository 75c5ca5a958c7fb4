"""Every registry entry keeps the contract: proven by exact enumeration of the shipping code."""

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from typing import Any

import pytest

from hubbub.errors import BadParameter, BadPayload, ShapeMismatch, ValueOutOfDomain
from hubbub.mechanisms import (
    REGISTRY,
    AnyMechanism,
    BitSource,
    KeyedBits,
    Memoized,
    SystemBits,
    Totals,
    build,
    parameters,
)
from hubbub.mechanisms.longitudinal_hash import LongitudinalHash
from hubbub.mechanisms.projective_geometry import HashPool
from hubbub.privacy.proofs.enumeration import PROOFS, SMALL

every_small_mechanism = pytest.mark.parametrize("mechanism", SMALL, ids=repr)


@every_small_mechanism
@pytest.mark.parametrize("proof", PROOFS, ids=lambda proof: proof.__name__)
def test_contract(mechanism: AnyMechanism, proof: Callable[[AnyMechanism], None]) -> None:
    proof(mechanism)


@every_small_mechanism
def test_a_memo_fixes_what_must_be_permanent(mechanism: AnyMechanism) -> None:
    if not isinstance(mechanism, Memoized):
        return
    told_apart = 0
    for device in range(8):
        memo = _Recording(device)
        keys = [mechanism.permanent_key(mechanism.probes()[i], memo) for i in (0, -1)]
        memo.purposes.clear()
        for i in (0, -1):
            mechanism.randomize_again(mechanism.probes()[i], memo, SystemBits())
        permanent = [purpose for purpose in memo.purposes if purpose.startswith(b"permanent")]
        assert {b"permanent" + key for key in keys} == set(permanent)
        told_apart += len(set(permanent)) == 2
    # Of hashed values some devices have two in one bucket.
    assert told_apart == 8 or (mechanism.NAME == LongitudinalHash.NAME and told_apart)
    for value in (None, b"bytes", "x" * 5000, float("nan")):
        with pytest.raises(ValueOutOfDomain):
            mechanism.permanent_key(value, _Recording(0))


class _Recording:
    """A device's memory that notes what it is asked for."""

    def __init__(self, device: int) -> None:
        self._device = device
        self.purposes: list[bytes] = []

    def coins(self, purpose: bytes, /) -> BitSource:
        self.purposes.append(purpose)
        return KeyedBits(bytes([self._device]) * 32 + purpose)


def test_values_in_one_bucket_share_their_permanent_answer() -> None:
    """However many values a device holds in its life, its permanent answers are those of g."""
    mechanism = build("long.hash", epsilon=1.0, permanent_epsilon=2.0, categories=80)
    assert isinstance(mechanism, LongitudinalHash)
    for device in range(20):
        memo = _Recording(device)
        keys = {mechanism.permanent_key(value, memo) for value in range(80)}
        assert 1 < len(keys) <= mechanism.transform.prime < 10
        shared = [
            value
            for value in range(80)
            if mechanism.permanent_key(value, memo) == mechanism.permanent_key(0, memo)
        ]
        sent = {mechanism.randomize_again(value, memo, KeyedBits(bytes(32))) for value in shared}
        assert len(sent) == 1 < len(shared)


@pytest.mark.parametrize(("prime", "dimensions"), [(2, 2), (2, 4), (3, 3), (7, 2)])
def test_any_two_values_collide_under_the_same_share_of_the_pool(
    prime: int, dimensions: int
) -> None:
    pool = HashPool(prime, dimensions)
    values = range(prime**dimensions)
    hashed = [[pool.bucket(value, j) for j in range(pool.functions)] for value in values]
    for first, other in combinations(hashed, 2):
        same = sum(a == b for a, b in zip(first, other, strict=True))
        assert Fraction(same, pool.functions) == pool.collisions


def test_numbers_in_one_bucket_share_their_permanent_answers() -> None:
    mechanism = build("buckets", epsilon=1.0, low=0, high=24, buckets=12, sampled=4)
    assert isinstance(mechanism, Memoized)
    keys = [mechanism.permanent_key(value, _Recording(0)) for value in (6.1, 7.9, 8.1)]
    assert keys[0] == keys[1] != keys[2]


@pytest.mark.parametrize("name", REGISTRY)
def test_every_entry_has_small_instances_and_a_stable_name(name: str) -> None:
    entry = REGISTRY[name]
    assert name == entry.NAME
    assert entry.VERSION >= 1
    assert entry.SMALL
    assert [line for line in (entry.__module__,) if line.startswith("hubbub.mechanisms.")]


@every_small_mechanism
def test_totals_of_another_shape_are_refused(mechanism: AnyMechanism) -> None:
    with pytest.raises(ShapeMismatch):
        mechanism.estimate(Totals(cells=[0] * (mechanism.layout.size + 1), reports=0))
    with pytest.raises(ShapeMismatch):
        mechanism.estimate(Totals(cells=[0] * mechanism.layout.size, reports=-1))


@every_small_mechanism
def test_the_variance_of_no_reports_is_zero(mechanism: AnyMechanism) -> None:
    assert mechanism.variance(0.0, 0) == 0.0


@every_small_mechanism
def test_a_value_outside_the_domain_is_refused_and_never_shown(mechanism: AnyMechanism) -> None:
    for value in ("no-such-value-77", 7777, -7777, None, 0.5, "x" * 5000, "\ud800", b"bytes"):
        if (mechanism.VALUES, value) in {("strings", "no-such-value-77"), ("numbers", 0.5)}:
            continue
        for act in (mechanism.check, lambda v: mechanism.randomize(v, SystemBits()), mechanism.row):
            with pytest.raises(ValueOutOfDomain) as caught:
                act(value)
            assert str(value) not in str(caught.value)


@every_small_mechanism
def test_payloads_that_no_honest_client_sends_are_refused(mechanism: AnyMechanism) -> None:
    layout = mechanism.layout
    honest = mechanism.randomize(mechanism.probes()[0], SystemBits())
    for hostile in (b"", honest[:-1], honest + b"\0", b"\xff" * layout.payload_bytes):
        with pytest.raises(BadPayload):
            layout.cells(hostile)


@pytest.mark.parametrize("name", REGISTRY)
def test_a_wrong_parameter_is_named_with_its_range(name: str) -> None:
    small = dict(REGISTRY[name].SMALL[0])
    with pytest.raises(BadParameter, match='"nonsense" is not a parameter; it takes'):
        build(name, **small, nonsense=1)
    for key in small:
        rest = {other: number for other, number in small.items() if other != key}
        if parameters(name)[key]:
            with pytest.raises(BadParameter, match=f'"{key}" is missing'):
                build(name, **rest)
        bounds = (-1, 1e9) if key not in {"low", "high"} else ()  # a range may end anywhere
        for wrong in (*bounds, float("nan"), float("inf"), "1", None):
            with pytest.raises(BadParameter):
                build(name, **{**small, key: wrong})


def test_an_unknown_mechanism_is_refused_with_the_known_ones() -> None:
    with pytest.raises(BadParameter, match='mechanism "olh" is unknown; there are rr, grr'):
        build("olh", epsilon=1.0)


@pytest.mark.parametrize("name", ["wave", "haar"])
def test_the_probabilities_of_indices_are_those_of_the_law(name: str) -> None:
    for small in REGISTRY[name].SMALL:
        mechanism: Any = build(name, **small)
        cells = range(mechanism.layout.size)
        for bucket, value in enumerate(mechanism.probes()):
            law = [float(mechanism.likelihood(value, {cell: 1})) for cell in cells]
            assert mechanism.chances(bucket) == pytest.approx(law, rel=1e-12)
            assert sum(law) == pytest.approx(1.0, rel=1e-12)
