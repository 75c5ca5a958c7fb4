"""Listed values and ranges: what was picked for its size, what stands out, in which order."""

from collections.abc import Iterator, Sequence
from functools import partial
from math import prod

import numpy as np

from hubbub.analysis.answer import Answer, ValueAnswer
from hubbub.analysis.answering import answer_tiers
from hubbub.analysis.comparisons.order_confidence import top
from hubbub.analysis.families import draw, draw_epochs, family_for
from hubbub.mechanisms import AnyMechanism, Totals, build
from hubbub.mechanisms.pairs_of_parts import PairedParts
from tests.statistics.calibration.shapes import Shape, built, equal, sure, two_levels, zipf
from tests.statistics.calibration.statement import Counted, Setting, Statement, mistake

ENDS = ("ValueAnswer.low", "ValueAnswer.high")
EVERY = Statement("95% interval of every row", 0.95, ENDS)
FIRST = Statement("95% interval of the first row", 0.95, (*ENDS, "ValueAnswer.rank"))
TEN = Statement("95% interval of the first ten rows", 0.95, (*ENDS, "ValueAnswer.rank"))
STANDING = Statement("95% interval of what stands out", 0.95, (*ENDS, "ValueAnswer.detected"))
ABOVE = Statement("what stands out has an interval above 0", 1.0, ("ValueAnswer.detected",))
FALSE = mistake("of what stands out, the share that nobody holds", 0.05, ("ValueAnswer.detected",))
ALONE = mistake("a value that nobody holds stands out", 0.05, ("ValueAnswer.detected",))
WIDE = mistake(
    "an estimate is 2 standard errors off",
    0.05,
    ("ValueAnswer.estimate", "ValueAnswer.share", "ValueAnswer.stderr"),
)
ABOVE_TRUTH = mistake(
    "an estimate is above the truth", 0.5, ("ValueAnswer.estimate", "ValueAnswer.share")
)
BELOW_TRUTH = mistake("an estimate is below the truth", 0.5, ABOVE_TRUTH.fields)
INSIDE = Statement("`consistent` is inside its interval", 1.0, ("ValueAnswer.consistent",))
SHARP = Statement("a row that is apart from others as narrow as it may be", 0.87, ENDS)
SPENT = Statement("a 95% interval misses in 3% at least", 0.03, ENDS)
AHEAD = mistake("95% sure that it is ahead, and it is not", 0.05, ("TopValue.ahead_confidence",))
MEMBERS = mistake("95% sure of the first three, and wrong", 0.05, ("TopList.set_confidence",))
ORDER = mistake("95% sure of their order, and wrong", 0.05, ("TopList.order_confidence",))
ODD = mistake("honest reports called odd (p <= .05)", 0.05, ("Estimated.honest_p_value",))
FINDING = mistake("a finding against honest reports", 0.0, ("Estimated.findings",))

LIST_CASES: Sequence[tuple[str, float, int, int, Shape, str]] = [
    ("unary.oue", 1.0, 1000, 6000, equal, "equal"),
    ("unary.oue", 1.0, 1000, 6000, zipf, "Zipf"),
    ("unary.oue", 1.0, 100, 10_000, equal, "equal"),
    ("unary.oue", 2.0, 128, 10_000, sure(15), "15 sure"),
    ("unary.oue", 2.0, 128, 10_000, zipf, "Zipf"),
    ("grr", 1.0, 16, 1000, zipf, "Zipf"),
    ("grr", 2.0, 16, 100_000, equal, "equal"),
    ("grr", 4.0, 64, 100, sure(1), "1 sure"),
    ("subset", 4.0, 100, 500, zipf, "Zipf"),
    ("hadamard", 4.0, 100, 500, equal, "equal"),
    ("unary.oue", 8.0, 128, 100, zipf, "Zipf"),
    ("unary.oue", 8.0, 128, 300, equal, "equal"),
    ("unary.oue", 8.0, 16, 100, sure(1), "1 sure"),
    ("rr", 1.0, 2, 1000, equal, "equal"),
    ("unary.oue", 1.0, 16, 1_000_000, two_levels, "two levels"),
    ("unary.oue", 2.0, 10_000, 20_000, two_levels, "two levels"),
    ("hadamard", 1.0, 1000, 1_000_000, two_levels, "two levels"),
    ("projective", 2.0, 300, 50_000, two_levels, "two levels"),
    ("subset", 1.0, 64, 200_000, two_levels, "two levels"),
    ("unary.sue", 3.0, 500, 5000, sure(40), "40 sure"),
    ("grr", 3.0, 64, 1_000_000, zipf, "Zipf"),
    ("unary.oue", 1.0, 1000, 1000, sure(1), "1 sure"),
    ("grr", 8.0, 10, 77, zipf, "Zipf"),
    ("grr", 5.0, 8, 25, zipf, "Zipf"),
]


