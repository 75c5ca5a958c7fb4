"""Figures of a device's own past: conversions, numbers of actives, shares that came back, rates."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from hubbub.analysis.families import draw
from hubbub.analysis.families.joint_errors import Joint
from hubbub.analysis.funnels_retention_and_rates import (
    Figure,
    back_in_weeks,
    conversions,
    count_of,
    rate_of,
)
from hubbub.catalog.crowds.crowd import noise_of
from hubbub.mechanisms import AnyMechanism, Totals, build
from tests.statistics.calibration.hidden import noisy_totals
from tests.statistics.calibration.statement import Counted, Setting, Statement, needed_width

FIGURE = Statement(
    "95% interval of a figure",
    0.95,
    tuple(f"Figure.{name}" for name in ("low", "high", "estimate", "stderr")),
)
NARROW = Statement("a figure as narrow as its errors ask for", 0.87, FIGURE.fields)
Drawn = Callable[[AnyMechanism, Sequence[int], np.random.Generator], Totals]


def _figure_hits(
    figures: Sequence[Figure], truths: Sequence[float], *, is_bounded: bool = True
) -> Iterator[Counted]:
    """A figure without an upper end holds any truth above its low."""
    pairs = list(zip(figures, truths, strict=True))
    hits = sum(
        figure.low <= truth and (figure.high is None or truth <= figure.high)
        for figure, truth in pairs
    )
    yield FIGURE, hits, len(pairs)
    for figure, truth in pairs:
        if is_bounded and figure.estimate is not None and figure.high is not None:
            yield NARROW, needed_width(figure.estimate - truth), figure.high - figure.low


def _draw(mechanism: AnyMechanism, counts: Sequence[int], chance: np.random.Generator) -> Totals:
    return draw(mechanism, range(len(counts)), counts, chance)


def _funnel(
    mechanism: AnyMechanism,
    population: Sequence[float],
    people: int,
    how: tuple[Drawn, int],
    chance: np.random.Generator,
) -> Iterator[Counted]:
    """The same devices in all epochs, each as far as before. how: totals are drawn; and epochs."""
    drawn, epochs = how
    counts = chance.multinomial(people, population).tolist()
    every = [drawn(mechanism, counts, chance) for _ in range(epochs)]
    totals = every[0]
    if epochs > 1:
        cells = np.sum([own.cells for own in every], axis=0).tolist()
        totals = Totals(cells=cells, reports=sum(own.reports for own in every))
    joint = Joint([(mechanism, totals)], 1)
    reached = np.cumsum(population[::-1])[::-1]
    truths = [*(reached[1:] / reached[:-1]), reached[-1]][: len(population)]
    names = [str(step) for step in range(len(population))]
    yield from _figure_hits(conversions(joint, names, epochs, "", 0.95), truths)


def _tiers(chance: np.random.Generator) -> Iterator[Counted]:
    """Two tiers, of which the smaller epsilon has most of the devices."""
    population = [0.5, 0.3, 0.2]
    tiers = [
        (mechanism, _draw(mechanism, chance.multinomial(people, population).tolist(), chance))
        for mechanism, people in (
            (build("grr", epsilon=3.0, categories=3), 500),
            (build("grr", epsilon=1.0, categories=3), 4000),
        )
    ]
    figures = conversions(Joint(tiers, 1), "abc", 1, "", 0.95)
    yield from _figure_hits(figures, [0.5, 0.4, 0.2])


def _activity(
    mechanism: AnyMechanism, people: int, chance: np.random.Generator
) -> Iterator[Counted]:
    counts = chance.multinomial(people, [0.7, 0.2, 0.1]).tolist()
    joint = Joint([(mechanism, _draw(mechanism, counts, chance))], 1)
    figures = [
        count_of(joint, np.arange(3) >= first).figure(
            "", below="", dates="", reports=people, confidence=0.95
        )
        for first in (1, 2)
    ]
    yield from _figure_hits(figures, [sum(counts[1:]), counts[2]])


def _retention(
    mechanism: AnyMechanism, people: int, chance: np.random.Generator
) -> Iterator[Counted]:
    """Five weeks of new devices, of which 40% and 25% come back in the weeks after."""
    back, weeks = [0.4, 0.25], 5
    counts = np.zeros((weeks, 4), dtype=np.int64)
    counts[:, 3] = chance.poisson(people, weeks)
    for week in range(weeks):
        counts[week, 0] = chance.poisson(people)
        for later, share in enumerate(back, start=1):
            if week + later < weeks:
                counts[week + later, later] = chance.binomial(counts[week, 0], share)
    joints = {
        week: Joint([(mechanism, _draw(mechanism, row.tolist(), chance))], 1)
        for week, row in enumerate(counts)
    }
    dates = dict.fromkeys(joints, "")
    for by_cohort in (False, True):
        figures = list(back_in_weeks(joints, 2, dates, 0.95, by_cohort=by_cohort))
        every = [share for share, many in zip(back, (4, 3), strict=True) for _ in range(many)]
        yield from _figure_hits(figures, every if by_cohort else back)


def _rate(epsilon: float, people: int, chance: np.random.Generator) -> Iterator[Counted]:
    """One in five of some starts is a crash; every tenth device starts far more often."""
    most = 20
    # Answers of one pool share its error, so that an interval is right over pools.
    mechanism = build(
        "vector.codes",
        epsilon=epsilon,
        dimensions=2,
        words=64,
        books=256,
        max_length=most * 2**0.5,
        seed=f"{chance.integers(1 << 32)}",
    )
    started = np.minimum(chance.poisson(np.where(chance.random(people) < 0.1, 15, 5)), most)
    pairs = np.column_stack([chance.binomial(started, 0.2), started]).astype(np.float64)
    values, counts = np.unique(pairs, axis=0, return_counts=True)
    totals = draw(mechanism, values.tolist(), counts.tolist(), chance)
    figure = rate_of([(mechanism, totals)], 1).figure(
        "", below="", dates="", reports=people, confidence=0.95
    )
    # Of an unclear ratio no interval is bounded and holds as often (Gleser and Hwang 1987).
    yield from _figure_hits([figure], [0.2], is_bounded=epsilon > 1)


def _grr(epsilon: float, categories: int = 3) -> AnyMechanism:
    return build("grr", epsilon=epsilon, categories=categories)


_NOISE = noise_of(2.02, 36)
assert _NOISE
SETTINGS: Sequence[Setting] = [
    Setting(
        f"conversions, {name}",
        100,
        partial(_funnel, mechanism, population, people, (drawn, epochs)),
    )
    for name, mechanism, population, people, drawn, epochs in (
        ("grr 1, 3,000 devices", _grr(1.0), [0.5, 0.3, 0.2], 3000, _draw, 1),
        ("grr 8, 300 devices, 1% at the last", _grr(8.0), [0.8, 0.19, 0.01], 300, _draw, 1),
        ("grr 4, the same devices twice", _grr(4.0), [0.5, 0.3, 0.2], 1000, _draw, 2),
        ("grr 1, 200 devices, unclear", _grr(1.0), [0.9, 0.05, 0.05], 200, _draw, 1),
        (
            "unary.oue 1, 6 steps",
            build("unary.oue", epsilon=1.0, categories=6),
            [0.4, 0.2, 0.2, 0.1, 0.05, 0.05],
            10_000,
            _draw,
            1,
        ),
        (
            "grr 6, 300 of a hidden number",
            _grr(6.0),
            [0.5, 0.3, 0.2],
            300,
            lambda mechanism, counts, chance: noisy_totals(
                _NOISE, _draw(mechanism, counts, chance), chance
            ),
            1,
        ),
    )
] + [
    Setting("conversions, grr 3 and 1, two tiers", 100, _tiers),
    Setting("actives, grr 1, 7,000 reports", 200, partial(_activity, _grr(1.0), 7000)),
    Setting("retention, grr 1, 2,000 a week", 60, partial(_retention, _grr(1.0, 4), 2000)),
    Setting("retention, grr 8, 300 a week", 60, partial(_retention, _grr(8.0, 4), 300)),
    Setting("rate, vector.codes 4, 4,000 devices", 100, partial(_rate, 4.0, 4000)),
    Setting("rate, vector.codes 1, 1,000 devices, unclear", 100, partial(_rate, 1.0, 1000)),
]
