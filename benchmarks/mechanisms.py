"""Every mechanism at (d, epsilon): error beside theory, speed on both sides, and the peers'.

100,000 reports of Zipf-distributed values are randomized by the shipping code with coins from the
system, in 250 collections of 400: their squared errors over all values, added up and divided by
what the exact variance says, are one figure with a deviation of 2% at 16 values and less at more.
Where there is but one number to estimate there are 5,000 collections of 20, for the same deviation.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hubbub.aggregator.ingest.fold import fold, well_formed
from hubbub.analysis.families import family_for
from hubbub.analysis.families.listed_values import Listed, estimates_of
from hubbub.mechanisms import REGISTRY, AnyMechanism, SystemBits, Totals, build

SIZES: Final = (16, 128, 1024)
EPSILONS: Final = (0.5, 1.0, 2.0, 4.0)
REPORTS: Final = 100_000
COLLECTIONS: Final = 250
COLLECTIONS_OF_ONE: Final = 5000
HEADER: Final = (
    "mechanism",
    "d",
    "epsilon",
    "squared error / theory",
    "us a randomize",
    "bytes",
    "reports/s folded and estimated",
    "best peer, us",
    "best peer, reports/s",
)
_PEERS: Final = Path(__file__).parents[1] / "build" / "peers" / "bin" / "python"


@dataclass(frozen=True, slots=True)
class Figures:
    """What was measured of one mechanism at one size and epsilon."""

    mechanism: str
    categories: int
    epsilon: float
    error: float
    microseconds: float
    payload_bytes: int
    per_second: float


@dataclass(frozen=True, slots=True)
class Peer:
    """The best figures at epsilon 1 over all peers that have the mechanism."""

    microseconds: float
    per_second: float


def peers() -> dict[tuple[str, int], Peer]:
    """The best peer per mechanism and size, each measured now; empty without their environment."""
    if not _PEERS.exists():
        return {}
    script = Path(__file__).with_name("peer_figures.py")
    done = subprocess.run([_PEERS, script], stdout=subprocess.PIPE, check=True, text=True)
    best: dict[tuple[str, int], Peer] = {}
    for line in done.stdout.splitlines():
        document = json.loads(line)
        key = document["mechanism"], document["categories"]
        previous = best.get(key, Peer(float("inf"), 0.0))
        best[key] = Peer(
            min(previous.microseconds, document["us"]),
            max(previous.per_second, document.get("per_second", 0.0)),
        )
    return best


def figures() -> Iterator[Figures]:
    """Every registry entry over the grid; those without values listed by number once an epsilon.

    Of vectors `benchmarks.vectors` has the errors, by how many numbers they have.
    """
    for name in [name for name, mechanism in REGISTRY.items() if mechanism.VALUES != "vectors"]:
        for size in (2,) if name == "rr" else SIZES:
            for epsilon in EPSILONS:
                if sys.stderr.isatty():
                    print(f"measuring: {name}, {size}, {epsilon} ...", file=sys.stderr)
                yield _measure(name, size, epsilon)


def rows(figures: list[Figures], best: dict[tuple[str, int], Peer]) -> list[tuple[str, ...]]:
    """Cells of the table, under HEADER."""
    return [
        (
            figure.mechanism,
            str(figure.categories),
            f"{figure.epsilon:g}",
            f"{figure.error:.2f}",
            f"{figure.microseconds:.1f}",
            str(figure.payload_bytes),
            f"{figure.per_second / 1e6:,.1f}M",
            f"{peer.microseconds:.1f}" if peer else "",
            f"{peer.per_second / 1e6:,.2f}M" if peer and peer.per_second else "",
        )
        for figure in figures
        for peer in [
            best.get((figure.mechanism, figure.categories)) if figure.epsilon == 1 else None
        ]
    ]


def _parameters(name: str, size: int, epsilon: float) -> dict[str, Any]:
    """A mechanism's parameters for so many values, cells or buckets at this epsilon."""
    lie = {"f": 2 / (1 + float(np.exp(epsilon / 2))), "p": 0.0, "q": 1.0}  # one-time
    return {
        "rr": {"epsilon": epsilon},
        "rappor": {"bits": size, "hashes": 1, "cohorts": 8, **lie},
        "rappor.basic": {"categories": size, **lie},
        "cms": {"epsilon": epsilon, "hashes": 8, "width": size},
        "hcms": {"epsilon": epsilon, "hashes": 8, "width": size},
        "local_hash": {"epsilon": epsilon, "hashes": 8, "width": size},
        "mean.one_bit": {"epsilon": epsilon, "low": 0, "high": size},
        "mean.piecewise": {"epsilon": epsilon, "low": 0, "high": size},
        "mean.table": {"epsilon": epsilon, "low": 0, "high": size},
        "buckets": {
            "epsilon": epsilon,
            "low": 0,
            "high": size,
            "buckets": size,
            "sampled": min(size, 8),
        },
        "wave": {"epsilon": epsilon, "low": 0, "high": size, "buckets": size},
        "haar": {"epsilon": epsilon, "low": 0, "high": size, "buckets": size},
        "long.grr": {"epsilon": epsilon, "permanent_epsilon": 2 * epsilon, "categories": size},
        "long.hash": {"epsilon": epsilon, "permanent_epsilon": 2 * epsilon, "categories": size},
        "long.unary": {"epsilon": epsilon, "permanent_epsilon": 2 * epsilon, "categories": size},
    }.get(name, {"epsilon": epsilon, "categories": size})


