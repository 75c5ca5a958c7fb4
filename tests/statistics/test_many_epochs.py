"""What several epochs say together: never below the truth, near it, and what the card tells."""

from dataclasses import replace
from fractions import Fraction
from math import comb, exp, log

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from scipy.stats import binom

from hubbub.errors import BadParameter
from hubbub.privacy.many_epochs import composed_epsilon, largest_local_together
from hubbub.privacy.shuffled_epoch import ShuffledEpoch
from hubbub.privacy.shuffled_histogram import central_epsilon
from tests.support.crowds import crowd_of


@pytest.mark.parametrize(
    ("times", "delta", "mean"),
    [(7, 1e-6, 251), (30, 1e-6, 1072), (7, 1e-8, 366)],
)
def test_the_epsilon_of_many_epochs_agrees_with_published_noise(
    times: int, delta: float, mean: float
) -> None:
    """Of three values or more, so many lies per value on average; their own report is the truth.

    Ours lies now and then, which hides more: up to 2% in these.
    """
    crowd = crowd_of(1_000_000, 16, log(1_000_000 / mean - 15))
    assert 0.97 <= composed_epsilon([(crowd, times)], delta) <= 1.005


@pytest.mark.parametrize("groups", [1, 3])
def test_two_epochs_are_never_below_every_pair_of_outcomes(groups: int) -> None:
    """The others all hold a third value; each outcome of two epochs, with its exact chances.

    Of several groups, those of the person's own, which is known.
    """
    n, d, local, delta = 40 * groups, 3, 2.0, 1e-3
    q = 1 / (exp(local) + d - 1)
    p, m, lie = 1 - (d - 1) * q, n - 1, q / groups
    x, y = np.indices((45, 45))  # so many lies never are on one value: their chance is below 1e-12
    noise = binom.pmf(x + y, m, 2 * lie) * binom.pmf(x, x + y, 0.5)
    on_v, on_w = np.roll(noise, 1, 0), np.roll(noise, 1, 1)
    v = (p * on_v + q * on_w + q * noise).ravel()
    w = (q * on_v + p * on_w + q * noise).ravel()
    v, w = np.outer(v, v).ravel(), np.outer(w, w).ravel()

    def delta_at(epsilon: float) -> float:
        return float(np.maximum(v - exp(epsilon) * w, 0).sum())

    bound = composed_epsilon([(crowd_of(n, d, local, groups=groups), 2)], delta)
    assert delta_at(bound) <= delta
    assert delta_at(0.9 * bound) > delta, "and hardly above it"


def _count_of_two(crowd: ShuffledEpoch, holders: int) -> tuple[list[Fraction], list[Fraction]]:
    """The law of one value's count, whoever holds it, if `held` of the others do; exactly."""
    q = Fraction(crowd.lie)

    def law(people: int, chance: Fraction) -> list[Fraction]:
        return [
            comb(people, k) * chance**k * (1 - chance) ** (people - k) for k in range(people + 1)
        ]

    others = [Fraction(0)] * crowd.reports
    for i, member in enumerate(law(holders, 1 - q)):
        for k, other in enumerate(law(crowd.reports - 1 - holders, q)):
            others[i + k] += member * other
    up, stay = [Fraction(0), *others], [*others, Fraction(0)]
    holds = [(1 - q) * a + q * b for a, b in zip(up, stay, strict=True)]
    does_not = [q * a + (1 - q) * b for a, b in zip(up, stay, strict=True)]
    return holds, does_not


def test_two_epochs_of_two_values_have_a_nearly_exact_account() -> None:
    """Every outcome, in fractions, whatever the others hold in each epoch, in either order."""
    crowd, delta = crowd_of(8, 2, 1.5), 1e-3
    laws = [_count_of_two(crowd, number) for number in range(crowd.reports)]
    pairs = [(first, second[::turn]) for first in laws for second in laws for turn in (1, -1)]

    def delta_at(epsilon: float) -> float:
        grown, most = Fraction(exp(epsilon)), Fraction(0)
        for (v, w), (x, y) in pairs:
            over = [
                max(a * b - grown * c * d, Fraction(0))
                for a, c in zip(v, w, strict=True)
                for b, d in zip(x, y, strict=True)
            ]
            most = max(most, sum(over, Fraction(0)))
        return float(most)

    bound = composed_epsilon([(crowd, 2)], delta)
    assert delta_at(bound) <= delta
    assert delta_at(0.97 * bound) > delta, "and hardly above it"


