"""Every mechanism at a real size: 20,000 reports over 1,000 values, randomized by shipping code.

The coins are a fixed generator's, so a run repeats. Estimates are compared with the truth in units
of the standard deviation that the mechanism claims: the largest score over all cells, by the union
bound over a normal law; and the mean square of the scores, which must lie near 1. Cells are nearly
uncorrelated (correlations of order 1/cells), so the mean of c squares has a deviation of about
sqrt(2/c); 6 of them, and 6 for single means. False alarm over all tests: below 1e-6 for a mechanism
that is right, and none at all once it has passed, since the seed is fixed.
"""

import random
from math import cos, sin
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from hubbub.aggregator.ingest.fold import fold
from hubbub.analysis.families import family_for
from hubbub.analysis.families.listed_values import Listed, estimates_of
from hubbub.mechanisms import REGISTRY, AnyMechanism, Probability, Totals, build
from hubbub.mechanisms import random_bits as bits_module

pytestmark = pytest.mark.thorough

REPORTS, CATEGORIES = 20_000, 1000
PARAMETERS: dict[str, dict[str, Any]] = {
    "rr": {"epsilon": 1.0},
    "rappor": {"bits": 64, "hashes": 2, "cohorts": 16, "f": 0.5, "p": 0.25, "q": 0.75},
    "rappor.basic": {"categories": CATEGORIES, "f": 0.5, "p": 0.25, "q": 0.75},
    "cms": {"epsilon": 1.0, "hashes": 16, "width": 64},
    "hcms": {"epsilon": 1.0, "hashes": 16, "width": 64},
    "local_hash": {"epsilon": 1.0, "hashes": 16, "width": 64},
    "tree": {"epsilon": 1.0, "bits": 8, "cells": 64, "hashes": 2},
    "pairs": {"epsilon": 1.0, "sizes": (10, 10, 10)},
    "privset": {"epsilon": 1.0, "categories": 10, "most": 9},
    "mean.one_bit": {"epsilon": 1.0, "low": 0, "high": CATEGORIES},
    "mean.piecewise": {"epsilon": 1.0, "low": 0, "high": CATEGORIES},
    "mean.table": {"epsilon": 1.0, "low": 0, "high": CATEGORIES},
    "buckets": {"epsilon": 1.0, "low": 0, "high": CATEGORIES, "buckets": CATEGORIES, "sampled": 8},
    "long.grr": {"epsilon": 1.0, "permanent_epsilon": 3.0, "categories": CATEGORIES},
    "long.hash": {"epsilon": 1.0, "permanent_epsilon": 3.0, "categories": CATEGORIES},
    "long.unary": {"epsilon": 1.0, "permanent_epsilon": 3.0, "categories": CATEGORIES},
    "wave": {"epsilon": 1.0, "low": 0, "high": CATEGORIES, "buckets": CATEGORIES},
    "haar": {"epsilon": 1.0, "low": 0, "high": CATEGORIES, "buckets": CATEGORIES},
    "vector.codes": {"epsilon": 1.0, "dimensions": 2, "words": 8, "books": 16},
}
LISTED = {"epsilon": 1.0, "categories": CATEGORIES}


class SeededBits:
    """Coins of a fixed generator, compared digit by digit as all others are."""

    def __init__(self, seed: str) -> None:
        self._draw = random.Random(seed).getrandbits

    def chance(self, probability: Probability, /) -> bool:
        return self._draw(64) < probability.threshold

    def below(self, limit: int, /) -> int:
        return bits_module._below(self._draw, limit)

    def mask(self, probability: Probability, width: int, /) -> int:
        return bits_module._mask(self._draw, probability, width)


def _values(top: int) -> npt.NDArray[np.int64]:
    """Zipf's law over [0, top)."""
    weights = 1 / np.arange(1, top + 1)
    return np.random.default_rng(17).choice(top, REPORTS, p=weights / weights.sum())


def _value_of(mechanism: AnyMechanism, number: int) -> Any:
    """The mechanism's own value for a number."""
    values: dict[str, Any] = {
        "categories": number,
        "strings": f"string {number}",
        "numbers": number + 0.25,
        "vectors": (cos(number), sin(number)),
    }
    return values[mechanism.VALUES]


@pytest.mark.parametrize("name", REGISTRY)
def test_estimates_at_a_real_size_are_as_near_as_their_variance_says(name: str) -> None:
    mechanism = build(name, **PARAMETERS.get(name, LISTED))
    numbers = _values(2 if name == "rr" else CATEGORIES)
    coins, layout = SeededBits(name), mechanism.layout
    payloads = b"".join(
        mechanism.randomize(_value_of(mechanism, n), coins) for n in numbers.tolist()
    )
    matrix = np.frombuffer(payloads, dtype=np.uint8).reshape(REPORTS, layout.payload_bytes)
    totals = Totals(cells=fold(layout, matrix).tolist(), reports=REPORTS)
    if isinstance(family_for(mechanism), Listed):
        values, variances = estimates_of(mechanism, totals)
    else:
        estimates = mechanism.estimate(totals)
        values, variances = np.array(estimates.values), np.array(estimates.variances)

    kinds, counts = np.unique(numbers, return_counts=True)
    rows = np.array(
        [[float(x) for x in mechanism.row(_value_of(mechanism, n))] for n in kinds.tolist()]
    )
    truth = counts @ rows
    groups = mechanism.groups
    # A report falls in one of the groups by a fair coin, which adds to the noise of each.
    spread = np.array([mechanism.variance(t / groups, REPORTS // groups) for t in truth.tolist()])
    spread += truth * (1 / groups) * (1 - 1 / groups)
    scores = (values - truth / groups) / np.sqrt(spread)
    cells = len(scores)
    assert np.abs(scores).max() < -NormalDist().inv_cdf(1e-7 / 2 / cells)
    if cells > 100:
        assert abs((scores**2).mean() - 1) < 6 * np.sqrt(2 / cells) + 0.02
        assert 0.8 < variances.mean() / spread.mean() < 1.25
