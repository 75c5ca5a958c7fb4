"""Comparisons and trends: of the population, which sends other people each time."""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from hubbub.analysis.answer import Answer
from hubbub.analysis.answering import Followed, answer_tiers, joined_shares
from hubbub.analysis.comparisons.change import changes
from hubbub.analysis.families import draw, draw_epochs
from hubbub.mechanisms import AnyMechanism, Totals, build
from tests.statistics.calibration.listed import ENDS
from tests.statistics.calibration.shapes import built
from tests.statistics.calibration.statement import Counted, Setting, Statement, mistake

POINT = ("Point.share", "Point.stderr", "Point.low", "Point.high")
SMALL_P = mistake("no change, and p < .05", 0.05, ("Change.p_value", "Change.stderr"))
ANY = mistake("no change, and any value is marked", 0.05, ("Change.changed",))
MARKED_ABOVE = Statement("what is marked has an interval without 0", 1.0, ("Change.changed",))
DIFFERENCE = Statement(
    "95% interval of a difference",
    0.95,
    ("Change.low", "Change.high", "Change.difference", "Change.before", "Change.after"),
)
INSIDE = Statement("a possible difference is in its interval", 1.0, ("Change.difference",))
SUREST = Statement("95% interval of the surest difference", 0.95, ("Change.low", "Change.high"))
REQUESTED_BAND = Statement("95% band of a value asked for", 0.95, POINT)
PICKED = Statement("95% band of the five most frequent", 0.95, POINT)
SUMMED = Statement("95% interval of a week of the same devices", 0.95, ENDS)
MOVED = Statement("a 5% move from week to week is found", 0.5, ("Change.changed",))


def _change(
    mechanism: AnyMechanism,
    before: Sequence[float],
    after: Sequence[float],
    reports: int | tuple[int, int],
    chance: np.random.Generator,
) -> Iterator[Counted]:
    """Two populations' shares, and who happens to report of them."""
    sizes = (reports, reports) if isinstance(reports, int) else reports
    names = [str(value) for value in range(len(before))]
    answers, points = [], []
    for population, size in zip((before, after), sizes, strict=True):
        counts = chance.multinomial(size, population).tolist()
        tiers = [(mechanism, draw(mechanism, range(len(counts)), counts, chance))]
        answers.append(answer_tiers(tiers, names))
        [point] = joined_shares([Followed(tiers, [1])])
        points.append(point.low <= population[1] <= point.high)
    yield REQUESTED_BAND, sum(points), 2
    result = changes(*answers)
    true = np.array(after) - np.array(before)
    holds = [
        change.low <= difference <= change.high
        for change, difference in zip(result, true, strict=True)
    ]
    yield DIFFERENCE, sum(holds), len(holds)
    possible = [change for change in result if abs(change.difference) <= 1]
    inside = sum(change.low <= change.difference <= change.high for change in possible)
    yield INSIDE, inside, len(possible)
    yield SUREST, holds[min(range(len(result)), key=lambda place: result[place].p_value)], 1
    marked = [change for change in result if change.changed]
    yield MARKED_ABOVE, sum(change.low > 0 or change.high < 0 for change in marked), len(marked)
    if not true.any():
        yield SMALL_P, result[1].p_value < 0.05, 1
        yield ANY, bool(marked), 1


def _zipf(size: int) -> list[float]:
    weights = 1 / np.arange(1, size + 1)
    shares: list[float] = (weights / weights.sum()).tolist()
    return shares


def _picked(
    mechanism: AnyMechanism, each: int, days: int, chance: np.random.Generator
) -> Iterator[Counted]:
    """Of even values the most frequent of some epochs: chance alone picked them."""
    size = mechanism.layout.size
    epochs = [draw(mechanism, range(size), [each] * size, chance) for _ in range(days)]
    cells = np.sum([epoch.cells for epoch in epochs], axis=0).tolist()
    names = [str(value) for value in range(size)]
    whole = answer_tiers(
        [(mechanism, Totals(cells=cells, reports=days * each * size))], names
    ).values
    ranks = [row.rank or 0 for row in whole]
    first = sorted(range(size), key=ranks.__getitem__)[:5]
    for epoch in epochs:
        picked = [ranks[place] / size for place in first]
        points = joined_shares(
            [Followed([(mechanism, epoch)], first)], picked=picked, part=1 / len(epochs)
        )
        yield PICKED, sum(point.low <= 1 / size <= point.high for point in points), 5


