"""Lines through days: panels that rise, walk, have weekdays and steps, asked one day a device."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from hubbub.analysis.answering import Followed, joined_shares
from hubbub.analysis.arrays import Floats
from hubbub.analysis.families import draw
from hubbub.analysis.trends.smoothed_line import known_variances, line_through
from hubbub.mechanisms import build
from tests.statistics.calibration.statement import Counted, Setting, Statement, mistake

Panel = Callable[[int, np.random.Generator], Floats]
"""Of so many days the share that holds the value on each."""

BAND = Statement("95% band of a line", 0.95, ("Point.line", "Point.line_low", "Point.line_high"))
ODD_DAY = Statement("95% band of a day five errors from all others", 0.95, BAND.fields)
SIZE = Statement("95% interval of a step", 0.95, ("Shift.difference", "Shift.low", "Shift.high"))
DAYS = Statement("the days among which a step is hold its own", 0.95, ("Shift.within",))
STEPLESS = mistake("no step, and one is found", 0.01, ("Trended.false_alarm", "Series.shifts"))
FOUND = Statement("a step is found beside the best test", 0.95, STEPLESS.fields)
# Power of the generalized likelihood ratio at 40 days, by errors of a day: at a limit that walks of
# any variance pass in 1%, without weekdays or a rise, by 8,000 drawings. A test that knows size and
# the middle half finds .80 and .98.
BEST = {3.0: 0.577, 4.0: 0.889}
WEEKLESS = mistake("no weekdays, and some are told", 0.05, ("Series.weekdays",))
FIRST = 20_000
_WEEK = np.array([0.0, 0.0, 0.0, 0.01, 0.03, 0.08, 0.06])


def flat(days: int, _: np.random.Generator) -> Floats:
    """The same share every day."""
    return np.full(days, 0.3)


def rising(days: int, _: np.random.Generator) -> Floats:
    """From 20% to 40%."""
    return np.linspace(0.2, 0.4, days)


def walking(days: int, chance: np.random.Generator) -> Floats:
    """A walk of half a point a day."""
    walk: Floats = np.clip(0.3 + np.cumsum(chance.normal(0, 0.005, days)), 0.0, 1.0)
    return walk


def seasonal(days: int, chance: np.random.Generator) -> Floats:
    """Rising, with weekdays that add up in log odds, so that they grow with the level."""
    odds = np.log(1 / 3) + np.linspace(0, 0.9, days) + np.resize(6 * _WEEK, days)
    season: Floats = 1 / (1 + np.exp(-odds - chance.normal(0, 0.02, days)))
    return season


def stepping(days: int, chance: np.random.Generator) -> Floats:
    """One step of 15 points, and weekdays."""
    level = 0.2 + np.resize(_WEEK, days)
    level[chance.integers(10, days - 10) :] += 0.15
    return level


def everything(days: int, _: np.random.Generator) -> Floats:
    """Rising from 20% to 40%, with 5 points more at weekends, and 8 from day 80 on."""
    place = np.arange(days)
    level: Floats = np.linspace(0.2, 0.4, days) + 0.05 * (place % 7 >= 5) + 0.08 * (place >= 80)
    return level


def estimate_one_day_per_person(
    truth: Floats, people: int, epsilon: float, chance: np.random.Generator
) -> tuple[Floats, Floats]:
    """Per day an estimate of the share and its variance: each person reports on one of the days."""
    mechanism = build("rr", epsilon=epsilon)
    days = len(truth)
    reports = chance.multinomial(people, np.full(days, 1 / days))
    points = []
    for share, number in zip(truth.tolist(), reports.tolist(), strict=True):
        true_counts = int(chance.binomial(number, share))
        totals = draw(mechanism, [0, 1], [number - true_counts, true_counts], chance)
        points.append(joined_shares([Followed([(mechanism, totals)], [1])])[0])
    array = np.array([point.estimate for point in points])
    return array, known_variances(points, reports.tolist(), (0.0, 1.0))


def _lined(
    panel: Panel, days: int, people: int, epsilon: float, chance: np.random.Generator
) -> Iterator[Counted]:
    truth = panel(days, chance)
    estimates, variances = estimate_one_day_per_person(truth, people, epsilon, chance)
    line = line_through(range(FIRST, FIRST + days), estimates, variances, 0.95)
    yield BAND, int(((line.low <= truth) & (truth <= line.high)).sum()), days
    if panel is not stepping:
        yield STEPLESS, bool(line.steps), 1
    if panel in {flat, rising, walking}:
        yield WEEKLESS, bool(line.weekdays), 1
    if panel is flat:
        odd = truth.copy()
        odd[days // 2] += 5 * variances[days // 2] ** 0.5
        estimates[days // 2] += odd[days // 2] - truth[days // 2]
        line = line_through(range(FIRST, FIRST + days), estimates, variances, 0.95)
        yield ODD_DAY, bool(line.low[days // 2] <= odd[days // 2] <= line.high[days // 2]), 1
    if panel is stepping:
        moves = np.diff(truth - np.resize(_WEEK, days))
        place = int(np.argmax(moves)) + 1
        for step in line.steps[:1]:
            yield SIZE, step.low <= 0.15 <= step.high, 1
            yield DAYS, step.first <= place <= step.last, 1


def _stepped(size: float, chance: np.random.Generator) -> Iterator[Counted]:
    """A step of so many errors of a day, somewhere in the middle half of 40 days."""
    estimates = chance.normal(0, 1, 40)
    estimates[chance.integers(10, 30) :] += size
    line = line_through(range(FIRST, FIRST + 40), estimates, np.ones(40), 0.95)
    yield FOUND, bool(line.steps), BEST[size]


SETTINGS: Sequence[Setting] = [
    *(
        Setting(f"a step of {size:g} errors of a day, 40 days", 100, partial(_stepped, size))
        for size in BEST
    ),
    *(
        Setting(
            f"{panel.__name__}, {days} days, {people:,} people once, epsilon {epsilon:g}",
            25,
            partial(_lined, panel, days, people, epsilon),
        )
        for panel, days, people, epsilon in (
            (flat, 60, 100_000, 1.0),
            (rising, 128, 100_000, 1.0),
            (walking, 60, 1_000_000, 2.0),
            (seasonal, 90, 1_000_000, 2.0),
            (stepping, 60, 1_000_000, 2.0),
        )
    ),
]
