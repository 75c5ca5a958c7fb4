"""Percentiles of numbers in parts, and shares below a number, over shapes that try both.

A percentile is asked for at the edges of parts, where its interval holds no more than its level:
the parts beside the last edges that it may be at, which it always has, are left out.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt

from hubbub.analysis.families import draw
from hubbub.analysis.percentiles import percentile_shifts, percentiles_of, shares_below
from hubbub.analysis.ranks import Ranks, ranks_of
from hubbub.catalog.crowds.crowd import noise_of
from hubbub.mechanisms import AnyMechanism, Totals, build
from hubbub.sealing.dummy_laws import CountNoise
from tests.statistics.calibration.hidden import noisy_totals
from tests.statistics.calibration.statement import Counted, Setting, Statement, needed_width

Floats = npt.NDArray[np.float64]

PERCENTILE = Statement(
    "95% interval of a percentile",
    0.95,
    (
        "Estimated.percentiles",
        "Percentile.percentile",
        "Percentile.estimate",
        "Percentile.low",
        "Percentile.high",
        "Percentile.reaches",
        "Point.reaches",  # that of the percentile of an epoch
    ),
)
BELOW = Statement(
    "95% interval of the share below a number",
    0.95,
    (
        "Estimated.below",
        "ShareBelow.below",
        "ShareBelow.share",
        "ShareBelow.low",
        "ShareBelow.high",
    ),
)
NARROW = Statement("a percentile as narrow as its errors ask for", 0.87, PERCENTILE.fields)
NARROW_BELOW = Statement("a share below as narrow as its errors ask for", 0.87, BELOW.fields)
# A fit leaks over an edge: for that its intervals are up to 1.5 times as wide.
WAVE = Statement("a fit's interval as narrow as its errors ask for", 0.66, BELOW.fields)
SHIFT = Statement(
    "95% interval of a percentile's shift",
    0.95,
    (
        "Compared.percentiles",
        *(
            f"PercentileShift.{field}"
            for field in (
                "percentile",
                "before",
                "after",
                "difference",
                "low",
                "high",
                "moved",
                "reaches",
            )
        ),
    ),
)


def _places(parts: int) -> Floats:
    return (np.arange(parts) + 0.5) / parts


def _few(parts: int, places: Sequence[float], shares: Sequence[float]) -> Floats:
    counts = np.zeros(parts)
    counts[[int(place * parts) for place in places]] = shares
    return counts


SHAPES: Final[Mapping[str, Callable[[int], Floats]]] = {
    "smooth": lambda parts: _places(parts) ** 1.5 * (1 - _places(parts)) ** 4,
    "heavy-tailed": lambda parts: 1 / (_places(parts) + 0.02) ** 2,
    "bimodal": lambda parts: (
        np.exp(-(((_places(parts) - 0.25) / 0.05) ** 2))
        + 0.6 * np.exp(-(((_places(parts) - 0.7) / 0.08) ** 2))
    ),
    "spiky": lambda parts: _few(parts, (0.05, 0.3, 0.36, 0.8), (0.27, 0.33, 0.21, 0.19)),
    "discrete": lambda parts: _few(parts, (0.0, 0.2, 0.4, 0.6, 0.8), (0.31, 0.22, 0.23, 0.14, 0.1)),
}
"""How numbers lie over the parts of a range; shares are worked out of them."""

ENDS: Final[Mapping[str, Callable[[int], Floats]]] = {
    "all first": lambda parts: _few(parts, (0.0,), (1.0,)),
    "all last": lambda parts: _few(parts, (1 - 1 / parts,), (1.0,)),
    "lowest tenth": lambda parts: (_places(parts) < 0.1).astype(np.float64),
    "peak first": lambda parts: np.where(_places(parts) * parts < 1, 0.95, 0.05 / (parts - 1)),
}
"""The same, with all numbers near one end of the range."""


def draw_ranks(
    mechanism: AnyMechanism,
    true_counts: Floats,
    chance: np.random.Generator,
    dummies: int | CountNoise = 0,
) -> Ranks:
    """The ranks of those who reported, from totals of their exact law, over edges 0, 1, 2, ...

    dummies: a fixed number, or the law of that of each value.
    """
    numeric = mechanism.VALUES == "numbers"
    values = (
        [place + 0.5 for place in range(len(true_counts))] if numeric else range(len(true_counts))
    )
    totals = draw(mechanism, values, true_counts.astype(int).tolist(), chance)
    if isinstance(dummies, CountNoise):
        totals = noisy_totals(dummies, totals, chance)
    elif dummies:
        more = chance.multinomial(dummies, np.full(len(totals.cells), 1 / len(totals.cells)))
        cells = (np.array(totals.cells) + more).tolist()
        totals = Totals(cells=cells, reports=totals.reports, dummies=dummies)
    ranks = ranks_of([(mechanism, totals)], range(len(true_counts) + 1))
    assert ranks is not None
    return ranks


def tried_edges(shares: Floats) -> dict[int, float]:
    """By edge the share below it, of those nearest to what people ask for."""
    shares_below = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
    edges = {int(np.argmin(np.abs(shares - share))) for share in shares_below}
    return {edge: float(shares[edge]) for edge in sorted(edges) if 0.01 < shares[edge] < 0.99}


def _tried(
    mechanism: AnyMechanism,
    of_shape: Floats,
    reports: int,
    dummies: int | CountNoise,
    chance: np.random.Generator,
) -> Iterator[Counted]:
    true_counts = chance.multinomial(reports, of_shape / of_shape.sum()).astype(np.float64)
    shares = np.append(0.0, np.cumsum(true_counts)) / reports
    ranks = draw_ranks(mechanism, true_counts, chance, dummies)
    edges, by_wave = tried_edges(shares), mechanism.NAME == "wave"
    for edge, share in edges.items():
        [row] = percentiles_of(ranks, [100 * share], 0.95)
        # Nobody has a number between edges with the same share below: any of them is right.
        same = np.flatnonzero(np.isclose(shares, share, rtol=0, atol=1e-12))
        yield PERCENTILE, row.low < same[-1] and row.high > same[0], 1
        # An interval of a percentile ends at edges: a part further on either side, at most.
        yield WAVE if by_wave else NARROW, needed_width(row.estimate - edge) + 2, row.high - row.low
        [below] = shares_below(ranks, [float(edge)], 0.95)
        yield BELOW, below.low <= share <= below.high, 1
        width = below.high - below.low
        yield WAVE if by_wave else NARROW_BELOW, needed_width(below.share - share), width
    again = draw_ranks(mechanism, true_counts, chance, dummies)
    for shift in percentile_shifts(ranks, again, [100 * share for share in edges.values()], 0.95):
        yield SHIFT, shift.low <= 0 <= shift.high, 1


def _at_an_end(
    mechanism: AnyMechanism,
    of_shape: Floats,
    reports: int,
    percentile: float,
    chance: np.random.Generator,
) -> Iterator[Counted]:
    """One percentile, and the estimate that it has in any case inside its interval."""
    true_counts = chance.multinomial(reports, of_shape / of_shape.sum()).astype(np.float64)
    shares = np.append(0.0, np.cumsum(true_counts)) / reports
    [row] = percentiles_of(draw_ranks(mechanism, true_counts, chance), [percentile], 0.95)
    assert row.low <= row.estimate <= row.high
    yield PERCENTILE, shares[int(row.low)] <= percentile / 100 <= shares[int(row.high)], 1


def _build(name: str, epsilon: float, parts: int) -> AnyMechanism:
    if name in {"wave", "haar", "buckets"}:
        more = {"sampled": 4} if name == "buckets" else {}
        return build(name, epsilon=epsilon, low=0.0, high=float(parts), buckets=parts, **more)
    return build(name, epsilon=epsilon, categories=parts)


SETTINGS: Sequence[Setting] = (
    [
        Setting(
            f"percentiles, {name} {epsilon:g}, {parts} parts, {reports:,} reports, {shape}",
            runs,
            partial(_tried, _build(name, epsilon, parts), SHAPES[shape](parts), reports, dummies),
        )
        for place, (name, epsilon, parts, reports, dummies, runs) in enumerate(
            (
                *(("wave", epsilon, 32, 1000, 0, 40) for epsilon in (0.5, 1.0, 2.0, 4.0)),
                *(("wave", epsilon, 64, 30_000, 0, 20) for epsilon in (0.5, 4.0)),
                *(("wave", epsilon, 32, 1_000_000, 0, 20) for epsilon in (0.5, 4.0)),
                ("haar", 1.0, 32, 3000, 0, 40),
                ("haar", 0.5, 64, 1_000_000, 0, 40),
                ("haar", 2.0, 64, 1_000_000, 0, 40),
                ("grr", 6.0, 64, 1000, 2000, 50),  # of a crowd with dummies
                ("grr", 7.0, 64, 100_000, 4000, 50),
                ("grr", 8.0, 20, 1000, noise_of(4.04, 69) or 0, 50),  # at central epsilon 0.5
                ("grr", 8.0, 20, 100_000, noise_of(2.02, 36) or 0, 50),
                ("unary.oue", 1.0, 16, 20_000, 0, 50),
                ("subset", 2.0, 16, 20_000, 0, 50),
                ("buckets", 2.0, 16, 20_000, 0, 50),
            )
        )
        for shape in tuple(SHAPES)[place % 2 :: 2]
    ]
    + [
        Setting(
            "percentiles, haar 1, 64 parts, 30,000 reports, peak first",
            800,
            partial(_tried, _build("haar", 1.0, 64), ENDS["peak first"](64), 30_000, 0),
        )
    ]
    + [
        Setting(
            f"p{percentile:g}, {name} {epsilon:g}, {parts} parts, {reports:,} reports, {shape}",
            runs,
            partial(
                _at_an_end, _build(name, epsilon, parts), ENDS[shape](parts), reports, percentile
            ),
        )
        for name, epsilon, parts, reports, shape, percentile, runs in (
            ("unary.oue", 1.0, 64, 2000, "all first", 99.0, 60),
            ("unary.oue", 1.0, 64, 100_000, "all last", 1.0, 60),
            ("subset", 0.5, 32, 20_000, "all first", 99.0, 60),
            ("grr", 2.0, 100, 5000, "all first", 99.0, 60),
            ("wave", 2.0, 32, 300, "all first", 99.0, 60),
            ("wave", 2.0, 32, 300, "lowest tenth", 99.0, 10),
            ("wave", 1.0, 64, 10_000, "all last", 1.0, 30),
            ("haar", 2.0, 32, 3000, "all first", 99.0, 60),
            ("haar", 1.0, 64, 100_000, "all last", 1.0, 60),
        )
    ]
)
