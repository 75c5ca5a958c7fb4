"""Sets of values, asked as docs/mechanisms.md tells: unbiased, with the variance told there."""

from math import log, sqrt

import pytest

from hubbub.analysis import estimate
from hubbub.mechanisms import build, tally
from hubbub.mechanisms.projective import ProjectiveResponse
from tests.statistics.test_real_sizes import SeededBits

MOST = 4
LISTED = ("a", "b", "c", "d", "e", "f", "none")
# Sets of two, of MOST and of nothing.
PEOPLE = [frozenset("ab")] * 6_000 + [frozenset("acdf")] * 5_000 + [frozenset()] * 9_000


def _drawn(held: frozenset[str], coins: SeededBits) -> int:
    """As the document's line draws it: a value of the set, padded to MOST."""
    padded = [*sorted(held), *["none"] * (MOST - len(held))]
    return LISTED.index(padded[coins.below(len(padded))])


@pytest.mark.parametrize("name", ["grr", "subset", "projective"])
def test_a_padded_and_sampled_set_is_counted_with_the_variance_that_is_told(name: str) -> None:
    mechanism = build(name, epsilon=2.0, categories=len(LISTED))
    coins = SeededBits(f"sets {name}")
    reports = (mechanism.randomize(_drawn(held, coins), coins) for held in PEOPLE)
    found = estimate(mechanism, tally(mechanism.layout, reports))
    n = len(PEOPLE)
    for place, value in enumerate(LISTED[:-1]):
        true = sum(value in held for held in PEOPLE)
        told = MOST**2 * mechanism.variance(true / MOST, n) + (MOST - 1) * true
        # Six values of three mechanisms beyond 5.7 sigma: less than once in a million.
        assert abs(MOST * found.values[place] - true) < 5.7 * sqrt(told)


@pytest.mark.parametrize("epsilon", [1.0, 2.0])
@pytest.mark.parametrize("categories", [20, 300])
def test_the_variance_that_is_told_is_that_of_one_coin_for_drawing_and_lying(
    categories: int, epsilon: float
) -> None:
    """A holder's report supports the value by p / most + q (1 - 1 / most), another's by q."""
    mechanism = ProjectiveResponse(epsilon, categories)
    p, q = float(mechanism.channel.p), float(mechanism.channel.q)
    held, n = p / MOST + q * (1 - 1 / MOST), 1_000
    for true in (0, 10, 700):
        exact = (true * held * (1 - held) + (n - true) * q * (1 - q)) / (held - q) ** 2
        told = MOST**2 * mechanism.variance(true / MOST, n) + (MOST - 1) * true
        assert told == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("most", [3, 5, 8])
def test_lists_win_over_questions_in_turn_from_where_the_document_says(
    most: int, epsilon: float
) -> None:
    """A value in turn has the variance of `rr` over a d-th of the reports."""
    one = build("rr", epsilon=epsilon).variance(0, 1)
    for values, listed_wins in ((2 * most**2, False), (8 * most**2, True)):
        listed = build("projective", epsilon=epsilon, categories=values + 1)
        assert (most**2 * listed.variance(0, 1) < values * one) is listed_wins


def test_no_more_than_epsilon_is_told_of_a_whole_set() -> None:
    """Each set is a mixture of the list's values, so no ratio is above theirs."""
    mechanism = build("grr", epsilon=1.0, categories=len(LISTED))
    sets = [frozenset(), frozenset("a"), frozenset("ab"), frozenset("abcd"), frozenset("cdef")]
    chances = []
    for held in sets:
        padded = [*sorted(held), *["none"] * (MOST - len(held))]
        chances.append(
            [
                sum(mechanism.likelihood(LISTED.index(one), {cell: 1}) for one in padded) / MOST
                for cell in range(len(LISTED))
            ]
        )
    worst = max(
        a / b for one in chances for other in chances for a, b in zip(one, other, strict=True)
    )
    assert 0 < log(worst) <= 1.0