def test_epochs_add_up_and_different_crowds_go_together() -> None:
    small, large = crowd_of(1000, 16, 3.1), crowd_of(100_000, 16, 7.4)
    epsilon = central_epsilon(small, 1e-8)
    assert composed_epsilon([(small, 1)], 1e-8) == epsilon
    twice = composed_epsilon([(small, 2)], 1e-8)
    assert epsilon < twice < 2 * epsilon * 1.01
    assert composed_epsilon([(small, 2)], 1e-15) < 2 * central_epsilon(small, 1e-15)
    both = composed_epsilon([(small, 1), (large, 1)], 1e-8)
    assert max(epsilon, central_epsilon(large, 1e-8)) < both
    assert composed_epsilon([(crowd_of(1, 16, 0.5), 3)], 1e-8) <= 1.5


@pytest.mark.parametrize(
    ("reports", "categories", "times", "central", "honest"),
    [
        (300, 3, 2, 2.0, 1.0),
        pytest.param(10_000, 2, 7, 0.5, 0.9, marks=pytest.mark.thorough),
        pytest.param(100_000, 4096, 30, 2.0, 0.5, marks=pytest.mark.thorough),
        pytest.param(4320, 256 / 11, 4, 1.0, 1.0, marks=pytest.mark.thorough),
    ],
)
def test_the_largest_local_epsilon_of_many_epochs_is_just_below_what_an_attack_allows(
    reports: int, categories: float, times: int, central: float, honest: float
) -> None:
    """By dp-accounting's PLD of two explicit mass functions, composed, from below.

    The others all hold one value, which is neither where there are three.
    """
    crowd, delta = crowd_of(reports, categories, 16.0, honest=honest), 1e-8
    largest = largest_local_together(crowd, times, central, delta)
    assert composed_epsilon([(replace(crowd, epsilon_local=largest), times)], delta) <= central

    def attacked(local: float) -> float:
        q = 1 / (exp(local) + categories - 1)
        p, others = 1 - (categories - 1) * q, crowd.others
        lies = np.arange(int(others * q + 12 * (others * q) ** 0.5 + 45))
        if categories == 2:
            noise = binom.pmf(lies, others, q)
            with_one, without = np.append(0, noise), np.append(noise, 0)
            laws = p * with_one + q * without, q * with_one + p * without
        else:
            x, y = np.meshgrid(lies, lies, indexing="ij")
            noise = np.pad(binom.pmf(x + y, others, 2 * q) * binom.pmf(x, x + y, 0.5), (0, 1))
            first, second = np.roll(noise, 1, 0), np.roll(noise, 1, 1)
            neither = (1 - p - q) * noise
            laws = p * first + q * second + neither, q * first + p * second + neither
        losses = [
            {
                place: log(chance)
                for place, chance in enumerate(law.ravel().tolist())
                if chance > 1e-300
            }
            for law in laws
        ]
        distribution = privacy_loss_distribution.from_two_probability_mass_functions(
            *losses, pessimistic_estimate=False, value_discretization_interval=central * 1e-4
        )
        return float(distribution.self_compose(times).get_epsilon_for_delta(delta))

    assert attacked(largest) <= central
    assert attacked(largest + 0.03) > central


@pytest.mark.parametrize(
    ("epochs", "delta", "message"),
    [
        ([], 1e-8, "no epoch"),
        ([(crowd_of(9, 3, 1.0), 0)], 1e-8, "times 0"),
        ([(crowd_of(9, 3, 1.0), 2)], 0, "delta 0"),
    ],
)
def test_numbers_out_of_range_are_refused(
    epochs: list[tuple[ShuffledEpoch, int]], delta: float, message: str
) -> None:
    with pytest.raises(BadParameter, match=message):
        composed_epsilon(epochs, delta)
