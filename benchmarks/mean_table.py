"""The rows of mean.table, worked out anew: `python -m benchmarks.mean_table`.

For each epsilon, width and number of steps: the coefficients of the outputs with the least worst
variance, over all windows and halfway between two. A variance is a convex function of the
coefficients, so any local minimum is the least.
"""

import math
from typing import Any

import numpy as np
from scipy.optimize import minimize

from hubbub.mechanisms.mean_lookup_table import ROWS

Floats = np.ndarray[Any, np.dtype[np.float64]]

# The sum of a row's coefficients: the output of the last outcome.
_LARGEST = 10_000


def coefficients(epsilon: float, width: int, steps: int) -> list[int]:
    """Of sign(t), t, t^3, t^5 and t^7, for outcomes at places t in [-1, 1]."""
    size = steps + width
    far = 1 / (size + math.expm1(epsilon) * width)
    chances = np.full((steps + 1, size), far)
    for start, row in enumerate(chances):
        row[start : start + width] *= math.exp(epsilon)
    halfway = (chances[1:] + chances[:-1]) / 2
    places = np.linspace(-1, 1, size)
    basis = np.stack([np.sign(places), places, places**3, places**5, places**7], axis=1)
    ends = chances[-1] @ basis
    forms = np.array(
        [
            (basis * row[:, None]).T @ basis - np.outer(row @ basis, row @ basis)
            for row in np.vstack([chances, halfway])
        ]
    )

    def room(point: Floats) -> Floats:
        powers = point[:-1]
        return np.asarray(point[-1] - np.einsum("i,nij,j->n", powers, forms, powers))

    def slopes(point: Floats) -> Floats:
        inward = -2 * np.einsum("nij,j->ni", forms, point[:-1])
        return np.hstack([inward, np.ones((len(forms), 1))])

    first = np.append(np.full(5, 1 / ends.sum()), 0.0)
    first[-1] = -room(first).min()
    solution = minimize(
        lambda point: point[-1],  # the worst variance, with a mean output of 1 at the end
        first,
        jac=lambda _: np.append(np.zeros(5), 1.0),
        method="SLSQP",
        constraints=[
            {"type": "ineq", "fun": room, "jac": slopes},
            {
                "type": "eq",
                "fun": lambda point: np.array([ends @ point[:-1] - 1]),
                "jac": lambda _: np.append(ends, 0.0)[None],
            },
        ],
        options={"maxiter": 300, "ftol": 1e-12},
    )
    best = solution.x[:-1]
    return [round(number) for number in (best / best.sum() * _LARGEST).tolist()]


def main() -> None:
    """Print each row as it is, and as it is worked out here."""
    for epsilon, width, steps, fixed in ROWS:
        print(epsilon, width, steps, fixed, coefficients(epsilon, width, steps))


if __name__ == "__main__":
    main()