def _measure(name: str, size: int, epsilon: float) -> Figures:
    mechanism = build(name, **_parameters(name, size, epsilon))
    weights = 1 / np.arange(1, size + 1)
    numbers = np.random.default_rng(size).choice(size, REPORTS, p=weights / weights.sum())
    choices = [_value_of(mechanism, number) for number in range(size)]
    values = [choices[number] for number in numbers.tolist()]
    coins, randomize = SystemBits(), mechanism.randomize
    start = time.perf_counter()
    payloads = [randomize(value, coins) for value in values]
    took = time.perf_counter() - start
    length = mechanism.layout.payload_bytes
    matrix = np.frombuffer(b"".join(payloads), dtype=np.uint8).reshape(REPORTS, length)
    is_listed = isinstance(family_for(mechanism), Listed)
    estimate = partial(estimates_of, mechanism) if is_listed else mechanism.estimate
    rates = []
    for _ in range(3):
        start = time.perf_counter()
        if not well_formed(mechanism.layout, matrix).all():
            raise AssertionError("an honest payload was refused")
        cells = fold(mechanism.layout, matrix).tolist()
        estimate(Totals(cells=cells, reports=REPORTS))
        rates.append(REPORTS / (time.perf_counter() - start))
    error = _error(mechanism, matrix, np.array([mechanism.row(t) for t in choices], float), numbers)
    return Figures(name, size, epsilon, error, took / REPORTS * 1e6, length, sorted(rates)[1])


def _error(
    mechanism: AnyMechanism,
    matrix: npt.NDArray[np.uint8],
    truths: npt.NDArray[np.float64],
    numbers: npt.NDArray[np.int64],
) -> float:
    """Squared errors of many small collections over their exact expectation."""
    squares = expected = 0.0
    few = len(truths[0]) <= 2  # noqa: PLR2004 of two values one follows from the other
    many = REPORTS // (COLLECTIONS_OF_ONE if few else COLLECTIONS)
    groups = mechanism.groups
    zero, slope = mechanism.variance(0, many), 0.0
    linear = mechanism.VALUES != "numbers" or len(truths[0]) > 1
    if linear:
        slope = mechanism.variance(1, many) - zero
    for first in range(0, REPORTS, many):
        part = slice(first, first + many)
        totals = Totals(cells=fold(mechanism.layout, matrix[part]).tolist(), reports=many)
        truth = truths[numbers[part]].sum(axis=0)
        array = estimates_of(mechanism, totals)[0]
        squares += float(((array - truth / groups) ** 2).sum())
        if linear:
            # A report falls in one of the groups by a fair coin: a part of the noise.
            noise = len(truth) * zero / groups + slope * truth.sum() / groups
            expected += float(noise + truth.sum() / groups * (1 - 1 / groups))
        else:
            expected += sum(
                mechanism.variance(float(t), 1) for t in truths[numbers[part]][:, 0].tolist()
            )
    return squares / expected


def _value_of(mechanism: AnyMechanism, number: int) -> int | float | str:
    value_by_kind: dict[str, int | float | str] = {
        "categories": number,
        "strings": f"string {number}",
        "numbers": number + 0.25,
    }
    return value_by_kind[mechanism.VALUES]
