"""People with known values, and the truth that an answer about them is compared with."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from hubbub.analysis import OF_NUMBERS
from hubbub.analysis.arrays import Floats
from hubbub.analysis.families import family_for
from hubbub.catalog import Metric


@dataclass(frozen=True, slots=True)
class Truth:
    """Values as the metric's mechanism takes them, each once, with how many people hold it.

    names: as people write them. streams: where answers are told apart by what is public, the
        stream of each, and a value stands once for each of them; empty if all have one stream.
    """

    names: tuple[str, ...]
    codes: tuple[Any, ...]
    counts: tuple[int, ...]
    streams: tuple[str, ...] = ()

    @property
    def people(self) -> int:
        """How many in all."""
        return sum(self.counts)


def above_most(metric: Metric, codes: Sequence[Any], counts: Sequence[int]) -> int:
    """Of sets, how many people hold more values than a device reports."""
    if "most" not in metric.parameters:
        return 0
    most = metric.parameters["most"]
    return sum(n for code, n in zip(codes, counts, strict=True) if code.bit_count() > most)


def true_values(
    mechanism: Any, names: Sequence[str], codes: Sequence[Any], counts: npt.NDArray[Any]
) -> Floats:
    """What a perfect answer would be: per value how many people hold it, or the mean of numbers.

    Args:
        mechanism: of the metric.
        names: what the answer calls its values, in its order.
        codes: values as the mechanism takes them.
        counts: how many people hold each of `codes`; shape (..., codes).

    Returns:
        Shape (..., names). People; of means and of a vector's coordinates, in the metric's unit,
        and 0 where there is nobody.
    """
    family = family_for(mechanism)
    if family.KIND in OF_NUMBERS:
        numbers = np.array(codes, dtype=np.float64).reshape(len(codes), -1)
        means: Floats = counts @ numbers / np.maximum(counts.sum(axis=-1, keepdims=True), 1)
        return means
    if family.KIND == "strings":
        places = {name: place for place, name in enumerate(names)}
        cells = [(at, places[code]) for at, code in enumerate(codes) if code in places]
    else:
        cells = [
            (at, row) for at, code in enumerate(codes) for row in family.rows_of(mechanism, code)
        ]
    of_code, of_name = np.array(cells, dtype=np.int64).reshape(-1, 2).T
    true = np.zeros((len(names), *counts.shape[:-1]))
    np.add.at(true, of_name, np.moveaxis(counts, -1, 0)[of_code])
    return np.moveaxis(true, 0, -1)


@dataclass(slots=True)
class Comparison:
    """Adds up how intervals and estimates do beside the truth."""

    rows: int = 0
    hits: int = 0
    squares: float = 0.0

    def add(self, true: float, low: float, high: float, estimate: float | None = None) -> None:
        """Count one more interval, and the error of its estimate."""
        self.rows += 1
        self.hits += low <= true <= high
        if estimate is not None:
            self.squares += (estimate - true) ** 2

    @property
    def coverage(self) -> float | None:
        """The share of intervals that contain the truth; None without intervals."""
        return self.hits / self.rows if self.rows else None

    @property
    def rms_error(self) -> float | None:
        """The root of the mean square error; None without estimates."""
        return sqrt(self.squares / self.rows) if self.rows else None
