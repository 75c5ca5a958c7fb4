"""People at two epsilons: the tier is chosen by a coin that does not look at the value."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hubbub.analysis.answering import Followed, answer_tiers, joined_shares
from hubbub.analysis.comparisons.change import changes
from hubbub.analysis.families import draw
from hubbub.catalog import Release
from hubbub.mechanisms import AnyMechanism, Totals, build
from hubbub.privacy.central_releases import release
from tests.statistics.calibration.changes import ANY, DIFFERENCE, SMALL_P
from tests.statistics.calibration.listed import ENDS, judge_rows
from tests.statistics.calibration.shapes import built
from tests.statistics.calibration.statement import Counted, Setting, Statement

NUMBER = 10_000
VALUE = Statement("95% interval of a value, over tiers", 0.95, ENDS)
MEAN = Statement("95% interval of a mean, over tiers", 0.95, ENDS)
POINT = Statement("95% band of a trend, over tiers", 0.95, ("Point.low", "Point.high"))
RELEASED = Statement("95% interval of a release, over tiers", 0.95, ("Released.low",))

Parts = list[tuple[AnyMechanism, Totals]]


@dataclass(frozen=True)
class People:
    """Of whom this share, drawn at random, reports at the second mechanism."""

    mechanisms: Sequence[AnyMechanism]
    smaller: float

    def parts(
        self, values: Sequence[Any], counts: Sequence[int], chance: np.random.Generator
    ) -> Parts:
        """The totals of both."""
        few = chance.multivariate_hypergeometric(counts, chance.binomial(sum(counts), self.smaller))
        return [
            (mechanism, draw(mechanism, values, part.tolist(), chance))
            for mechanism, part in zip(self.mechanisms, (np.array(counts) - few, few), strict=True)
        ]


def _value(people: People, counts: list[int], chance: np.random.Generator) -> Iterator[Counted]:
    names = [str(value) for value in range(len(counts))]
    parts = people.parts(range(len(counts)), counts, chance)
    answer = answer_tiers(parts, names).values[0]
    yield VALUE, answer.low <= counts[0] <= answer.high, 1
    drawn = chance.multinomial(NUMBER, np.array(counts) / NUMBER).tolist()
    [point] = joined_shares([Followed(people.parts(range(len(counts)), drawn, chance), [0])])
    yield POINT, point.low <= counts[0] / NUMBER <= point.high, 1


def _unchanged_population(
    people: People, counts: list[int], chance: np.random.Generator
) -> Iterator[Counted]:
    """Two epochs of one population."""
    names = [str(value) for value in range(len(counts))]
    answers = []
    for _ in range(2):
        drawn = chance.multinomial(NUMBER, np.array(counts) / NUMBER).tolist()
        parts = people.parts(range(len(counts)), drawn, chance)
        answers.append(answer_tiers(parts, names))
    result = changes(*answers)
    yield SMALL_P, result[0].p_value < 0.05, 1
    yield ANY, any(change.changed for change in result), 1
    yield DIFFERENCE, sum(change.low <= 0 <= change.high for change in result), len(result)


def _mean(people: People, chance: np.random.Generator) -> Iterator[Counted]:
    parts = people.parts([0.0, 1.0], [NUMBER // 2] * 2, chance)
    answer = answer_tiers(parts, None).values[0]
    yield MEAN, answer.low <= 0.5 <= answer.high, 1


def _released(people: People, counts: list[int], chance: np.random.Generator) -> Iterator[Counted]:
    parts = people.parts([0, 1], counts, chance)
    policy = Release("laplace", 1.0)
    [row] = release(parts, ["0", "1"], "count", "0", policy=policy, reports_each=1)
    if row.low is None or row.high is None:
        raise AssertionError("a count has an interval")
    yield RELEASED, row.low <= counts[0] <= row.high, 1


def _true_counts(name: str, share: float) -> list[int]:
    counts = [round(NUMBER * share), NUMBER - round(NUMBER * share)]
    return counts if name == "rr" else [*counts, 0, 0]


LIST_CASES = (
    ("rr", 8.0, 1.0, 0.5, 0.5),
    ("rr", 4.0, 0.5, 0.9, 0.1),
    ("grr", 4.0, 1.0, 0.5, 0.3),
    ("rr", 1.0, 0.25, 0.5, 0.5),
    ("unary.oue", 8.0, 0.5, 0.98, 0.01),
)

FEW = (
    ("unary.oue", (8.0, 0.5), 0.9, [995] + [1] * 5 + [0] * 40),
    ("unary.oue", (8.0, 0.5), 0.9, [9900, 100] + [0] * 40),
    ("rr", (8.0, 1.0), 0.95, [980, 20]),
    ("grr", (8.0, 0.2), 0.98, [300, 100, 100]),
)


def _few(people: People, counts: list[int], chance: np.random.Generator) -> Iterator[Counted]:
    """A small tier that says nearly all."""
    parts = people.parts(range(len(counts)), counts, chance)
    names = [str(value) for value in range(len(counts))]
    yield from judge_rows(answer_tiers(parts, names).values, counts)


SETTINGS: Sequence[Setting] = [
    *(
        Setting(
            f"{name} {large:g} and {small:g}, {smaller:.0%} at the smaller, {sum(counts):,} people",
            120,
            partial(
                _few, People([built(name, e, len(counts)) for e in (large, small)], smaller), counts
            ),
        )
        for name, (large, small), smaller, counts in FEW
    ),
    *(
        Setting(
            f"{label}{name} {large:g} and {small:g}, {smaller:.0%} at the smaller, "
            f"{share:.0%} hold it",
            runs,
            partial(
                once,
                People([built(name, e, 2 if name == "rr" else 4) for e in (large, small)], smaller),
                _true_counts(name, share),
            ),
        )
        for label, once, runs in (("", _value, 200), ("two epochs of ", _unchanged_population, 120))
        for name, large, small, smaller, share in LIST_CASES
    ),
    *(
        Setting(
            f"mean.piecewise 4 and 0.5, {smaller:.0%} at the smaller",
            200,
            partial(
                _mean,
                People(
                    [build("mean.piecewise", epsilon=e, low=0.0, high=1.0) for e in (4.0, 0.5)],
                    smaller,
                ),
            ),
        )
        for smaller in (0.2, 0.5)
    ),
    Setting(
        "a count released, rr 4 and 0.5, 20% at the smaller",
        200,
        partial(_released, People([built("rr", e, 2) for e in (4.0, 0.5)], 0.2), [NUMBER // 2] * 2),
    ),
]
