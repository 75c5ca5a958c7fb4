"""Two reports of one device: how much likelier alike than those of two devices, by enumeration.

A permanent response ties the reports of a device together; the instantaneous step loosens the tie.
Whatever an observer sees, the odds that two reports come from one device and not from two that hold
the same value grow by no more than the instantaneous step can tell of the permanent response.
"""

from collections import defaultdict
from fractions import Fraction

import pytest

from hubbub.mechanisms import BitSource, Probability
from hubbub.mechanisms.bucket_flips import BucketFlips
from hubbub.mechanisms.rappor_basic import BasicRappor
from hubbub.privacy.proofs.enumeration import Replay, distribution


class Remembered:
    """A source that asks its coins once and gives the same answers ever after."""

    def __init__(self, source: BitSource) -> None:
        self._source, self.answers, self.place = source, list[int](), 0

    def _answer(self, ask: int) -> int:
        self.answers.append(ask)
        return ask

    def chance(self, probability: Probability, /) -> bool:
        return bool(self.mask(probability, 1))

    def below(self, limit: int, /) -> int:
        self.place += 1
        if self.place <= len(self.answers):
            return self.answers[self.place - 1]
        return self._answer(self._source.below(limit))

    def mask(self, probability: Probability, width: int, /) -> int:
        self.place += 1
        if self.place <= len(self.answers):
            return self.answers[self.place - 1]
        return self._answer(self._source.mask(probability, width))


class Memory:
    """A device's memory, over the coins of one enumerated run."""

    def __init__(self, source: BitSource) -> None:
        self._source = source
        self._remembered: dict[bytes, Remembered] = {}

    def coins(self, purpose: bytes, /) -> BitSource:
        record = self._remembered.setdefault(purpose, Remembered(self._source))
        record.place = 0
        return record

    def content(self) -> bytes:
        """All answers that it keeps."""
        return repr(
            [(purpose, kept.answers) for purpose, kept in self._remembered.items()]
        ).encode()


def _pairs(mechanism: BasicRappor | BucketFlips, value: int) -> dict[bytes, Fraction]:
    """The exact chance of every pair of reports of one device that holds the value."""

    def run(source: Replay) -> bytes:
        memory = Memory(source)
        return b"".join(mechanism.randomize_again(value, memory, source) for _ in range(2))

    return distribution(run)


def _odds(mechanism: BasicRappor | BucketFlips, value: int) -> list[tuple[bytes, Fraction]]:
    """Per pair of reports, the odds of one device against two."""
    pairs = _pairs(mechanism, value)
    half = mechanism.layout.payload_bytes
    single: dict[bytes, Fraction] = defaultdict(Fraction)
    for pair, chance in pairs.items():
        single[pair[:half]] += chance
    assert sum(single.values()) == 1
    return [
        (pair, chance / single[pair[:half]] / single[pair[half:]]) for pair, chance in pairs.items()
    ]


@pytest.mark.parametrize(("f", "p", "q"), [(0.5, 0.25, 0.75), (0.75, 0.4, 0.6), (0.25, 0.1, 0.5)])
def test_the_instantaneous_step_bounds_how_alike_two_reports_are(
    f: float, p: float, q: float
) -> None:
    mechanism = BasicRappor(categories=2, f=f, p=p, q=q)
    zero, member = (
        mechanism.chain.one_after_zero.exact,
        mechanism.chain.one_after_one.exact,
    )
    bound = max(member / zero, (1 - zero) / (1 - member)) ** mechanism.categories
    most = max(odds for _, odds in _odds(mechanism, 1))
    assert 1 < most <= bound


def test_without_an_instantaneous_step_a_report_is_a_fingerprint() -> None:
    """As the documents warn of p = 0 with q = 1, and of `buckets`."""
    unmoved = BasicRappor(categories=2, f=0.5, p=0.0, q=1.0)
    flips = BucketFlips(epsilon=1.0, low=0, high=4, buckets=4, sampled=2)
    for mechanism in (unmoved, flips):
        half = mechanism.layout.payload_bytes
        assert all(pair[:half] == pair[half:] for pair in _pairs(mechanism, 1))
