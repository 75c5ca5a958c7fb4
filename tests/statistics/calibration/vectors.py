"""Means of vectors: of people who are all alike, whom a pool of words errs about most, and not."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from hubbub.analysis.answering import Followed, answer_tiers, joined_shares
from hubbub.analysis.comparisons.change import changes
from hubbub.analysis.families import draw
from hubbub.mechanisms.vector_codes import VectorCodes
from tests.statistics.calibration.listed import ENDS
from tests.statistics.calibration.statement import Counted, Setting, Statement

COORDINATE = Statement("95% interval of a vector's coordinate", 0.95, ENDS)
BAND = Statement("95% band of a coordinate's trend", 0.95, ("Point.low", "Point.high"))
DIFFERENCE = Statement(
    "95% interval of a coordinate's difference", 0.95, ("Change.low", "Change.high")
)


def _vectors(
    codes: VectorCodes, alike: bool, reports: int, chance: np.random.Generator
) -> Iterator[Counted]:
    """Two epochs, the second a little further on: of each its own people and its own pool."""
    names = [str(place) for place in range(codes.dimensions)]
    answers, means = [], []
    for middle in (0.3, 0.35):
        new_codes = replace(codes, seed=str(chance.integers(1 << 60)))
        people = np.full((reports, codes.dimensions), middle)
        if not alike:
            people += chance.normal(0.0, 0.4, people.shape)
        lengths = np.linalg.norm(people, axis=1, keepdims=True)
        people *= np.minimum(codes.max_length / lengths, 1.0)
        values, counts = ([people[0]], [reports]) if alike else (people, [1] * reports)
        totals = draw(new_codes, [tuple(value) for value in values], counts, chance)
        answers.append(answer_tiers([(new_codes, totals)], names))
        means.append(people.mean(axis=0))
        rows = zip(answers[-1].values, means[-1], strict=True)
        yield COORDINATE, sum(row.low <= true <= row.high for row, true in rows), len(names)
        [point] = joined_shares([Followed([(new_codes, totals)], [1])])
        yield BAND, point.low <= means[-1][1] <= point.high, 1
    pairs = zip(changes(*answers), means[1] - means[0], strict=True)
    yield DIFFERENCE, sum(change.low <= true <= change.high for change, true in pairs), len(names)


SETTINGS: Sequence[Setting] = [
    Setting(
        f"vectors of {size}, epsilon {epsilon:g}, {books} books, {reports:,} "
        + ("alike" if alike else "unlike"),
        runs,
        partial(
            _vectors,
            VectorCodes(epsilon=epsilon, dimensions=size, words=32, books=books, max_length=2.0),
            alike,
            reports,
        ),
    )
    for epsilon, size, books, alike, reports, runs in (
        (1.0, 4, 64, True, 20_000, 30),
        (4.0, 8, 256, True, 20_000, 30),
        (4.0, 8, 256, False, 5_000, 20),
        (8.0, 3, 16, True, 500, 100),
        (2.0, 4, 4096, False, 30, 40),
    )
]
