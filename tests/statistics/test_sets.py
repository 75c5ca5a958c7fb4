"""Sets of values, asked as docs/mechanisms.md tells: unbiased, with the variance told there."""

from math import log, sqrt

import pytest

from hubbub.analysis.families.listed_values import estimates_of
from hubbub.mechanisms import build, tally
from hubbub.mechanisms.projective import ProjectiveResponse
from tests.statistics.test_real_sizes import SeededBits

MOST = 4
LISTED = ("a", "b", "c", "d", "e", "f", "none")
# Sets of two, of MOST and of nothing.
PEOPLE = [frozenset("ab")] * 6_000 + [frozenset("acdf")] * 5_000 + [frozenset()] * 9_000


def _draw_value(values: frozenset[str], coins: SeededBits) -> int:
    """As the document's line draws it: a value of the set, padded to MOST."""
    padded = [*sorted(values), *["none"] * (MOST - len(values))]
    return LISTED.index(padded[coins.below(len(padded))])


@pytest.mark.parametrize("name", ["grr", "subset", "projective"])
def test_a_padded_and_sampled_set_has_the_stated_variance(name: str) -> None:
    mechanism = build(name, epsilon=2.0, categories=len(LISTED))
    coins = SeededBits(f"sets {name}")
    reports = (mechanism.randomize(_draw_value(person, coins), coins) for person in PEOPLE)
    values, _ = estimates_of(mechanism, tally(mechanism.layout, reports))
    n = len(PEOPLE)
    for place, value in enumerate(LISTED[:-1]):
        true = sum(value in person for person in PEOPLE)
        variance = MOST**2 * mechanism.variance(true / MOST, n) + (MOST - 1) * true
        # Six values of three mechanisms beyond 5.7 sigma: less than once in a million.
        assert abs(MOST * values[place] - true) < 5.7 * sqrt(variance)


@pytest.mark.parametrize("epsilon", [1.0, 2.0])
@pytest.mark.parametrize("categories", [20, 300])
def test_the_stated_variance_is_that_of_one_combined_coin(categories: int, epsilon: float) -> None:
    """A holder's report supports the value by p / most + q (1 - 1 / most), another's by q."""
    mechanism = ProjectiveResponse(epsilon, categories)
    p, q = float(mechanism.channel.p), float(mechanism.channel.q)
    own_chance, n = p / MOST + q * (1 - 1 / MOST), 1_000
    for true in (0, 10, 700):
        exact = (true * own_chance * (1 - own_chance) + (n - true) * q * (1 - q)) / (
            own_chance - q
        ) ** 2
        variance = MOST**2 * mechanism.variance(true / MOST, n) + (MOST - 1) * true
        assert variance == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("most", [3, 5, 8])
def test_privset_beats_questions_in_turn_from_the_documented_size(
    most: int, epsilon: float
) -> None:
    """A value in turn has the variance of `rr` over a d-th of the reports."""
    mechanism = build("rr", epsilon=epsilon).variance(0, 1)
    for values, listed_wins in ((2 * most**2, False), (8 * most**2, True)):
        listed = build("projective", epsilon=epsilon, categories=values + 1)
        assert (most**2 * listed.variance(0, 1) < values * mechanism) is listed_wins


def test_a_report_of_a_whole_set_reveals_at_most_epsilon() -> None:
    """Each set is a mixture of the list's values, so no ratio is above theirs."""
    mechanism = build("grr", epsilon=1.0, categories=len(LISTED))
    sets = [frozenset(), frozenset("a"), frozenset("ab"), frozenset("abcd"), frozenset("cdef")]
    chances = []
    for value_set in sets:
        padded = [*sorted(value_set), *["none"] * (MOST - len(value_set))]
        chances.append(
            [
                sum(mechanism.likelihood(LISTED.index(value), {cell: 1}) for value in padded) / MOST
                for cell in range(len(LISTED))
            ]
        )
    worst = max(
        a / b for chance in chances for other in chances for a, b in zip(chance, other, strict=True)
    )
    assert 0 < log(worst) <= 1.0
