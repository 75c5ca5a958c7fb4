"""Binomial laws beside scipy.stats, which the services do without."""

import numpy as np
import pytest
from scipy.stats import binom

from hubbub.analysis.binomials import binomial_quantile, binomial_tail, laws, likely, pmf

CHANCES = [1e-9, 1e-3, 0.3, 0.5, 0.77, 0.999]


@pytest.mark.parametrize("trials", [1, 2, 15, 16, 17, 40, 1000, 10**5, 10**7, 10**9])
def test_chances_are_those_of_scipy(trials: int) -> None:
    generator = np.random.default_rng(41)
    for chance in CHANCES:
        mean = trials * chance
        reach = 8 * max(1.0, (mean * (1 - chance)) ** 0.5) + 3
        near = generator.uniform(mean - reach, mean + reach, 300).round()
        numbers = np.clip(np.concatenate([near, [0, 1, trials - 1, trials]]), 0, trials)
        theirs = binom.pmf(numbers, trials, chance)
        mask = theirs > 1e-290
        np.testing.assert_allclose(pmf(numbers, trials, chance)[mask], theirs[mask], rtol=1e-10)
        beyond = binom.sf(numbers, trials, chance)
        mask = beyond > 1e-290
        np.testing.assert_allclose(
            binomial_tail(numbers, trials, chance)[mask], beyond[mask], rtol=1e-12
        )
        for share in (1e-9, 0.1, 0.5, 0.99):
            assert binomial_quantile(share, trials, chance) == binom.ppf(share, trials, chance)


def test_outside_there_is_no_chance_and_of_sure_ones_no_doubt() -> None:
    assert pmf(np.array([-1, 0, 4, 5]), 4, 0.5).tolist() == [0, 1 / 16, 1 / 16, 0]
    assert binomial_tail(np.array([-2, -1, 3, 4, 5]), 4, 0.5).tolist() == [1, 1, 1 / 16, 0, 0]
    assert pmf(np.arange(3), 2, 0.0).tolist() == [1, 0, 0]
    assert pmf(np.arange(3), 2, 1.0).tolist() == [0, 0, 1]
    assert pmf(0, 0, 0.3) == 1


def test_binomial_laws_of_several_trial_numbers_are_computed_separately() -> None:
    trials = [0, 3, 1000, 0, 50_000] * 30  # more than are worked with at once
    distributions = laws(trials, 0.2, 1e-9)
    for number, law in zip(trials, distributions, strict=True):
        np.testing.assert_allclose(law, binom.pmf(likely(number, 0.2, 1e-9), number, 0.2))
        assert law.sum() == pytest.approx(1, abs=1e-8)
