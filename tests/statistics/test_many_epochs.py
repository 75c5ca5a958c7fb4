"""What several epochs say together: never below the truth, near it, and what the card tells."""

from math import exp, log

import numpy as np
import pytest

from hubbub.errors import BadParameter
from hubbub.privacy.histogram import Crowd, central_epsilon
from hubbub.privacy.many_epochs import composed_epsilon


@pytest.mark.parametrize(
    ("times", "delta", "mean"),
    [(7, 1e-6, 251), (30, 1e-6, 1072), (7, 1e-8, 366)],
)
def test_a_central_epsilon_of_one_for_all_epochs_takes_the_noise_that_others_found(
    times: int, delta: float, mean: float
) -> None:
    """Of three values or more, so many lies per value on average; their own report is the truth.

    Ours lies now and then, which hides more: up to 2% in these.
    """
    crowd = Crowd(1_000_000, 16, log(1_000_000 / mean - 15))
    assert 0.97 <= composed_epsilon([(crowd, times)], delta) <= 1.005


def test_two_epochs_are_never_below_every_pair_of_outcomes() -> None:
    """The others all hold a third value; each outcome of two epochs, with its exact chances."""
    n, d, local, delta = 40, 3, 2.0, 1e-3
    q = 1 / (exp(local) + d - 1)
    p, m = 1 - (d - 1) * q, n - 1
    noise = np.zeros((m + 2, m + 2))
    noise[0, 0] = 1.0
    for _ in range(m):
        kept = (1 - 2 * q) * noise
        kept[1:] += q * noise[:-1]
        kept[:, 1:] += q * noise[:, :-1]
        noise = kept
    own, other = np.zeros_like(noise), np.zeros_like(noise)
    own[1:], other[:, 1:] = noise[:-1], noise[:, :-1]
    v = (p * own + q * other + q * noise).ravel()
    w = (q * own + p * other + q * noise).ravel()
    v, w = np.outer(v, v).ravel(), np.outer(w, w).ravel()

    def delta_at(epsilon: float) -> float:
        return float(np.maximum(v - exp(epsilon) * w, 0).sum())

    told = composed_epsilon([(Crowd(n, d, local), 2)], delta)
    assert delta_at(told) <= delta
    assert delta_at(0.9 * told) > delta, "and hardly above it"


def test_epochs_add_up_and_different_crowds_go_together() -> None:
    small, large = Crowd(1000, 16, 3.1), Crowd(100_000, 16, 7.4)
    one = central_epsilon(small, 1e-8)
    assert composed_epsilon([(small, 1)], 1e-8) == one
    twice = composed_epsilon([(small, 2)], 1e-8)
    assert one < twice < 2 * one * 1.01
    both = composed_epsilon([(small, 1), (large, 1)], 1e-8)
    assert max(one, central_epsilon(large, 1e-8)) < both
    alone = Crowd(1, 16, 0.5)
    assert composed_epsilon([(alone, 3)], 1e-8) <= 1.5


@pytest.mark.parametrize(
    ("epochs", "delta", "said"),
    [
        ([], 1e-8, "no epoch"),
        ([(Crowd(9, 3, 1.0), 0)], 1e-8, "times 0"),
        ([(Crowd(9, 3, 1.0), 2)], 0, "delta 0"),
    ],
)
def test_numbers_out_of_range_are_refused(
    epochs: list[tuple[Crowd, int]], delta: float, said: str
) -> None:
    with pytest.raises(BadParameter, match=said):
        composed_epsilon(epochs, delta)