BEFORE = [6000, 4000, 3000, 2500, 2000, 1500, 1000, 0]


def _weeks(mechanism: AnyMechanism, chance: np.random.Generator) -> Iterator[Counted]:
    """The same devices seven times; then a twentieth of them has taken up one value."""
    after = [count - count // 20 for count in BEFORE]
    after[2] += sum(BEFORE) - sum(after)
    names = [str(value) for value in range(len(BEFORE))]

    def week(counts: Sequence[int]) -> Answer:
        epochs = list(draw_epochs(mechanism, range(8), counts, 7, chance))
        cells = np.sum([epoch.cells for epoch in epochs], axis=0).tolist()
        return answer_tiers(
            [(mechanism, Totals(cells=cells, reports=7 * sum(counts)))], names, repeats=7
        )

    first, second = week(BEFORE), week(after)
    holds = [
        value.low <= 7 * count <= value.high
        for value, count in zip(first.values, BEFORE, strict=True)
    ]
    yield SUMMED, sum(holds), len(holds)
    yield MOVED, changes(first, second)[2].changed, 1


SETTINGS: Sequence[Setting] = [
    *(
        Setting(
            f"rr {epsilon:g}, {share:.0%}, 10,000 reports a side",
            200,
            partial(
                _change,
                built("rr", epsilon, 2),
                [1 - share, share],
                [1 - share, share],
                10_000,
            ),
        )
        for epsilon, share in ((1.0, 0.5), (4.0, 0.1), (8.0, 0.5))
    ),
    *(
        Setting(
            f"{name} {epsilon:g}, {size} values, {'no change' if same else 'one moves'}",
            200,
            partial(
                _change,
                built(name, epsilon, size),
                [1 / size] * size,
                [1 / size] * size
                if same
                else [1 / size + 0.02, 1 / size - 0.02, *[1 / size] * (size - 2)],
                10_000,
            ),
        )
        for name, epsilon, size, same in (
            ("grr", 4.0, 8, True),
            ("unary.oue", 1.0, 32, True),
            ("unary.oue", 4.0, 32, False),
            ("hadamard", 2.0, 16, False),
        )
    ),
    *(
        Setting(
            f"{name} {epsilon:g}, {size} values, {least:.0%} to {1 - least:.0%}, {reports:,}",
            200,
            partial(
                _change,
                built(name, epsilon, size),
                [least, *[(1 - least) / (size - 1)] * (size - 1)],
                [1 - least, *[least / (size - 1)] * (size - 1)],
                reports,
            ),
        )
        for name, epsilon, size, least, reports in (
            ("rr", 1.0, 2, 0.0, 2000),
            ("grr", 2.0, 4, 0.01, 500),
            ("unary.oue", 1.0, 50, 0.01, 200),
        )
    ),
    *(
        Setting(
            f"{name} {epsilon:g}, {size:,} values, Zipf, {old:,} reports and {new:,}",
            60,
            partial(_change, built(name, epsilon, size), _zipf(size), _zipf(size), (old, new)),
        )
        for name, epsilon, size, old, new in (
            ("unary.oue", 8.0, 500, 10_000, 1000),
            ("unary.oue", 8.0, 500, 100, 1000),
            ("grr", 6.0, 200, 10_000, 500),
            ("unary.oue", 0.5, 20, 100, 100_000),
        )
    ),
    *(
        Setting(
            f"rr 8, {share:.1%} and {reports} reports",
            200,
            partial(_change, built("rr", 8.0, 2), [1 - share, share], [1 - share, share], reports),
        )
        for share, reports in ((0.995, 200), (0.99, 100))
    ),
    *(
        Setting(
            f"unary.oue 1, {size} even values, {days} epochs",
            60,
            partial(_picked, built("unary.oue", 1.0, size), each, days),
        )
        for size, each, days in ((1000, 6, 2), (128, 80, 2), (128, 80, 16))
    ),
    *(
        Setting(
            f"{name}, 20,000 devices",
            60,
            partial(_weeks, build(name, **parameters, categories=8)),
        )
        for name, parameters in (
            ("long.unary", {"epsilon": 1.0, "permanent_epsilon": 2.0}),
            ("long.grr", {"epsilon": 1.0, "permanent_epsilon": 2.0}),
            ("rappor.basic", {"f": 0.5, "p": 0.25, "q": 0.75}),
        )
    ),
]
