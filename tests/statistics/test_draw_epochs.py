"""Totals of devices that report again: one permanent response, fresh coins over it."""

from math import sqrt
from typing import Any

import numpy as np
import pytest

from hubbub.analysis.families import draw, draw_epochs
from hubbub.mechanisms import AnyMechanism, KeyedBits, Memoized, build, tally
from hubbub.mechanisms.bits import BitSource

EPOCHS, DEVICES, RUNS = 4, 50, 400
# Two-sided, false alarm below 1e-6 over all cells and cases together.
Z = 6.5


class _Kept:
    """A device's permanent coins, from a key of its own."""

    def __init__(self, device: int) -> None:
        self._device = device

    def coins(self, purpose: bytes) -> BitSource:
        return KeyedBits(self._device.to_bytes(32, "big") + purpose)


CASES: list[tuple[str, dict[str, Any], list[Any], list[int]]] = [
    (
        "long.grr",
        {"epsilon": 1.0, "permanent_epsilon": 3.0, "categories": 3},
        [0, 1, 2],
        [30, 15, 5],
    ),
    (
        "long.unary",
        {"epsilon": 1.0, "permanent_epsilon": 3.0, "categories": 3},
        [0, 1, 2],
        [30, 15, 5],
    ),
    (
        "long.hash",
        {"epsilon": 1.0, "permanent_epsilon": 3.0, "categories": 3},
        [0, 1, 2],
        [30, 15, 5],
    ),
    ("rappor.basic", {"categories": 3, "f": 0.25, "p": 0.2, "q": 0.8}, [0, 1, 2], [30, 15, 5]),
    (
        "rappor",
        {"bits": 4, "hashes": 1, "cohorts": 2, "f": 0.25, "p": 0.2, "q": 0.8},
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
def test_sums_over_epochs_are_as_those_of_the_shipping_randomizer(
    name: str, parameters: dict[str, Any], values: list[Any], counts: list[int]
) -> None:
    """Mean and spread of every cell, summed over the epochs, beside simulated devices."""
    mechanism = build(name, **parameters)
    chance = np.random.default_rng(41)
    drawn = np.array(
        [
            np.sum([t.cells for t in draw_epochs(mechanism, values, counts, EPOCHS, chance)], 0)
            for _ in range(RUNS)
        ],
        dtype=np.float64,
    )
    devices = np.array(
        [_devices(mechanism, values, counts, run) for run in range(RUNS)], dtype=np.float64
    )
    assert (drawn.sum(axis=1) > 0).all()
    spread = np.maximum(devices.var(axis=0), drawn.var(axis=0))
    off = np.abs(drawn.mean(axis=0) - devices.mean(axis=0))
    assert (off <= Z * np.sqrt(2 * spread / RUNS) + 1e-9).all()
    # A variance over so many runs, of nearly normal sums, is off by 1 in root(2 / runs).
    ratio = drawn.var(axis=0)[spread > 0] / devices.var(axis=0)[spread > 0]
    assert (np.abs(np.log(ratio)) <= Z * sqrt(4 / RUNS)).all()


def _devices(mechanism: AnyMechanism, values: list[Any], counts: list[int], run: int) -> list[int]:
    """Totals of real payloads: every device with its own permanent coins, and keyed fresh ones."""
    fresh = KeyedBits(b"fresh" + run.to_bytes(32, "big"))
    payloads, device = [], run * 1000
    for value, count in zip(values, counts, strict=True):
        for _ in range(count):
            device += 1
            for _ in range(EPOCHS):
                if isinstance(mechanism, Memoized):
                    payloads.append(mechanism.randomize_again(value, _Kept(device), fresh))
                else:
                    payloads.append(mechanism.randomize(value, fresh))
    return list(tally(mechanism.layout, payloads).cells)


def test_a_set_is_drawn_by_its_own_chances() -> None:
    """Of `subset`: all payloads have as many elements; each has its mean and its spread."""
    mechanism: Any = build("subset", epsilon=1.0, categories=40)
    chance = np.random.default_rng(42)
    counts = np.arange(10.0, 50.0)
    counts[0] = 400
    values = list(range(40))
    whole = [int(count) for count in counts]
    cells = np.array([draw(mechanism, values, whole, chance).cells for _ in range(2000)])
    assert (cells.sum(axis=1) == counts.sum() * mechanism.layout.ones).all()
    p, q = float(mechanism.channel.p), float(mechanism.channel.q)
    others = counts.sum() - counts
    variance = counts * p * (1 - p) + others * q * (1 - q)
    scores = (cells.mean(axis=0) - counts * p - others * q) / np.sqrt(variance / len(cells))
    assert np.abs(scores).max() < Z
    assert np.abs(np.log(cells.var(axis=0) / variance)).max() < Z * sqrt(2 / len(cells))


def test_one_epoch_of_any_mechanism_is_a_draw() -> None:
    chance = np.random.default_rng(43)
    mechanism = build("hadamard", epsilon=1.0, categories=3)
    [epoch_totals] = draw_epochs(mechanism, [0, 1, 2], [5, 5, 5], 1, chance)
    assert epoch_totals.reports == 15
