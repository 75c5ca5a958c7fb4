"""Totals of devices that report again: one permanent response, fresh coins over it."""

from collections import defaultdict
from math import sqrt
from typing import Any

import numpy as np
import pytest

from hubbub.analysis.families import draw, draw_epochs
from hubbub.mechanisms import AnyMechanism, Memoized, build, tally
from hubbub.privacy.proofs.enumeration import Replay, distribution
from tests.proofs.test_linkage import Memory

EPOCHS, RUNS = 4, 400
# Two-sided, false alarm below 1e-6 over all cells and cases together.
Z = 6.5


LASTING = {"epsilon": 1.0, "permanent_epsilon": 3.0, "categories": 3}
CASES: list[tuple[str, dict[str, Any], list[Any], list[int]]] = [
    *((name, LASTING, [0, 1, 2], [30, 15, 5]) for name in ("long.grr", "long.unary", "long.hash")),
    ("rappor.basic", {"categories": 3, "f": 0.25, "p": 0.2, "q": 0.8}, [0, 1, 2], [30, 15, 5]),
    (
        "rappor",
        {"bits": 3, "hashes": 1, "cohorts": 2, "f": 0.25, "p": 0.2, "q": 0.8},
        ["a", "b"],
        [30, 20],
    ),
    (
        "buckets",
        {"epsilon": 2.0, "low": 0, "high": 1, "buckets": 3, "sampled": 2},
        [0.1, 0.5],
        [30, 20],
    ),
    ("grr", {"epsilon": 1.0, "categories": 3}, [0, 1, 2], [30, 15, 5]),
]


@pytest.mark.parametrize(("name", "parameters", "values", "counts"), CASES, ids=str)
def test_sums_over_epochs_have_the_law_of_the_shipping_randomizer(
    name: str, parameters: dict[str, Any], values: list[Any], counts: list[int]
) -> None:
    """Mean and spread of every cell, summed over the epochs, beside those of all outcomes."""
    mechanism = build(name, **parameters)
    chance = np.random.default_rng(41)
    drawn = np.array(
        [
            np.sum([t.cells for t in draw_epochs(mechanism, values, counts, EPOCHS, chance)], 0)
            for _ in range(RUNS)
        ],
        dtype=np.float64,
    )
    means, variances = np.array([_sums_of_a_device(mechanism, value) for value in values]).swapaxes(
        0, 1
    )
    mean, variance = counts @ means, counts @ variances
    assert (np.abs(drawn.mean(axis=0) - mean) <= Z * np.sqrt(variance / RUNS) + 1e-9).all()
    # A variance over so many runs, of nearly normal sums, is off by 1 in root(runs / 2).
    ratio = drawn.var(axis=0)[variance > 0] / variance[variance > 0]
    assert (np.abs(np.log(ratio)) <= Z * sqrt(2 / RUNS)).all()


def _sums_of_a_device(mechanism: AnyMechanism, value: Any) -> tuple[Any, Any]:
    """Mean and variance of each cell of one device's reports of all epochs, by enumeration.

    Given the permanent response they are independent, and alike in law.
    """

    def report(coins: Replay) -> bytes:
        if not isinstance(mechanism, Memoized):
            return mechanism.randomize(value, coins)
        memory = Memory(coins)
        return mechanism.randomize_again(value, memory, coins) + memory.content()

    size, chances = mechanism.layout.payload_bytes, defaultdict[bytes, float](float)
    sums, squares = defaultdict[bytes, Any](float), np.zeros(mechanism.layout.size)
    for outcome, chance in distribution(report).items():
        payload, permanent = outcome[:size], outcome[size:]
        cells = float(chance) * np.array(tally(mechanism.layout, [payload]).cells)
        chances[permanent] += float(chance)
        sums[permanent] += cells
        squares += cells**2 / float(chance)
    mean: Any = sum(sums.values())
    together = (
        sum(device_sum**2 / chances[permanent] for permanent, device_sum in sums.items()) - mean**2
    )
    return EPOCHS * mean, EPOCHS * (squares - mean**2) + EPOCHS * (EPOCHS - 1) * together


def test_a_set_is_drawn_with_its_exact_probabilities() -> None:
    """Of `subset`: all payloads have as many elements; each has its mean and its spread."""
    mechanism: Any = build("subset", epsilon=1.0, categories=40)
    chance = np.random.default_rng(42)
    counts = np.arange(10.0, 50.0)
    counts[0] = 400
    values = list(range(40))
    whole = [int(count) for count in counts]
    cells = np.array([draw(mechanism, values, whole, chance).cells for _ in range(800)])
    assert (cells.sum(axis=1) == counts.sum() * mechanism.layout.ones).all()
    p, q = float(mechanism.channel.p), float(mechanism.channel.q)
    others = counts.sum() - counts
    variance = counts * p * (1 - p) + others * q * (1 - q)
    scores = (cells.mean(axis=0) - counts * p - others * q) / np.sqrt(variance / len(cells))
    assert np.abs(scores).max() < Z
    assert np.abs(np.log(cells.var(axis=0) / variance)).max() < Z * sqrt(2 / len(cells))


def test_epochs_of_every_mechanism_can_be_drawn() -> None:
    chance = np.random.default_rng(43)
    mechanism = build("hadamard", epsilon=1.0, categories=3)
    [epoch_totals] = draw_epochs(mechanism, [0, 1, 2], [5, 5, 5], 1, chance)
    assert epoch_totals.reports == 15