def judge_rows(values: Sequence[ValueAnswer], truth: Sequence[float]) -> Iterator[Counted]:
    """Of rows beside their truth: intervals by rank, and what stands out."""
    rows = sorted(zip(values, truth, strict=True), key=lambda row: row[0].rank or 0)
    holds = [row.low <= true <= row.high for row, true in rows]
    for statement, first in ((FIRST, 1), (TEN, 10), (EVERY, len(rows))):
        yield statement, sum(holds[:first]), len(holds[:first])
    yield from flags(values, truth)


def flags(values: Sequence[ValueAnswer], truth: Sequence[float]) -> Iterator[Counted]:
    """Of rows beside their truth: what stands out."""
    standing = [(value, true) for value, true in zip(values, truth, strict=True) if value.detected]
    total = sum(row.low <= true <= row.high for row, true in standing)
    if standing:  # a false coverage rate is a list's, as the false discovery rate is
        yield STANDING, total / len(standing), 1
    yield ABOVE, sum(row.low > 0 for row, _ in standing), len(standing)
    yield FALSE, sum(not true for _, true in standing) / max(len(standing), 1), 1


def _answered(
    mechanism: AnyMechanism, counts: Sequence[int], chance: np.random.Generator
) -> tuple[Answer, float]:
    """An answer over listed values, and how plausible its totals are."""
    totals = draw(mechanism, range(len(counts)), counts, chance)
    names = [str(value) for value in range(len(counts))]
    tiers = [(mechanism, totals)]
    return answer_tiers(tiers, names), family_for(mechanism).plausibility(tiers).p_value


def _list(
    mechanism: AnyMechanism, counts: Sequence[int], chance: np.random.Generator
) -> Iterator[Counted]:
    answer, p_value = _answered(mechanism, counts, chance)
    yield from judge_rows(answer.values, counts)
    inside = [
        value.low - 1e-6 <= value.consistent <= value.high + 1e-6
        for value in answer.values
        if value.consistent is not None
    ]
    yield INSIDE, sum(inside), len(inside)
    yield ODD, p_value <= 0.05, 1
    yield FINDING, p_value <= 1e-6, 1


def _requested_value(
    mechanism: AnyMechanism, counts: Sequence[int], chance: np.random.Generator
) -> Iterator[Counted]:
    """One value that was asked for, whatever it came to."""
    row = _answered(mechanism, counts, chance)[0].values[1]
    off = row.estimate - counts[1]
    yield WIDE, abs(off) > 2 * row.stderr, 1
    yield ABOVE_TRUTH, off > 0, 1
    yield BELOW_TRUTH, off < 0, 1


def _alone(
    mechanism: AnyMechanism, counts: Sequence[int], chance: np.random.Generator
) -> Iterator[Counted]:
    values = _answered(mechanism, counts, chance)[0].values
    absent = [value.detected for value, true in zip(values, counts, strict=True) if not true]
    yield ALONE, sum(map(bool, absent)), len(absent)


def _ordered(
    mechanism: AnyMechanism, counts: Sequence[int], chance: np.random.Generator
) -> Iterator[Counted]:
    against = family_for(mechanism).correlation(mechanism)
    result = top(_answered(mechanism, counts, chance)[0], 4, against)
    true = [counts[int(value.value.value)] for value in result.values]
    best = sorted(counts, reverse=True)
    for row, here, there in zip(result.values[:3], true[:3], true[1:], strict=True):
        yield AHEAD, (row.ahead_confidence or 0) >= 0.95 and here < there, 1
    three = top(_answered(mechanism, counts, chance)[0], 3, against)
    true = [counts[int(value.value.value)] for value in three.values]
    yield MEMBERS, three.set_confidence >= 0.95 and sorted(true, reverse=True) != best[:3], 1
    yield ORDER, three.order_confidence >= 0.95 and true != best[:3], 1


def _peaks(
    mechanism: AnyMechanism, counts: Sequence[int], chance: np.random.Generator
) -> Iterator[Counted]:
    middles = [bucket + 0.5 for bucket in range(len(counts))]
    totals = draw(mechanism, middles, counts, chance)
    yield from flags(answer_tiers([(mechanism, totals)], None).values, counts)


def _one_part(
    mechanism: AnyMechanism, reports: int, chance: np.random.Generator
) -> Iterator[Counted]:
    """All numbers in the last of sixteen parts."""
    totals = draw(mechanism, [15.5], [reports], chance)
    values = answer_tiers([(mechanism, totals)], None).values
    yield from flags(values, [0] * 15 + [reports])


def _apart(
    mechanism: AnyMechanism, counts: Sequence[int], chance: np.random.Generator
) -> Iterator[Counted]:
    """The first rows, each of which all others are far from: chance alone moves none."""
    values = _answered(mechanism, counts, chance)[0].values[:4]
    plain = sum(2 * 1.96 * value.stderr for value in values)
    yield SHARP, plain, sum(value.high - value.low for value in values)


