"""The mixing rule, on its own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.errors import BadParameter
from hubbub.shuffler.batch import Mix, shuffled

mixes = st.builds(
    lambda low, reserve, more: Mix(low, reserve, low + more),
    st.integers(1, 300),
    st.integers(0, 500),
    st.integers(0, 1000),
)


@given(mixes, st.integers(0, 10_000), st.booleans())
def test_no_batch_is_smaller_than_the_minimum_and_no_reserve_is_touched(
    mix: Mix, pooled: int, over: bool
) -> None:
    take = mix.next_take(pooled, over=over)
    if take is None:
        assert pooled < mix.min_batch + (0 if over else mix.reserve)
        return
    assert mix.min_batch <= take.number <= pooled
    assert pooled - take.number >= (0 if over else mix.reserve)
    assert take.needs <= pooled


@given(mixes, st.integers(0, 10_000))
def test_a_window_that_is_over_goes_out_whole(mix: Mix, pooled: int) -> None:
    """What holds the minimum leaves nothing behind: no remainder is too small to send."""
    held = pooled
    while take := mix.next_take(pooled, over=True):
        pooled -= take.number
    assert pooled == (held if held < mix.min_batch else 0)


@given(
    st.integers(1, 300),
    st.lists(st.integers(1, 700), min_size=1, max_size=40),
)
def test_with_a_reserve_of_one_minimum_nothing_is_withheld(low: int, arrivals: list[int]) -> None:
    mix = Mix(low, reserve=low, max_batch=5 * low)
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
        Mix(10, 0, 5)
    with pytest.raises(BadParameter, match="reserve -1 is below 0"):
        Mix(10, -1, 50)
