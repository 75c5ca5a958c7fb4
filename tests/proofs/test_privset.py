"""PrivSet: what is told of larger sets, and of more values than small instances have."""

from fractions import Fraction
from math import comb

import pytest

from hubbub.errors import BadParameter
from hubbub.mechanisms import build
from hubbub.mechanisms.privset import PrivSet
from hubbub.mechanisms.probability import log_at_least
from hubbub.mechanisms.uniform_subsets import members, numbered
from hubbub.privacy.proofs.enumeration import distribution, ratios_are_within_the_claim


def test_larger_sets_are_reported_in_part_with_equal_privacy() -> None:
    """Of every set there is, also of more than `most`, by walking all coins."""
    mechanism = PrivSet(0.5, 4, 2)
    values = range(1 << 4)
    rows = [distribution(lambda coins, v=value: mechanism.randomize(v, coins)) for value in values]  # type: ignore[misc]
    ratios_are_within_the_claim(rows, mechanism)
    p, q = mechanism.channel.p, mechanism.channel.q
    for value, row in zip(values, rows, strict=True):
        for place, truth in enumerate(mechanism.row(value)):
            total = sum((c for payload, c in row.items() if payload[0] >> place & 1), Fraction())
            assert total == truth * p + (1 - truth) * q
        for payload, chance in row.items():
            cells = mechanism.layout.cells(payload)
            ratio = mechanism.likelihood(value, cells) / mechanism.likelihood(0, cells)
            assert ratio == chance / rows[0][payload]


@pytest.mark.parametrize(("categories", "most"), [(8, 2), (20, 3)])
def test_probes_of_many_values_include_a_supported_and_an_unsupported_one(
    categories: int, most: int
) -> None:
    """One payload, one of the probes that meets it, one that misses it: as far as is claimed."""
    mechanism = PrivSet(1.0, categories, most)
    probes = mechanism.probes()
    assert {0, *(1 << place for place in range(categories))} <= set(probes)
    cells = dict.fromkeys(range(mechanism.layout.ones), 1)
    likelihoods = [mechanism.likelihood(value, cells) for value in probes]
    assert log_at_least(max(likelihoods) / min(likelihoods)) == mechanism.privacy_loss()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"categories": 5000, "most": 2}, "categories 5000 is outside [2, 4096] of sets"),
        ({"categories": 4, "most": 5}, "most 5 is outside [1, 4]"),
    ],
)
def test_sets_beyond_what_can_be_drawn_are_refused(wrong: dict[str, int], message: str) -> None:
    with pytest.raises(BadParameter) as error:
        build("privset", epsilon=1.0, **wrong)
    assert message in str(error.value)


def test_subsets_are_numbered_each_once() -> None:
    for size, count in ((5, 2), (6, 0), (4, 4), (7, 3)):
        subsets = {numbered(size, count, number) for number in range(comb(size, count))}
        assert len(subsets) == comb(size, count)
        assert all(len([*members(subset)]) == count and subset < 1 << size for subset in subsets)


def test_variances_are_those_of_the_decision() -> None:
    """Of the table in docs/research/mechanisms.md: a value that one in fifty holds, `most` = 5."""
    for categories, epsilon, expected in (
        (30, 1, 14.5),
        (100, 1, 18.7),
        (100, 2, 3.16),
        (1000, 2, 3.94),
    ):
        channel = PrivSet(epsilon, categories, 5).channel
        spread = 0.02 * channel.variance(1, 1) + 0.98 * channel.variance(0, 1)
        assert spread == pytest.approx(expected, rel=3e-3)
