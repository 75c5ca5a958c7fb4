"""Noise of releases, drawn by OpenDP on whole numbers: `hubbub[releases]`."""

from collections.abc import Sequence
from functools import lru_cache
from math import exp, log, sqrt

import numpy as np
from opendp import combinators, measurements, measures, metrics  # the prelude loads scikit-learn
from opendp.domains import atom_domain, vector_domain
from opendp.mod import Measurement, binary_search_param, enable_features

from hubbub.analysis.arrays import Floats
from hubbub.catalog import Release

enable_features("contrib")  # discrete noise and noisy max are in it


def largest(numbers: Sequence[int], scale: float) -> int:
    """Place of the largest number, by noisy max with exponential noise of this scale."""
    space = vector_domain(atom_domain(T=int)), metrics.linf_distance(T=int)
    select = measurements.make_noisy_max(*space, measures.max_divergence(), scale=scale)
    place: int = select(numbers)
    return place


def draw(size: int, l1: int, l2: float, policy: Release) -> tuple[Floats, float]:
    """Noise for `size` whole numbers of this sensitivity, and its variance."""
    zeros = [0] * size
    domain = vector_domain(atom_domain(T=int), size=size)
    if policy.mechanism == "gaussian":
        sigma = _sigma(l2, policy.epsilon, policy.delta)
        measure = measurements.make_gaussian(domain, metrics.l2_distance(T=float), scale=sigma)
        return np.array(measure(zeros), dtype=np.float64), sigma**2
    scale = l1 / policy.epsilon
    measure = measurements.make_laplace(domain, metrics.l1_distance(T=int), scale=scale)
    # OpenDP's own reckoning of what this costs; a hair above for its rounding.
    cost: float = measure.map(l1)  # type: ignore[no-untyped-call]
    if not cost <= policy.epsilon * (1 + 1e-9):
        raise AssertionError("the noise costs more than the policy allows")
    alpha = exp(-1 / scale)
    return np.array(measure(zeros), dtype=np.float64), 2 * alpha / (1 - alpha) ** 2


@lru_cache(maxsize=256)
def _sigma(l2: float, epsilon: float, delta: float) -> float:
    """The smallest sigma of a discrete Gaussian that keeps epsilon and delta, by its zCDP."""
    space = vector_domain(atom_domain(T=int), size=1), metrics.l2_distance(T=float)

    def gaussian(scale: float) -> Measurement:
        measured = combinators.make_zCDP_to_approxDP(
            measurements.make_gaussian(*space, scale=scale)
        )
        return combinators.make_fix_delta(measured, delta)

    # The textbook's conversion of zCDP (Bun, Steinke 2016, proposition 1.3) gives one that is
    # enough; OpenDP's own reckoning finds a smaller one below it.
    tail = log(1 / delta)
    sigma = l2 / (sqrt(2) * (sqrt(tail + epsilon) - sqrt(tail))) * (1 + 1e-9)
    return binary_search_param(gaussian, d_in=l2, d_out=(epsilon, delta), bounds=(sigma / 8, sigma))
