"""Coins are exact: every answer's chance, by enumerating the bits behind it."""

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import product

import pytest

from hubbub.errors import BadParameter
from hubbub.mechanisms import KeyedBits, Probability, SystemBits
from hubbub.mechanisms import random_bits as bits_module


def _answers(ask: Callable[[bits_module.Draw], int], draws: int) -> dict[int, Fraction]:
    """The exact distribution of `ask` when every draw of up to `draws` bits is enumerated."""
    answers: Counter[int] = Counter()
    for supply in product((0, 1), repeat=draws):
        items = list(supply)

        def draw(bits: int, remaining: list[int] = items) -> int:
            assert bits <= len(remaining), "more bits drawn than enumerated"
            return sum(remaining.pop() << i for i in range(bits))

        answers[ask(draw)] += 1
    return {answer: Fraction(count, 2**draws) for answer, count in answers.items()}


@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("sixteenths", range(17))
def test_every_mask_has_exactly_its_chance(width: int, sixteenths: int) -> None:
    probability = Probability.at_most(Fraction(sixteenths, 16))
    chances = _answers(lambda draw: bits_module._mask(draw, probability, width), 4 * width)
    for mask in range(1 << width):
        ones = mask.bit_count()
        expected = probability.exact**ones * (1 - probability.exact) ** (width - ones)
        assert chances.get(mask, 0) == expected


def test_a_mask_of_coins_compares_all_64_digits() -> None:
    """The fraction just below the threshold is true, the one at the threshold is not."""
    for threshold in (1, 2**63 + 1, 2**64 - 1, 0x0123456789ABCDEF):
        for fraction in (threshold - 1, threshold):
            digits = [fraction >> (63 - i) & 1 for i in range(64)]

            def draw(bits: int, digits: list[int] = digits) -> int:
                head, digits[:] = digits[:bits], digits[bits:]
                return sum(digit << i for i, digit in enumerate(head))

            answer = bits_module._mask(draw, Probability(threshold), 1)
            assert answer == (fraction < threshold)


@pytest.mark.parametrize("limit", [1, 2, 4, 8])
def test_below_a_power_of_two_is_uniform(limit: int) -> None:
    bits = (limit - 1).bit_length()
    chances = _answers(lambda draw: bits_module._below(draw, limit), bits)
    assert chances == {answer: Fraction(1, limit) for answer in range(limit)}


def test_draws_below_a_limit_are_repeated_and_not_reduced() -> None:
    draws = iter([7, 6, 5, 3])
    assert bits_module._below(lambda _bits: next(draws), 5) == 3
    with pytest.raises(BadParameter, match="limit 0 is below 1"):
        SystemBits().below(0)


def test_probabilities_0_and_1_draw_no_coins() -> None:
    for source in (SystemBits(), KeyedBits(b"k" * 32)):
        assert source.mask(Probability(0), 200) == 0
        assert source.mask(Probability(2**64), 200) == (1 << 200) - 1
        assert source.chance(Probability(2**64))
        assert not source.chance(Probability(0))


def test_the_same_key_gives_the_same_coins_and_another_key_others() -> None:
    half = Probability.at_most(0.5)
    first, again, other = (KeyedBits(key * 32) for key in (b"a", b"a", b"b"))
    outcomes = [first.mask(half, 300), first.below(10**9), first.chance(half)]
    assert outcomes == [again.mask(half, 300), again.below(10**9), again.chance(half)]
    assert outcomes[0] != other.mask(half, 300)
    with pytest.raises(BadParameter, match="a key of 31 bytes is below 32"):
        KeyedBits(b"k" * 31)


@pytest.mark.parametrize("source", [SystemBits(), KeyedBits(b"seed" * 8)], ids=["system", "keyed"])
@pytest.mark.slow
def test_real_coins_come_up_as_often_as_they_should(source: SystemBits | KeyedBits) -> None:
    """False alarm: 6 two-sided tests at 5.5 sigma, 3.6e-7 over all; keyed is fixed."""
    for numerator in (1, 500, 999):
        probability = Probability.at_most(Fraction(numerator, 1000))
        n = 200_000
        ones = source.mask(probability, n).bit_count()
        mean, variance = n * probability.exact, n * probability.exact * (1 - probability.exact)
        assert abs(ones - mean) <= 5.5 * float(variance) ** 0.5
    counts = Counter(source.below(3) for _ in range(3000))
    assert all(abs(counts[face] - 1000) <= 5.5 * (3000 * 2 / 9) ** 0.5 for face in range(3))
