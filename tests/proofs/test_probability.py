"""Rounding goes to the private side, and the direction is what the name says."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.errors import BadParameter
from hubbub.mechanisms import Probability, build
from hubbub.mechanisms.probability import MAX_EPSILON, MIN_EPSILON, exp_at_most, log_at_least


@pytest.mark.slow
@given(st.fractions(0, 1))
def test_at_most_and_at_least_enclose(probability: Fraction) -> None:
    below, above = Probability.at_most(probability), Probability.at_least(probability)
    assert below.exact <= probability <= above.exact
    assert above.threshold - below.threshold <= 1
    assert below.complement.exact == 1 - below.exact


@pytest.mark.parametrize("wrong", [-0.1, 1.5, float("nan"), float("inf"), "0.5", None])
def test_a_number_outside_0_and_1_is_no_probability(wrong: object) -> None:
    for rounding in (Probability.at_most, Probability.at_least):
        with pytest.raises(BadParameter, match=r"outside \[0, 1\]"):
            rounding(wrong)  # type: ignore[arg-type]
    with pytest.raises(BadParameter):
        Probability(2**64 + 1)


@given(st.floats(MIN_EPSILON, MAX_EPSILON))
def test_exp_is_below_and_log_above_the_truth(epsilon: float) -> None:
    with localcontext() as context:
        context.prec = 60
        odds = exp_at_most(epsilon)
        assert Decimal(odds.numerator) / Decimal(odds.denominator) < Decimal(epsilon).exp()
        truth = (Decimal(odds.numerator) / Decimal(odds.denominator)).ln()
        assert truth <= Decimal(log_at_least(odds)) <= Decimal(epsilon)


@given(st.floats(MIN_EPSILON, MAX_EPSILON), st.integers(2, 5000))
def test_no_loss_exceeds_its_epsilon(epsilon: float, categories: int) -> None:
    for name in ("grr", "unary.sue", "unary.oue"):
        mechanism = build(name, epsilon=epsilon, categories=categories)
        assert 0.999 * epsilon <= mechanism.privacy_loss() <= epsilon


def test_known_losses_of_rappor() -> None:
    """Erlingsson et al. (2014): theorem 1 and 2 at two published settings."""
    member = build("rappor", bits=32, hashes=1, cohorts=64, f=0.5, p=0.25, q=0.75)
    two = build("rappor", bits=32, hashes=2, cohorts=64, f=0.5, p=0.5, q=0.75)
    for mechanism, permanent, report in ((member, 2.197, 1.022), (two, 4.394, 1.074)):
        assert math.isclose(mechanism.permanent_loss(), permanent, abs_tol=5e-4)  # type: ignore[attr-defined]
        assert math.isclose(mechanism.privacy_loss(), report, abs_tol=5e-4)
