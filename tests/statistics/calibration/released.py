"""Releases: published for ever, of lies that repeat and of peaks."""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from hubbub.analysis.families import draw, draw_epochs
from hubbub.catalog import Release
from hubbub.mechanisms import AnyMechanism, Totals, build
from hubbub.privacy.central_releases import release
from tests.statistics.calibration.shapes import built
from tests.statistics.calibration.statement import Counted, Setting, Statement

COUNT = Statement(
    "95% interval of a count released",
    0.95,
    ("Released.estimate", "Released.stderr", "Released.low", "Released.high"),
)
BUCKET = Statement(
    "95% interval of a histogram's range released", 0.95, ("Released.low", "Released.high")
)
TRUE_COUNTS = [6000, 4000, 3000, 2500, 2000, 1500, 1000, 0]
LAPLACE = Release("laplace", 1.0)


def _count(mechanism: AnyMechanism, epochs: int, chance: np.random.Generator) -> Iterator[Counted]:
    drawn = list(draw_epochs(mechanism, range(len(TRUE_COUNTS)), TRUE_COUNTS, epochs, chance))
    cells = np.sum([epoch_totals.cells for epoch_totals in drawn], axis=0).tolist()
    totals = Totals(cells=cells, reports=epochs * sum(TRUE_COUNTS))
    names = [str(value) for value in range(len(TRUE_COUNTS))]
    [row] = release([(mechanism, totals)], names, "count", "0", policy=LAPLACE, reports_each=epochs)
    if row.low is None or row.high is None:
        raise AssertionError("a count has an interval")
    yield COUNT, row.low <= epochs * TRUE_COUNTS[0] <= row.high, 1


def _peak(
    mechanism: AnyMechanism, counts: list[int], chance: np.random.Generator
) -> Iterator[Counted]:
    middles = [bucket + 0.5 for bucket in range(len(counts))]
    totals = draw(mechanism, middles, counts, chance)
    product = release([(mechanism, totals)], None, "histogram", "", policy=LAPLACE, reports_each=1)
    row = product[counts.index(max(counts))]
    if row.low is None or row.high is None:
        raise AssertionError("a range has an interval")
    yield BUCKET, row.low <= max(counts) <= row.high, 1


def _few(
    mechanism: AnyMechanism, policy: Release, counts: list[int], chance: np.random.Generator
) -> Iterator[Counted]:
    """Where hardly a report lies, and noise is hardly a report."""
    totals = draw(mechanism, range(len(counts)), counts, chance)
    names = [str(value) for value in range(len(counts))]
    product = release([(mechanism, totals)], names, "histogram", "", policy=policy, reports_each=1)
    for row, true in zip(product, counts, strict=True):
        if row.low is None or row.high is None:
            raise AssertionError("a count has an interval")
        yield COUNT, row.low <= true <= row.high, 1


SETTINGS: Sequence[Setting] = [
    *(
        Setting(
            f"{name} {epsilon:g}, {sum(counts)} reports, released with {policy.mechanism} "
            f"{policy.epsilon:g}",
            60,
            partial(_few, built(name, epsilon, len(counts)), policy, counts),
        )
        for name, epsilon, policy in (
            ("grr", 8.0, Release("laplace", 8.0)),
            ("grr", 8.0, Release("laplace", 1.0)),
            ("grr", 8.0, Release("gaussian", 4.0, 1e-6)),
            ("unary.oue", 6.0, Release("laplace", 0.1)),
        )
        for counts in ([50, 20, 12, 8, 5, 3, 1, 1],)
    ),
    *(
        Setting(
            f"{name} 1/2, 20,000 devices, {epochs} epochs",
            100,
            partial(_count, build(name, epsilon=1.0, permanent_epsilon=2.0, categories=8), epochs),
        )
        for name in ("long.grr", "long.unary")
        for epochs in (1, 7, 30)
    ),
    *(
        Setting(
            f"{name} {epsilon:g}, 20,000 reports",
            100,
            partial(_count, built(name, epsilon, 8), 1),
        )
        for name, epsilon in (("unary.oue", 1.0), ("grr", 2.0), ("hadamard", 1.0))
    ),
    *(
        Setting(
            f"{name} {epsilon:g}, 1,000 reports, {label}",
            200,
            partial(_peak, build(name, epsilon=epsilon, buckets=8, low=0.0, high=8.0), counts),
        )
        for name, epsilon in (("wave", 1.0), ("wave", 4.0), ("haar", 1.0))
        for label, counts in (
            ("all in one range", [0, 0, 0, 1000, 0, 0, 0, 0]),
            ("half in each of two", [0, 500, 0, 0, 0, 500, 0, 0]),
        )
    ),
]
