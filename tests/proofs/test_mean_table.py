"""The table of mean.table: near the least variance that a linear program finds."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import block_diag, csr_array, eye_array, hstack, kron, vstack

from hubbub.mechanisms import Totals, build
from hubbub.mechanisms.mean_lookup_table import TableMean
from hubbub.mechanisms.number_range import PLACES


def _table(epsilon: float) -> TableMean:
    mechanism = build("mean.table", epsilon=epsilon, low=-1, high=1)
    assert isinstance(mechanism, TableMean)
    return mechanism


def _worst(epsilon: float) -> float:
    """Of one report of a number in [-1, 1], as an answer states it."""
    mechanism = _table(epsilon)
    [variance] = mechanism.estimate(Totals(cells=[1] * mechanism.layout.size, reports=1)).variances
    return 4 * variance  # a range of 2


def _least_variance(epsilon: float, inputs: int = 17, outputs: int = 41) -> float:
    """The least worst variance of any table of chances over so many inputs and outputs.

    Unknowns: the chances, row by row; per output the least of its column; the worst variance.
    """
    odds = math.exp(epsilon)
    numbers = np.linspace(-1, 1, inputs)
    reach = 1.3 * (odds + 1) / (odds - 1)
    values = np.linspace(-reach, reach, outputs)
    columns = kron(np.ones((inputs, 1)), eye_array(outputs))
    every = eye_array(inputs * outputs)
    none = csr_array((inputs * outputs, 1))
    empty = csr_array((inputs, outputs))
    above = hstack([every, -odds * columns, none])
    below = hstack([-every, columns, none])
    squares = hstack([block_diag([values[None] ** 2] * inputs), empty, -np.ones((inputs, 1))])
    ones, means = (
        hstack([block_diag([row[None]] * inputs), empty, csr_array((inputs, 1))])
        for row in (np.ones(outputs), values)
    )
    solution = linprog(
        np.append(np.zeros(inputs * outputs + outputs), 1.0),
        A_ub=vstack([above, below, squares]),
        b_ub=np.concatenate([np.zeros(2 * inputs * outputs), numbers**2]),
        A_eq=vstack([ones, means]),
        b_eq=np.concatenate([np.ones(inputs), numbers]),
    )
    assert solution.success
    return float(solution.fun)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
def test_the_standard_deviation_is_within_a_percent_of_the_linear_programs(epsilon: float) -> None:
    assert math.sqrt(_worst(epsilon)) <= 1.01 * math.sqrt(_least_variance(epsilon))


@pytest.mark.parametrize("epsilon", [2.0**-10, 0.25, 0.7, 1.23, 1.77, 2.6, 3.81, 5.4, 7.7, 11.3])
def test_no_other_mechanism_of_means_has_less_variance(epsilon: float) -> None:
    others = [
        4 * build(name, epsilon=epsilon, low=-1, high=1).variance(place, 1)
        for name, place in (("mean.one_bit", 0.5), ("mean.piecewise", 1.0))
    ]
    assert _worst(epsilon) <= 1.006 * min(others)  # below .25 as much as one bit


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 1.8, 2.45, 4.0, 6.6])
def test_the_variance_of_a_vector_answer_is_its_largest(epsilon: float) -> None:
    mechanism, worst = _table(epsilon), _worst(epsilon)
    everywhere = [4 * mechanism.variance(place / 1000, 1) for place in range(1001)]
    assert 0.999 * worst <= max(everywhere) <= worst * (1 + 1e-12)
    assert max(4 * mechanism.variance(place, 1) for place in PLACES) >= 0.99 * worst
    assert min(everywhere) >= 0.89 * worst


def test_window_sums_rise_and_outputs_are_symmetric_at_every_epsilon() -> None:
    """A device looks for the window below its number among the sums."""
    for epsilon in (*np.arange(0.01, 8, 0.02).tolist(), 2.0**-10, 9.7, 12.9, 15.3, 16.0):
        mechanism = _table(epsilon)
        assert all(low < high for low, high in pairwise(mechanism.sums))
        assert mechanism.outputs == tuple(-output for output in reversed(mechanism.outputs))
