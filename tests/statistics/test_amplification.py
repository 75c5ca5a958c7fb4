"""Shuffle amplification: beside an independent computation, and beside whole shuffles."""

from collections import Counter
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement
from math import exp, expm1, inf, log1p, sqrt

import numpy as np
import pytest
from scipy.special import bdtrc, xlogy
from scipy.special import gammaln as log_gamma
from scipy.stats import binom

from hubbub.errors import BadParameter
from hubbub.mechanisms import AnyMechanism, build
from hubbub.mechanisms.rappor import Rappor
from hubbub.privacy.amplification import _Crowd, amplified, closed_form
from hubbub.privacy.crowd_guarantees import amplified_of
from hubbub.privacy.proofs.enumeration import distribution

GRID = [
    (epsilon, reports, delta)
    for epsilon in (0.5, 1.0, 2.0, 4.0, 6.0)
    for reports in (10**3, 10**4, 10**5, 10**6, 10**7)
    for delta in (1e-6, 1e-8)
]


class Independent:
    """The same bound worked out otherwise: given how many of the others are coins, one by one."""

    def __init__(self, epsilon: float, reports: int) -> None:
        fair, others = 2 / (exp(epsilon) + 1), reports - 1
        reach = 14 * sqrt(others * fair * (1 - fair)) + 30
        first = max(0, int(others * fair - reach))
        self.coins = np.arange(first, min(others, int(others * fair + reach)) + 1)
        logs = (
            log_gamma(others + 1) - log_gamma(self.coins + 1) - log_gamma(others - self.coins + 1)
        )
        self.chance = np.exp(logs + xlogy(self.coins, fair) + xlogy(others - self.coins, 1 - fair))
        self.chance /= self.chance.sum()
        self.odds = exp(epsilon)

    def delta(self, central: float) -> float:
        t, p, c = exp(central), self.odds, self.coins
        # Heads a = A + D of c + 1: P(a) : Q(a) = (a p + c + 1 - a) : (a + (c + 1 - a) p).
        least = np.floor((c + 1) * (t * p - 1) / ((p - 1) * (1 + t))) + 1

        def excess(heads: np.ndarray) -> np.ndarray:
            """The chance of so many of c fair coins at least."""
            answer = np.where(heads <= 0, 1.0, bdtrc(np.maximum(heads, 1) - 1, c, 0.5))
            return np.where(heads > c, 0.0, answer)

        up, same = excess(least - 1), excess(least)
        heads = (p * up + same) / (p + 1)
        tails = (up + p * same) / (p + 1)
        return float((self.chance * np.maximum(heads - t * tails, 0)).sum())


@cache
def _independent(epsilon: float, reports: int) -> Independent:
    return Independent(epsilon, reports)


@pytest.mark.parametrize(("epsilon", "reports", "delta"), GRID)
def test_amplified_epsilon_is_at_most_1_percent_above_an_independent_computation(
    epsilon: float, reports: int, delta: float
) -> None:
    exact = _independent(epsilon, reports)
    amplified_loss = amplified(epsilon, reports, delta)
    # The exact delta falls with epsilon: where it is `delta` lies the exact epsilon.
    assert exact.delta(amplified_loss.epsilon) <= delta < exact.delta(amplified_loss.epsilon / 1.01)
    assert amplified_loss.epsilon <= min(epsilon, amplified_loss.closed_form)
    assert amplified_loss.closed_form == closed_form(epsilon, reports, delta)


def test_the_closed_form_is_the_published_one_where_it_holds() -> None:
    """Worked out by hand for epsilon 1, 100,000 reports, delta 1e-6."""
    e = exp(1.0)
    published = log1p((e - 1) * (4 * sqrt(2 * np.log(4e6)) / sqrt((e + 1) * 1e5) + 4 / 1e5))
    assert closed_form(1.0, 10**5, 1e-6) == pytest.approx(published)
    assert closed_form(8.0, 1000, 1e-6) == inf


