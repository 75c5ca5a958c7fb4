"""People with known values, and the truth to compare answers with."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from math import sqrt
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from hubbub.analysis.answer import OF_NUMBERS
from hubbub.analysis.arrays import Floats
from hubbub.analysis.families import family_for
from hubbub.catalog import UNLISTED, Metric, conditions_in

Compared = TypeVar("Compared")


@dataclass(frozen=True, slots=True)
class Truth:
    """The distinct values as the mechanism encodes them, and how many people hold each.

    `names` are the values as people write them. `streams` has the stream of each value if answers
    are broken down by public fields (each value then occurs once per stream); else it is empty.
    """

    names: tuple[str, ...]
    codes: tuple[Any, ...]
    counts: tuple[int, ...]
    streams: tuple[str, ...] = ()

    @property
    def people(self) -> int:
        """The number of people."""
        return sum(self.counts)

    def counts_of(self, public_field: str, part: str) -> npt.NDArray[np.int64]:
        """How many people with this value of the public field `public_field` hold each of `codes`.

        `public_field` is "" for all people.
        """
        counts = np.array(self.counts, dtype=np.int64)
        if not public_field:
            return counts
        parts = [conditions_in(stream).get(public_field, [UNLISTED]) for stream in self.streams]
        return np.where([part in values_of_stream for values_of_stream in parts], counts, 0)


def above_most(metric: Metric, codes: Sequence[Any], counts: Sequence[int]) -> int:
    """Number of people whose set has more values than a device reports."""
    if "most" not in metric.parameters:
        return 0
    most = metric.parameters["most"]
    return sum(n for code, n in zip(codes, counts, strict=True) if code.bit_count() > most)


def true_values(
    mechanism: Any, names: Sequence[str], codes: Sequence[Any], counts: npt.NDArray[Any]
) -> Floats:
    """The perfect answer: how many people hold each value, or the mean of numbers.

    `names` are the values' names in the answer, in order; `codes` are values as the mechanism
    encodes them, which `counts` people hold, of shape (..., codes). The answer, of shape
    (..., names), is in people; for means and coordinates of vectors in the metric's unit, and 0 if
    there is nobody.
    """
    family = family_for(mechanism)
    if family.KIND in OF_NUMBERS:
        numbers = np.array(codes, dtype=np.float64).reshape(len(codes), -1)
        means: Floats = counts @ numbers / np.maximum(counts.sum(axis=-1, keepdims=True), 1)
        return means
    if family.KIND == "strings":
        places = {name: place for place, name in enumerate(names)}
        cells = [(part, places[code]) for part, code in enumerate(codes) if code in places]
    else:
        value_rows = [family.rows_of(mechanism, code) for code in codes]
        cells = [(part, row) for part, rows in enumerate(value_rows) for row in rows]
    of_code, of_name = np.array(cells, dtype=np.int64).reshape(-1, 2).T
    true = np.zeros((len(names), *counts.shape[:-1]))
    np.add.at(true, of_name, np.moveaxis(counts, -1, 0)[of_code])
    return np.moveaxis(true, 0, -1)


def with_truth(section: type[Compared], row: Any, **truth: Any) -> Compared:
    """A row of an answer as a `section`, whose fields it has, but for those in `truth`."""
    values = {
        field.name: getattr(row, field.name)
        for field in fields(section)  # type: ignore[arg-type]  # of a dataclass
        if field.name not in truth
    }
    return section(**values, **truth)


@dataclass(slots=True)
class Comparison:
    """Accumulates how intervals and estimates compare with the truth."""

    rows: int = 0
    covered: int = 0
    squares: float = 0.0

    def add(self, true: float, low: float, high: float, estimate: float | None = None) -> None:
        """Adds an interval, and optionally an estimate."""
        self.rows += 1
        self.covered += low <= true <= high
        if estimate is not None:
            self.squares += (estimate - true) ** 2

    @property
    def coverage(self) -> float | None:
        """Part of the intervals that contain the truth; None without intervals."""
        return self.covered / self.rows if self.rows else None

    @property
    def rms_error(self) -> float | None:
        """Root of the mean square error; None without estimates."""
        return sqrt(self.squares / self.rows) if self.rows else None
