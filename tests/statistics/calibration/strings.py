"""Strings: RAPPOR decoded, and sketches with what collides in them."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import count, product

import numpy as np

from hubbub.analysis.answering import answer_tiers
from hubbub.analysis.families import draw
from hubbub.analysis.strings.rappor_decoding import decode, decode_counts
from hubbub.analysis.strings.tree_search import detectable_share, shown_name
from hubbub.analysis.uncertainty.intervals import stand_out
from hubbub.mechanisms import AnyMechanism, KeyedBits, build, tally
from hubbub.mechanisms.tree import PrefixTree
from tests.statistics.calibration.listed import ENDS, FALSE, STANDING, flags
from tests.statistics.calibration.shapes import zipf
from tests.statistics.calibration.statement import Counted, Setting, Statement, mistake
from tests.support.simulated_rappor import Setting as Collection
from tests.support.simulated_rappor import simulate

CANDIDATE = Statement("95% interval of a candidate", 0.95, ENDS)
MISFIT = mistake(
    "all is listed, and still the strings do not explain the totals (p <= .05)",
    0.05,
    ("Estimated.fit_p_value",),
)
OTHERS = Statement(
    "95% interval of what was not listed",
    0.95,
    ("Estimated.others", "Mean.estimate", "Mean.stderr", "Mean.low", "Mean.high"),
)
UNFOUND = Statement("95% interval of what was not found", 0.95, OTHERS.fields)
MARKS = Statement("strings marked beside Benjamini-Hochberg's", 0.95, ("ValueAnswer.detected",))
RATES = [
    (
        mistake(
            f"of what stands out at {rate:.0%}, the share that nobody holds", rate, FALSE.fields
        ),
        rate,
    )
    for rate in (0.01, 0.05, 0.2)
]

# As published, with every string a candidate: 100 of them and 64 cohorts of 32 bits.
LISTED = Collection(32, 1, 64, 0.25, 0.75, 0.5, "zipf", 100, 100, 0, 100_000)
UNLISTED = Collection(32, 1, 64, 0.25, 0.75, 0.5, "zipf", 100, 90, 10, 100_000)
MANY = Collection(128, 2, 64, 0.25, 0.75, 0.5, "zipf", 500, 450, 4550, 200_000)


def _decoded(setting: Collection, repeats: int, chance: np.random.Generator) -> Iterator[Counted]:
    simulated = simulate(setting, chance, repeats)
    decoding = decode_counts(simulated.collection, simulated.places, repeats=repeats)
    truth = simulated.truth
    holds = (decoding.low <= truth) & (truth <= decoding.high)
    standing = decoding.detected
    yield CANDIDATE, float(holds.sum()), len(holds)
    yield STANDING, float(holds[standing].mean()), 1
    yield FALSE, float((truth[standing] == 0).sum()) / max(float(standing.sum()), 1), 1
    if decoding.misfit and setting.listed == setting.strings:
        yield MISFIT, decoding.misfit[1] <= 0.05, 1
    if decoding.others and repeats == 1:
        estimate, stderr = decoding.others
        yield OTHERS, abs(estimate - setting.reports + int(truth.sum())) <= 1.96 * stderr, 1


def _asked_rates(
    mechanism: AnyMechanism,
    names: Sequence[str],
    counts: Sequence[int],
    chance: np.random.Generator,
) -> Iterator[Counted]:
    """Strings of devices that randomize as shipped, decoded at three rates; the first are held."""
    coins = KeyedBits(chance.bytes(32))
    strings = (name for name, people in zip(names, counts, strict=True) for _ in range(people))
    totals = tally(mechanism.layout, [mechanism.randomize(name, coins) for name in strings])
    for statement, rate in RATES:
        decoding = decode(mechanism, totals, names, rate)  # type: ignore[arg-type]
        absent = decoding.detected & (np.array(counts) == 0)
        yield statement, float(absent.sum()) / max(float(decoding.detected.sum()), 1), 1
        best = stand_out(decoding.p_values, rate)
        yield MARKS, float((decoding.detected & best).sum()), float(best.sum())


def _collided(
    mechanism: AnyMechanism,
    number: int,
    people: int,
    numbers: Iterator[int],
    chance: np.random.Generator,
) -> Iterator[Counted]:
    """Fifty strings are held, the first by a fifth of all. Others collide in each run."""
    run = next(numbers)
    strings = [f"{run}-{place}.example" for place in range(number)]
    counts = zipf(50, people)
    totals = draw(mechanism, strings[:50], counts, chance)
    values = answer_tiers([(mechanism, totals)], None, strings).values
    truth = counts + [0] * (number - 50)
    holds = [value.low <= true <= value.high for value, true in zip(values, truth, strict=True)]
    yield CANDIDATE, sum(holds), len(holds)
    yield from flags(values, truth)


def _near_the_cut(tree: PrefixTree, chance: np.random.Generator) -> Iterator[Counted]:
    """Strings of three beginnings, most of which are found or not by chance."""
    letters, reports = list("aeinorst"), 20_000
    least = detectable_share(tree, reports) * reports
    ends = ["".join(pair) for pair in product(letters, letters)]
    strings = [
        f"{''.join(chance.choice(letters, 3))}{number}{end}"
        for number in range(3)
        for end in chance.choice(ends, 20, replace=False)
    ]
    counts = (least * chance.uniform(0.5, 1.1, len(strings))).astype(int).tolist()
    answer = answer_tiers([(tree, draw(tree, strings, counts, chance))], None)
    true = {shown_name(tree, string): count for string, count in zip(strings, counts, strict=True)}
    others = sum(counts) - sum(true.get(value.value, 0) for value in answer.values)
    assert answer.others is not None
    yield UNFOUND, answer.others.low <= others <= answer.others.high, 1


SETTINGS: Sequence[Setting] = [
    *(
        Setting(
            f"rappor 32 x 64, all 100 listed, {repeats} epochs",
            40,
            partial(_decoded, LISTED, repeats),
        )
        for repeats in (1, 7)
    ),
    Setting("rappor 32 x 64, 90 of 100 listed", 60, partial(_decoded, UNLISTED, 1)),
    Setting(
        "rappor 16 x 8, as devices randomize, 20 of 100 held",
        20,
        partial(
            _asked_rates,
            build("rappor", f=0.25, p=0.25, q=0.75, bits=16, hashes=2, cohorts=8),
            [f"{place}.example" for place in range(100)],
            [*zipf(20, 4000), *[0] * 80],
        ),
    ),
    Setting(
        "tree 8, 60 strings near the cut",
        12,
        partial(_near_the_cut, PrefixTree(epsilon=8.0, bits=44, cells=4096, hashes=2)),
    ),
    Setting("rappor 128 x 64, 5,000 candidates", 10, partial(_decoded, MANY, 1)),
    *(
        Setting(
            f"{name} {epsilon:g}, {hashes} x {width}, {number} candidates, {people:,} reports",
            60,
            partial(
                _collided,
                build(name, epsilon=epsilon, hashes=hashes, width=width),
                number,
                people,
                count(),
            ),
        )
        for name, epsilon, hashes, width, number, people in (
            ("cms", 4.0, 16, 128, 500, 100_000),
            ("cms", 2.0, 64, 256, 256, 50_000),
            ("hcms", 2.0, 64, 256, 256, 50_000),
            ("local_hash", 7.0, 4, 4096, 500, 100_000),
        )
    ),
]
