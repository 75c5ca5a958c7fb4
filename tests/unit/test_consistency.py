"""Post-processing: histograms nearest to estimates, and what is lost."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hubbub.analysis.estimators.consistency import norm_sub, simplex
from hubbub.errors import BadParameter

numbers = st.floats(-1e6, 1e6)
lists = st.integers(1, 30).flatmap(
    lambda size: st.tuples(
        arrays(np.float64, size, elements=numbers),
        arrays(np.float64, size, elements=st.floats(0.1, 1e4)),
    )
)


@pytest.mark.slow
@given(lists, st.floats(0, 1e6))
def test_a_histogram_is_the_nearest_one(
    pair: tuple[np.ndarray[tuple[int], np.dtype[np.float64]], ...], reports: float
) -> None:
    """The conditions that hold at the optimum alone: the same pull on all that stay, and no more
    on those at zero."""
    estimates, variances = pair
    answer = simplex(estimates, variances, reports)
    assert (answer >= 0).all()
    size = 1 + np.abs(estimates).max() + reports
    np.testing.assert_allclose(answer.sum(), reports, atol=1e-7 * size)
    pulls = (estimates - answer) / variances
    mask = answer > 1e-9 * size
    if mask.any():
        np.testing.assert_allclose(pulls[mask], pulls[mask][0], atol=1e-6 * size)
        assert (pulls[~mask] <= pulls[mask][0] + 1e-6 * size).all()


def test_norm_sub_is_the_sorted_form_and_not_the_usual_loop() -> None:
    """Clip-and-spread differs when the positives add up to less than all: here a slightly negative
    value is lifted above zero."""
    np.testing.assert_allclose(norm_sub(np.array([70.0, 50.0, -10.0]), 100), [60, 40, 0])
    np.testing.assert_allclose(norm_sub(np.array([30.0, 20.0, -1.0]), 100), [47, 37, 16])
    np.testing.assert_allclose(norm_sub(np.array([5.0]), 9), [9])
    np.testing.assert_allclose(norm_sub(np.array([5.0, 3.0]), 0), [0, 0])


def test_unsure_estimates_give_way_first() -> None:
    answer = simplex(np.array([60.0, 60.0]), np.array([1.0, 3.0]), 100)
    np.testing.assert_allclose(answer, [55, 45])


def test_the_whole_histogram_gains_and_single_values_pay() -> None:
    """The documented bias: rare values too high. 200 runs; deviations of a mean are .07 sigma."""
    chance = np.random.default_rng(5)
    truth = np.round(10_000 / np.arange(1, 101) ** 1.5)
    reports, sigma = truth.sum(), 150.0
    raw = truth + chance.normal(0, sigma, size=(200, 100))
    better = np.array([norm_sub(row, reports) for row in raw])
    assert ((better - truth) ** 2).mean() < 0.7 * ((raw - truth) ** 2).mean()
    assert (better[:, 50:] - truth[50:]).mean() > 10
    assert abs((raw[:, 50:] - truth[50:]).mean()) < 5.2 * sigma / np.sqrt(200 * 50)


@pytest.mark.parametrize(
    ("estimates", "variances", "reports"),
    [
        ([], [], 1),
        ([1.0], [1.0, 2.0], 1),
        ([np.nan], [1.0], 1),
        ([1.0], [0.0], 1),
        ([1.0], [1.0], -1),
    ],
)
def test_estimates_that_no_histogram_fits_are_refused(
    estimates: list[float], variances: list[float], reports: float
) -> None:
    with pytest.raises(BadParameter):
        simplex(np.array(estimates), np.array(variances), reports)