def _cells(mechanism: PairedParts, chance: np.random.Generator) -> Iterator[Counted]:
    """Of tables each cell, of which no two are alike."""
    values = range(prod(mechanism.sizes))
    counts = chance.multinomial(100_000, chance.dirichlet(np.full(len(values), 0.5))).tolist()
    true = np.array(counts) @ [mechanism.row(value) for value in values]
    parts = [f"{part}={n}" for part, size in enumerate(mechanism.sizes) for n in range(size)]
    answer = answer_tiers([(mechanism, draw(mechanism, values, counts, chance))], parts)
    rows = list(zip(answer.values, true, strict=True))
    holds = sum(row.low <= cell <= row.high for row, cell in rows)
    yield EVERY, holds, len(rows)
    clear = [(row, cell) for row, cell in rows if cell > 8 * row.stderr]
    yield SPENT, sum(not row.low <= cell <= row.high for row, cell in clear), len(clear)


def _repeat(
    mechanism: AnyMechanism, counts: Sequence[int], chance: np.random.Generator
) -> Iterator[Counted]:
    """The same devices thirty times."""
    epochs = list(draw_epochs(mechanism, range(len(counts)), counts, 30, chance))
    cells = np.sum([epoch.cells for epoch in epochs], axis=0).tolist()
    totals, names = (
        Totals(cells=cells, reports=30 * sum(counts)),
        [str(value) for value in range(len(counts))],
    )
    values = answer_tiers([(mechanism, totals)], names, repeats=30).values
    yield from judge_rows(values, [30 * count for count in counts])


def _two_peaks(reports: int) -> list[int]:
    counts = [0] * 16
    counts[3], counts[10] = reports // 2, reports - reports // 2
    return counts


LASTING = build("long.unary", epsilon=4.0, permanent_epsilon=8.0, categories=100)

SETTINGS: Sequence[Setting] = [
    *(
        Setting(
            f"{name} {epsilon:g}, {size:,} values, {people:,} reports, {label}",
            40 if size >= 1000 else 120,
            partial(_list, built(name, epsilon, size), shape(size, people)),
        )
        for name, epsilon, size, people, shape, label in LIST_CASES
    ),
    *(
        Setting(
            f"{name} {epsilon:g}, {size} values, {people:,} reports, all apart",
            60,
            partial(_apart, built(name, epsilon, size), zipf(size, people)),
        )
        for name, epsilon, size, people in (
            ("unary.oue", 2.0, 128, 200_000),
            ("hadamard", 1.0, 1000, 1_000_000),
            ("grr", 6.0, 20, 20_000),
        )
    ),
    Setting(
        "pairs 4, three parts of four to six values, 100,000 reports",
        20,
        partial(_cells, PairedParts(4.0, (4, 5, 6))),
    ),
    *(
        Setting(
            f"{name} {epsilon:g}, 8 values, 20,000 reports",
            400,
            partial(_requested_value, built(name, epsilon, 8), zipf(8, 20_000)),
        )
        for name, epsilon in (
            ("grr", 0.5),
            ("unary.oue", 0.5),
            ("unary.sue", 2.0),
            ("subset", 0.5),
            ("hadamard", 2.0),
            ("projective", 2.0),
        )
    ),
    *(
        Setting(
            f"unary.oue 2, {sure_ones} sure beside {absent} absent",
            60,
            partial(
                _alone,
                built("unary.oue", 2.0, sure_ones + absent),
                [2000] * sure_ones + [0] * absent,
            ),
        )
        for sure_ones in (1, 9, 100)
        for absent in (1, 10, 100)
    ),
    *(
        Setting(f"{name} 1, six values near each other", 400, partial(_ordered, mechanism, counts))
        for name, counts in (
            ("grr", [3000, 2700, 2500, 1000, 500, 300]),
            ("unary.oue", [3000, 3000, 2990, 2980, 1000, 0]),
        )
        for mechanism in (built(name, 1.0, 6),)
    ),
    *(
        Setting(
            f"buckets 8, 16 ranges, {reports:,} reports in one",
            60,
            partial(
                _one_part,
                build("buckets", epsilon=8.0, low=0.0, high=16.0, buckets=16, sampled=3),
                reports,
            ),
        )
        for reports in (100, 1000)
    ),
    *(
        Setting(
            f"{name} 4/8, 100 values, {label}, 30 epochs", 60, partial(_repeat, mechanism, counts)
        )
        for name, label, mechanism, counts in (
            ("long.unary", "150 devices, Zipf", LASTING, zipf(100, 150)),
            ("long.unary", "1,000 at one", LASTING, sure(1)(100, 1000)),
        )
    ),
    *(
        Setting(
            f"{name} {epsilon:g}, 16 ranges, {reports:,} reports, two peaks",
            100,
            partial(
                _peaks,
                build(name, epsilon=epsilon, buckets=16, low=0.0, high=16.0),
                _two_peaks(reports),
            ),
        )
        for name, epsilon, reports in (
            ("wave", 8.0, 100),
            ("wave", 8.0, 1000),
            ("wave", 8.0, 10_000),
            ("wave", 3.0, 1000),
            ("haar", 8.0, 1000),
            ("haar", 2.0, 30_000),
        )
    ),
]
