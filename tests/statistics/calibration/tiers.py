"""People at two epsilons: the tier is chosen by a coin that does not look at the value."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from hubbub.analysis.answering import Followed, answer_tiers, joined_shares
from hubbub.analysis.comparisons.change import changes
from hubbub.analysis.families import draw
from hubbub.catalog import Release
from hubbub.mechanisms import AnyMechanism, Totals, build
from hubbub.privacy.releases import release
from tests.statistics.calibration.changes import ANY, DIFFERENCE, SMALL_P
from tests.statistics.calibration.listed import ENDS, judged
from tests.statistics.calibration.shapes import built
from tests.statistics.calibration.statement import Counted, Setting, Statement

PEOPLE = 10_000
VALUE = Statement("95% interval of a value, over tiers", 0.95, ENDS)
MEAN = Statement("95% interval of a mean, over tiers", 0.95, ENDS)
POINT = Statement("95% band of a trend, over tiers", 0.95, ("Point.low", "Point.high"))
RELEASED = Statement("95% interval of a release, over tiers", 0.95, ("Released.low",))

Parts = list[tuple[AnyMechanism, Totals]]


def _split(
    mechanisms: Sequence[AnyMechanism],
    values: Sequence[Any],
    counts: Sequence[int],
    smaller: float,
    chance: np.random.Generator,
) -> Parts:
    few = chance.multivariate_hypergeometric(counts, chance.binomial(sum(counts), smaller))
    return [
        (mechanism, draw(mechanism, values, part.tolist(), chance))
        for mechanism, part in zip(mechanisms, (np.array(counts) - few, few), strict=True)
    ]


def _value(
    mechanisms: Sequence[AnyMechanism],
    counts: list[int],
    smaller: float,
    chance: np.random.Generator,
) -> Iterator[Counted]:
    names = [str(value) for value in range(len(counts))]
    parts = _split(mechanisms, range(len(counts)), counts, smaller, chance)
    answer = answer_tiers(parts, names).values[0]
    yield VALUE, answer.low <= counts[0] <= answer.high, 1
    drawn = chance.multinomial(PEOPLE, np.array(counts) / PEOPLE).tolist()
    [point] = joined_shares(
        [Followed(_split(mechanisms, range(len(counts)), drawn, smaller, chance), [0])]
    )
    yield POINT, point.low <= counts[0] / PEOPLE <= point.high, 1


def _same(
    mechanisms: Sequence[AnyMechanism],
    counts: list[int],
    smaller: float,
    chance: np.random.Generator,
) -> Iterator[Counted]:
    """Two epochs of one population."""
    names = [str(value) for value in range(len(counts))]
    answers = []
    for _ in range(2):
        drawn = chance.multinomial(PEOPLE, np.array(counts) / PEOPLE).tolist()
        parts = _split(mechanisms, range(len(counts)), drawn, smaller, chance)
        answers.append(answer_tiers(parts, names))
    result = changes(*answers)
    yield SMALL_P, result[0].p_value < 0.05, 1
    yield ANY, any(change.changed for change in result), 1
    yield DIFFERENCE, sum(change.low <= 0 <= change.high for change in result), len(result)


def _mean(
    mechanisms: Sequence[AnyMechanism], smaller: float, chance: np.random.Generator
) -> Iterator[Counted]:
    parts = _split(mechanisms, [0.0, 1.0], [PEOPLE // 2] * 2, smaller, chance)
    answer = answer_tiers(parts, None).values[0]
    yield MEAN, answer.low <= 0.5 <= answer.high, 1


def _released(
    mechanisms: Sequence[AnyMechanism],
    counts: list[int],
    smaller: float,
    chance: np.random.Generator,
) -> Iterator[Counted]:
    parts = _split(mechanisms, [0, 1], counts, smaller, chance)
    policy = Release("laplace", 1.0)
    [row] = release(parts, ["0", "1"], "count", "0", policy=policy, reports_each=1)
    if row.low is None or row.high is None:
        raise AssertionError("a count has an interval")
    yield RELEASED, row.low <= counts[0] <= row.high, 1


def _true_counts(name: str, share: float) -> list[int]:
    counts = [round(PEOPLE * share), PEOPLE - round(PEOPLE * share)]
    return counts if name == "rr" else [*counts, 0, 0]


LISTS = (
    ("rr", 4.0, 0.5, 0.2, 0.5),
    ("rr", 4.0, 0.5, 0.5, 0.5),
    ("rr", 8.0, 1.0, 0.5, 0.5),
    ("rr", 4.0, 0.5, 0.9, 0.1),
    ("grr", 4.0, 1.0, 0.5, 0.3),
    ("unary.oue", 4.0, 0.5, 0.2, 0.3),
    ("rr", 1.0, 0.25, 0.5, 0.5),
    ("rr", 8.0, 1.0, 0.98, 0.01),
    ("unary.oue", 8.0, 0.5, 0.98, 0.01),
)

FEW = (
    ("unary.oue", (8.0, 0.5), 0.9, [995] + [1] * 5 + [0] * 40),
    ("unary.oue", (8.0, 0.5), 0.9, [9900, 100] + [0] * 40),
    ("rr", (8.0, 1.0), 0.95, [980, 20]),
    ("grr", (8.0, 0.2), 0.98, [300, 100, 100]),
)


def _few(
    mechanisms: Sequence[AnyMechanism],
    counts: list[int],
    smaller: float,
    chance: np.random.Generator,
) -> Iterator[Counted]:
    """A small tier that says nearly all."""
    parts = _split(mechanisms, range(len(counts)), counts, smaller, chance)
    names = [str(value) for value in range(len(counts))]
    yield from judged(answer_tiers(parts, names).values, counts)


SETTINGS: Sequence[Setting] = [
    *(
        Setting(
            f"{name} {large:g} and {small:g}, {smaller:.0%} at the smaller, {sum(counts):,} people",
            120,
            partial(_few, [built(name, e, len(counts)) for e in (large, small)], counts, smaller),
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
                [built(name, epsilon, 2 if name == "rr" else 4) for epsilon in (large, small)],
                _true_counts(name, share),
                smaller,
            ),
        )
        for label, once, runs in (("", _value, 200), ("two epochs of ", _same, 120))
        for name, large, small, smaller, share in LISTS
    ),
    *(
        Setting(
            f"mean.piecewise 4 and 0.5, {smaller:.0%} at the smaller",
            200,
            partial(
                _mean,
                [build("mean.piecewise", epsilon=e, low=0.0, high=1.0) for e in (4.0, 0.5)],
                smaller,
            ),
        )
        for smaller in (0.2, 0.5)
    ),
    Setting(
        "a count released, rr 4 and 0.5, 20% at the smaller",
        200,
        partial(_released, [built("rr", e, 2) for e in (4.0, 0.5)], [PEOPLE // 2] * 2, 0.2),
    ),
]
