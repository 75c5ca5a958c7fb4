"""Composition: the worked examples of the literature, and bounds that keep their order."""

from itertools import product
from math import comb, exp, log, sqrt

import pytest

from hubbub.errors import BadParameter
from hubbub.privacy.amplification import sampled
from hubbub.privacy.composition import Event, compose


@pytest.mark.parametrize(
    ("epsilon", "times", "basic", "leading", "advanced"),
    [
        (0.1, 100, 10.0, 4.80, 5.85),
        (0.1, 1000, 100.0, 15.17, 25.7),
        (0.01, 10_000, 100.0, 4.80, 5.80),
    ],
)
def test_the_textbooks_examples(
    epsilon: float, times: int, basic: float, leading: float, advanced: float
) -> None:
    """Dwork and Roth (2014), section 3.5; both terms: Abadi et al. (2016), section 2."""
    composition = compose([Event(epsilon=epsilon, times=times)], 1e-5)
    assert composition.basic == pytest.approx(basic)
    assert composition.advanced_leading == pytest.approx(leading, abs=0.005)
    assert composition.advanced == pytest.approx(advanced, abs=0.05)
    assert composition.rdp is not None
    assert composition.pld < composition.rdp < advanced


@pytest.mark.parametrize(
    ("times", "moments", "tight"), [(10_000, 1.035, 0.947), (40_000, 2.210, 2.033)]
)
def test_the_subsampled_gaussian(times: int, moments: float, tight: float) -> None:
    """Abadi et al. (2016): 1.26 and 2.55 by their accountant; tighter ones were found since."""
    composition = compose([Event(sigma=4.0, sampling=0.01, times=times)], 1e-5)
    assert (composition.basic, composition.advanced) == (None, None)
    assert composition.rdp == pytest.approx(moments, abs=0.001)
    assert composition.pld == pytest.approx(tight, abs=0.001)
    assert composition.best == composition.pld


def test_sampling_is_the_published_amplification() -> None:
    assert sampled(1.0, 0.1) == pytest.approx(log(1 + 0.1 * (exp(1) - 1)))
    assert sampled(1.0, 1.0) == pytest.approx(1.0)
    composition = compose([Event(epsilon=1.0, sampling=0.1, times=10)], 1e-6)
    assert composition.basic == pytest.approx(10 * sampled(1.0, 0.1))


@pytest.mark.parametrize(
    ("epsilon", "times", "delta"),
    [(1.0, 5, 1e-3), (0.5, 20, 1e-5), (0.1, 8, 0.01), (1.0, 365, 1e-12)],
)
def test_composition_of_equal_epsilons_is_the_published_optimum(
    epsilon: float, times: int, delta: float
) -> None:
    """Kairouz, Oh, Viswanath (2015): randomized response, `times` over, worked out in full."""
    e = exp(epsilon)

    def delta_of(central: float) -> float:
        return sum(
            comb(times, k) * max(e**k - exp(central) * e ** (times - k), 0) / (1 + e) ** times
            for k in range(times + 1)
        )

    composition = compose([Event(epsilon=epsilon, times=times)], delta)
    assert delta_of(composition.pld * (1 + 1e-9)) <= delta * (1 + 1e-6)
    assert delta_of(composition.pld * (1 - 1e-3)) > delta
    assert composition.basic is not None
    assert composition.pld <= composition.basic


def test_different_events_are_composed_in_any_order() -> None:
    history = [Event(epsilon=1.0, times=12), Event(sigma=20.0, times=3), Event(epsilon=0.05)]
    for delta, order in product((1e-5, 1e-9), (history, history[::-1])):
        composition = compose(order, delta)
        assert composition.basic is None
        assert composition.rdp is not None
        alone = compose(history[:1], delta).pld
        assert alone < composition.best <= 12.1 + compose(history[1:2], delta / 2).best


def test_a_history_of_amplified_releases_adds_up_epsilons_and_deltas() -> None:
    composition = compose([Event(epsilon=0.05, delta=1e-8, times=30)], 1e-6)
    assert composition.basic == pytest.approx(1.5)
    assert composition.rdp is None
    assert composition.advanced_leading == pytest.approx(
        sqrt(2 * 30 * log(1 / (1e-6 - 3e-7))) * 0.05
    )
    assert composition.pld < 1.5
    gone = compose([Event(epsilon=0.05, delta=1e-6, times=3)], 1e-6)
    assert (gone.basic, gone.advanced) == (None, None)


def test_impossible_numbers_are_refused() -> None:
    for wrong, message in (
        ({}, "either an epsilon or a sigma"),
        ({"epsilon": 1.0, "sigma": 1.0}, "and not both"),
        ({"epsilon": 0.0}, r"epsilon 0.0 is outside \(0, 100\]"),
        ({"sigma": -1.0}, "sigma -1.0 is not above 0"),
        ({"epsilon": 1.0, "delta": 1.0}, r"delta 1.0 is outside \[0, 1\)"),
        ({"epsilon": 1.0, "sampling": 0.0}, r"sampling 0.0 is outside \(0, 1\]"),
        ({"epsilon": 1.0, "times": 0}, "times 0 is outside"),
    ):
        with pytest.raises(BadParameter, match=message):
            Event(**wrong)  # type: ignore[arg-type]
    with pytest.raises(BadParameter, match="nothing to compose"):
        compose([], 1e-5)
    with pytest.raises(BadParameter, match=r"delta 0 is outside \(0, 1\)"):
        compose([Event(epsilon=1.0)], 0)
