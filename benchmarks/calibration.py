"""Every statement that an answer makes, simulated at length: how often it says it holds, and does.

The settings are the tests' own, with many times their runs. And how wide intervals of what was
picked are, beside the two published ways to be as honest.
"""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from math import sqrt
from typing import Final

import numpy as np
from scipy.special import ndtri

from hubbub.analysis.answering import answer_tiers
from hubbub.analysis.families import draw
from tests.statistics.calibration import SETTINGS
from tests.statistics.calibration.listed import LIST_CASES
from tests.statistics.calibration.shapes import built
from tests.statistics.calibration.statement import Measured, measure

HEADER: Final = ("statement", "setting", "claimed", "measured", "runs", "")
WIDTHS: Final = (
    "values",
    "the first ten rows",
    "Benjamini-Yekutieli",
    "simultaneous",
    "what stands out",
    "Benjamini-Yekutieli",
    "simultaneous",
)
_TIMES: Final = 20
# A true claim is called false once in a thousand.
_ERRORS: Final = 3.1
_WIDTH_RUNS: Final = 40


def calibrated() -> Iterator[tuple[str, ...]]:
    """A row for every statement in every setting, the same statements together."""
    work = [(place, part) for place in range(len(SETTINGS)) for part in range(_TIMES)]
    groups: dict[tuple[str, str], list[Measured]] = {}
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for some in pool.map(_measure, work, chunksize=4):
            for measurement in some:
                groups.setdefault((measurement.statement.says, measurement.setting), []).append(
                    measurement
                )
    says = list(dict.fromkeys(statement for statement, _ in groups))
    for (statement, setting), parts in sorted(
        groups.items(), key=lambda row: says.index(row[0][0])
    ):
        runs = sum(part.runs for part in parts)
        rate = sum(part.rate * part.runs for part in parts) / runs
        level, mistake = parts[0].statement.level, parts[0].statement.mistake
        whole = Measured(parts[0].statement, setting, rate, sqrt(level * (1 - level) / runs), runs)
        yield (
            statement,
            setting,
            f"{'at most' if mistake else 'at least'} {level:.3g}",
            f"{rate:.3f} ± {whole.off:.3f}",
            f"{runs:,}",
            "" if whole.holds(_ERRORS) else "FALSE",
        )


def _measure(work: tuple[int, int]) -> Sequence[Measured]:
    place, part = work
    return measure(SETTINGS[place], SETTINGS[place].runs, seed=1 + part)


@dataclass(frozen=True, slots=True)
class _Widths:
    """In standard errors, of some rows of each run."""

    ours: list[float]
    published: list[float]
    together: list[float]

    def cells(self) -> tuple[str, str, str]:
        columns = (self.ours, self.published, self.together)
        return tuple(f"{np.median(column):.1f}" if column else "" for column in columns)  # type: ignore[return-value]


def widths() -> Iterator[tuple[str, ...]]:
    """Median widths of 95% intervals, in standard errors, of the lists that are simulated.

    Benjamini and Yekutieli (2005): of R rows picked among m, a confidence of 1 - .05 R / m each.
    Simultaneous: 1 - .05 / m each, of all (Bonferroni).
    """
    chance = np.random.default_rng(1)
    for name, epsilon, size, people, shape, shape_label in LIST_CASES:
        mechanism, true_counts = built(name, epsilon, size), shape(size, people)
        names = [str(value) for value in range(size)]
        first, standing = _Widths([], [], []), _Widths([], [], [])
        for _ in range(_WIDTH_RUNS):
            totals = draw(mechanism, range(size), true_counts, chance)
            values = answer_tiers([(mechanism, totals)], names).values
            ordered = sorted(values, key=lambda value: value.rank or 0)
            marked = [value for value in values if value.detected]
            for rows, into in ((ordered[:10], first), (marked, standing)):
                for row in rows:
                    into.ours.append((row.high - row.low) / row.stderr)
                    into.published.append(-2 * float(ndtri(0.025 * len(rows) / size)))
                    into.together.append(-2 * float(ndtri(0.025 / size)))
        setting = f"{name} {epsilon:g}, {size:,} values, {people:,} reports, {shape_label}"
        yield (setting, *first.cells(), *standing.cells())
