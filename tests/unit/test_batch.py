"""The mixing rule, on its own."""

import random
from collections import Counter
from math import exp

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.errors import BadParameter
from hubbub.shuffler.mixing_policy import MixRule, Policy, shuffled

mixes = st.builds(
    lambda low, reserve, more: MixRule(low, reserve, low + more),
    st.integers(1, 300),
    st.integers(0, 500),
    st.integers(0, 1000),
)


@given(mixes, st.integers(0, 10_000), st.booleans())
def test_no_batch_is_smaller_than_the_minimum_and_no_reserve_is_touched(
    mix: MixRule, pooled: int, over: bool
) -> None:
    take = mix.next_take(pooled, over=over)
    if take is None:
        assert pooled < mix.min_batch + (0 if over else mix.reserve)
        return
    assert mix.min_batch <= take.number <= pooled
    assert pooled - take.number >= (0 if over else mix.reserve)
    assert take.needs <= pooled


@given(mixes, st.integers(0, 10_000))
def test_a_window_that_is_over_goes_out_whole(mix: MixRule, pooled: int) -> None:
    """What holds the minimum leaves nothing behind: no remainder is too small to send."""
    pool_before = pooled
    while take := mix.next_take(pooled, over=True):
        pooled -= take.number
    assert pooled == (pool_before if pool_before < mix.min_batch else 0)


@pytest.mark.slow
@given(
    st.integers(1, 300),
    st.lists(st.integers(1, 700), min_size=1, max_size=40),
)
def test_with_a_reserve_of_one_minimum_nothing_is_withheld(low: int, arrivals: list[int]) -> None:
    mix = MixRule(low, reserve=low, max_batch=5 * low)
    pooled = 0
    for arrived in arrivals:
        pooled += arrived
        while take := mix.next_take(pooled, over=False):
            pooled -= take.number
    while take := mix.next_take(pooled, over=True):
        pooled -= take.number
    assert pooled == (sum(arrivals) if sum(arrivals) < low else 0)


def test_the_order_is_fresh_and_nothing_is_lost() -> None:
    reports = [bytes([i]) for i in range(200)]
    orders = {tuple(shuffled(reports)) for _ in range(5)}
    assert len(orders) == 5
    assert all(sorted(order) == reports for order in orders)


def test_an_impossible_rule_is_refused() -> None:
    with pytest.raises(BadParameter, match="max_batch 5 is below min_batch 10"):
        MixRule(10, 0, 5)
    with pytest.raises(BadParameter, match="reserve -1 is below 0"):
        MixRule(10, -1, 50)


def test_a_random_reserve_is_drawn_anew_when_a_batch_has_left() -> None:
    policy = Policy(reserve=1, spread=2, max_batch=500)
    reserves = []
    for _ in range(200):
        mix = policy.rule_for("pool", 100, 10_000)
        assert policy.rule_for("pool", 100, 10_000) == mix, "kept until a batch leaves"
        policy.on_batch_sent("pool")
        reserves.append(mix.reserve)
    assert min(reserves) >= 100
    assert max(reserves) <= 300
    assert len(set(reserves)) > 50
    assert policy.rule_for("pool", 1000, 10).max_batch == 1000, "never below the minimum"
    assert policy.rule_for("other", 10, 50).max_batch == 50, "what fits in a message"


@pytest.mark.parametrize("delay", [0.0, 30.0])
def test_a_delay_hides_which_report_filled_a_pool(delay: float) -> None:
    """Whoever sees a batch leave guesses that the last of 6,000 reports, one a second, was its.

    Of six streams 1,000 guesses are right by chance, 29 more or fewer on average: 150 once in 4
    million runs. Without a delay every batch shows the stream of one report: some 450 are right.
    """
    policy, coins = Policy(delay_seconds=delay), random.Random(1)
    pools, right = Counter[int](), 0
    for _second in range(6000):
        stream = coins.randrange(6)
        pools[stream] += 1
        guess = coins.randrange(6)
        for pool in range(6):
            rule = policy.rule_for(pool, 10, 1000)
            take = rule.next_take(pools[pool], over=False)
            if take and policy.should_send(1.0):
                policy.on_batch_sent(pool)
                pools[pool] -= take.number
                guess = pool
        right += guess == stream
    assert (abs(right - 1000) <= 150) is (delay > 0)


def test_a_delay_holds_a_batch_back_for_its_time_on_average() -> None:
    """Mean of 4,000 exponential delays of 2 s, looked at every .1 s: off by > 6 sd with 2e-9."""
    policy, looks = Policy(delay_seconds=2.0), 0
    for _ in range(4000):
        looks += 1
        while not policy.should_send(0.1):
            looks += 1
    mean = 0.1 * looks / 4000
    assert abs(mean - 0.1 / (1 - exp(-0.05))) < 6 * 2.0 / 4000**0.5
    assert Policy().should_send(0.1), "without a delay at once"