def _shuffled(
    mechanism: AnyMechanism, values: tuple[int, ...]
) -> dict[tuple[bytes, ...], Fraction]:
    """The exact chance of every multiset of payloads that these values can send."""
    whole: dict[tuple[bytes, ...], Fraction] = {(): Fraction(1)}
    for value in values:
        row = distribution(lambda coins, v=value: mechanism.randomize(v, coins))  # type: ignore[misc]
        more: Counter[tuple[bytes, ...]] = Counter()
        for outcome, chance in whole.items():
            for payload, probability in row.items():
                more[tuple(sorted((*outcome, payload)))] += chance * probability  # type: ignore[assignment]
        whole = dict(more)  # type: ignore[arg-type]
    return whole


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "parameters", "reports"),
    [
        ("rr", {"epsilon": 1.0}, 7),
        ("rr", {"epsilon": 3.0}, 7),
        ("grr", {"epsilon": 1.0, "categories": 3}, 5),
        ("grr", {"epsilon": 2.0, "categories": 4}, 4),
        ("unary.oue", {"epsilon": 1.0, "categories": 3}, 4),
        ("subset", {"epsilon": 0.5, "categories": 4}, 4),
        ("hadamard", {"epsilon": 1.5, "categories": 3}, 5),
        ("rappor.basic", {"categories": 2, "f": 0.5, "p": 0.25, "q": 0.75}, 4),
    ],
)
def test_no_shuffle_of_real_reports_reveals_more_than_proven(
    name: str, parameters: dict[str, float], reports: int
) -> None:
    """Every crowd there can be, every neighbour, both directions: all of it, by enumeration."""
    mechanism = build(name, **parameters)
    values = list(mechanism.probes())
    loss, variation = mechanism.privacy_loss(), float(mechanism.total_variation())
    worst = dict.fromkeys((0.0, 0.1, 0.3, 0.6), 0.0)
    for crowd in combinations_with_replacement(values, reports - 1):
        rows = [_shuffled(mechanism, (*crowd, value)) for value in values]
        for row in rows:
            for other in rows:
                for central in worst:
                    t = Fraction(exp(central))
                    apart = sum(
                        max(row[outcome] - t * other[outcome], Fraction()) for outcome in row
                    )
                    worst[central] = max(worst[central], float(apart))
    assert worst[0.0] > 0
    for central, delta in worst.items():
        assert delta <= _delta_at(central, loss, reports, variation)
        assert (
            _delta_at(central, loss, reports, variation)
            <= _delta_at(central, loss, reports) * 1.001
        )


@pytest.mark.parametrize("reports", [100, 1000])
def test_an_attacker_who_knows_the_cohort_learns_no_more_than_proven(reports: int) -> None:
    """The cohort travels in the clear and is for life: only reports that show the same one hide.

    Everybody else holds the same string. Of two bits, one of each string, what is seen in the
    cohort is how many reports have the one, the other, or both or none of them; summed over how
    many reports it has.
    """
    mechanism = build("rappor", bits=2, hashes=1, cohorts=64, f=0.5, p=0.25, q=0.75)
    assert isinstance(mechanism, Rappor)
    truth, lie = (
        float(chance) for chance in (mechanism.chain.channel.p, mechanism.chain.channel.q)
    )
    chances = np.array([truth * (1 - lie), lie * (1 - truth), 0.0])
    chances[2] = 1 - chances.sum()
    odds = np.array([chances[1] / chances[0], chances[0] / chances[1], 1.0])

    def delta(central: float) -> float:
        t, total = exp(central), 0.0
        mates = np.arange(reports)
        sizes = binom.pmf(mates, reports - 1, 1 / mechanism.groups)
        for others, weight in zip(mates[sizes > 1e-16], sizes[sizes > 1e-16], strict=True):
            pairs = [(i, j) for i in range(others + 2) for j in range(others + 2 - i)]
            counts = np.array([(i, j, others + 1 - i - j) for i, j in pairs])
            likely = np.exp(
                log_gamma(others + 2) - log_gamma(counts + 1).sum(1) + counts @ np.log(chances)
            )
            ratio = counts @ odds / (others + 1)
            ways = (np.maximum(1 - t * ratio, 0), np.maximum(ratio - t, 0))
            total += weight * max(float(likely @ way) for way in ways)
        return total

    claimed = amplified_of(mechanism, reports, 1e-8)
    assert claimed.reports == reports
    assert delta(claimed.epsilon) <= 1e-8
    # What the whole batch would hide, does not.
    whole = amplified(mechanism.privacy_loss(), reports, 1e-8)
    assert delta(whole.epsilon) > 1e-4
    assert amplified_of(mechanism, 100_000, 1e-8).epsilon < 0.5 * mechanism.privacy_loss()


