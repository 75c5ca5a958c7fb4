"""The mixing rule, on its own."""

import random
from collections import Counter
from math import exp

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.shuffler.mixing_policy import Policy, Take, shuffled

RESERVES = st.integers(0, 500)
MINIMA = st.integers(1, 300)


def _policy(low: int, reserve: int, more: int) -> Policy:
    """Of pools with this minimum, of which so many stay, and batches of `more` than it at most."""
    return Policy(reserve=reserve / low, max_batch=low + more)


def _take(policy: Policy, pooled: int, low: int, *, over: bool) -> Take | None:
    return policy.next_take("pool", pooled, low, 10**6, is_over=over)


@given(MINIMA, RESERVES, st.integers(0, 1000), st.integers(0, 10_000), st.booleans())
def test_no_batch_is_smaller_than_the_minimum_and_no_reserve_is_touched(
    low: int, reserve: int, more: int, pooled: int, over: bool
) -> None:
    take = _take(_policy(low, reserve, more), pooled, low, over=over)
    if take is None:
        assert pooled < low + (0 if over else reserve)
        return
    assert low <= take.number <= pooled
    assert pooled - take.number >= (0 if over else reserve)
    assert take.needs <= pooled


@given(MINIMA, RESERVES, st.integers(0, 1000), st.integers(0, 10_000))
def test_a_closed_window_leaves_whole(low: int, reserve: int, more: int, pooled: int) -> None:
    """What holds the minimum leaves nothing behind: no remainder is too small to send."""
    policy, pool_before = _policy(low, reserve, more), pooled
    while take := _take(policy, pooled, low, over=True):
        pooled -= take.number
    assert pooled == (pool_before if pool_before < low else 0)


@pytest.mark.slow
@given(
    st.integers(1, 300),
    st.lists(st.integers(1, 700), min_size=1, max_size=40),
)
def test_with_a_reserve_of_one_minimum_no_report_is_withheld(low: int, arrivals: list[int]) -> None:
    policy, pooled = _policy(low, low, 4 * low), 0
    for arrived in arrivals:
        pooled += arrived
        while take := _take(policy, pooled, low, over=False):
            pooled -= take.number
    while take := _take(policy, pooled, low, over=True):
        pooled -= take.number
    assert pooled == (sum(arrivals) if sum(arrivals) < low else 0)


def test_the_order_is_fresh_and_nothing_is_lost() -> None:
    reports = [bytes([i]) for i in range(200)]
    orders = {tuple(shuffled(reports)) for _ in range(5)}
    assert len(orders) == 5
    assert all(sorted(order) == reports for order in orders)


def test_a_random_reserve_is_drawn_again_after_each_batch() -> None:
    policy = Policy(reserve=1, spread=2, max_batch=500)
    reserves = []
    for _ in range(200):
        take = _take(policy, 10_000, 100, over=False)
        assert take is not None
        assert _take(policy, 10_000, 100, over=False) == take, "kept until a batch leaves"
        policy.on_batch_sent("pool")
        reserves.append(take.needs - take.number)
    assert min(reserves) >= 100
    assert max(reserves) <= 300
    assert len(set(reserves)) > 50
    large = policy.next_take("pool", 10_000, 1000, 10, is_over=True)
    assert large == Take(1000, 1000, at_once=True), "never below the minimum"
    small = policy.next_take("other", 10_000, 10, 50, is_over=True)
    assert small == Take(50, 50, at_once=True), "what fits in a message"


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
            take = policy.next_take(pool, pools[pool], 10, 1000, is_over=False)
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