def test_buckets_asked_for_life_identify_a_device() -> None:
    """`buckets`: which are asked is permanent, and shown."""
    few = build("buckets", epsilon=1.0, low=0, high=1, buckets=4, sampled=2)
    many = build("buckets", epsilon=1.0, low=0, high=1, buckets=32, sampled=8)
    assert amplified_of(few, 100_000).epsilon < 0.3 * few.privacy_loss()
    assert amplified_of(many, 100_000).epsilon == many.privacy_loss()


def _delta_at(central: float, epsilon: float, reports: int, variation: float = 1.0) -> float:
    """The delta that is proven for a central epsilon: the smaller of both crowds'."""
    most = expm1(epsilon) / (exp(epsilon) + 1)
    crowds = (_Crowd.of(epsilon, reports, v, 1e-15) for v in {most, min(variation, most)})
    return min(1.0, *(crowd.delta(central) for crowd in crowds))


def test_the_tightest_case_is_reached_by_the_oldest_mechanism() -> None:
    """Of randomized response with everybody else on one side the bound is nearly what happens."""
    mechanism = build("rr", epsilon=1.0)
    first, second = (_shuffled(mechanism, (0, 0, 0, value)) for value in (0, 1))
    apart = float(sum(max(first[outcome] - second[outcome], Fraction()) for outcome in first))
    assert apart <= _delta_at(0.0, 1.0, 4) <= 1.35 * apart


def test_total_variation_makes_it_tighter_and_never_looser() -> None:
    """Of 64 values named at random a lie hides more than epsilon alone says."""
    for reports in (1000, 100_000):
        alone = amplified(2.0, reports, 1e-6)
        named = amplified_of(build("grr", epsilon=2.0, categories=64), reports, 1e-6)
        small = amplified_of(build("rr", epsilon=2.0), reports, 1e-6)
        assert named.epsilon < 0.9 * alone.epsilon
        assert small.epsilon == pytest.approx(alone.epsilon, rel=2e-4)


def test_more_reports_and_larger_deltas_give_smaller_epsilons() -> None:
    epsilons = [amplified(1.0, n, 1e-8).epsilon for n in (1, 2, 10, 100, 1000, 10**5, 10**8, 10**9)]
    assert epsilons == sorted(epsilons, reverse=True)
    assert epsilons[0] == 1.0
    assert amplified(1.0, 1000, 1e-4).epsilon < epsilons[4]
    lone = amplified(1.0, 1, 1e-8)
    assert (lone.method, lone.closed_form) == ("none", inf)


def test_a_wrong_number_is_named_with_its_range() -> None:
    for wrong, message in (
        ((0.0, 10, 1e-6), r"epsilon 0.0 is outside \(0, 16.0\]"),
        ((float("nan"), 10, 1e-6), "epsilon nan is outside"),
        ((1.0, 0, 1e-6), r"reports 0 is outside \[1, 1000000000\]"),
        ((1.0, 10, 0.0), "delta 0.0 is outside"),
        ((1.0, 10, 1e-6, 1.5), r"total variation 1.5 is outside \(0, 1\]"),
    ):
        with pytest.raises(BadParameter, match=message):
            amplified(*wrong)
