"""What answers say of themselves holds as often as they say: simulated, from the exact laws.

Fixed seeds. A coverage is compared with its claim less 4.9 of its own standard errors, so that a
true claim fails once in a million.
"""

from collections.abc import Callable, Iterator, Sequence
from math import sqrt

import numpy as np
import pytest

from hubbub.analysis import Answer, ValueAnswer, answer_tiers, changes, shares
from hubbub.analysis.decode import Decoded, decode_counts
from hubbub.catalog import Release
from hubbub.mechanisms import AnyMechanism, Totals, build
from hubbub.mechanisms.long_grr import LongitudinalGrr
from hubbub.privacy.draws import draw
from hubbub.privacy.releases import release
from hubbub.privacy.repeats import draw_epochs
from tests.simulated import Setting, simulate

Z = 4.9
LAPLACE = Release("laplace", 1.0)


def _at_least(claimed: float, runs: int) -> float:
    return claimed - Z * sqrt(claimed * (1 - claimed) / runs)


@pytest.mark.parametrize(
    ("name", "epsilons", "smaller", "share"),
    [
        ("rr", (4.0, 0.5), 0.2, 0.5),
        ("rr", (4.0, 0.5), 0.5, 0.5),
        ("rr", (8.0, 1.0), 0.5, 0.5),
        ("rr", (4.0, 0.5), 0.9, 0.1),
        ("grr", (4.0, 1.0), 0.5, 0.3),
        ("unary.oue", (4.0, 0.5), 0.2, 0.3),
        ("rr", (1.0, 0.25), 0.5, 0.5),
        ("rr", (8.0, 1.0), 0.98, 0.01),
        ("unary.oue", (8.0, 0.5), 0.98, 0.01),
    ],
)
def test_intervals_over_tiers_reckon_with_who_chose_which(
    name: str, epsilons: Sequence[float], smaller: float, share: float
) -> None:
    """The tier is chosen by a coin that does not look at the value; 95% of intervals hold."""
    chance = np.random.default_rng(31)
    runs, people, categories = 1000, 10_000, 2 if name == "rr" else 4
    values = list(range(categories))
    held = [round(people * share), people - round(people * share)] + [0] * (categories - 2)
    mechanisms = [_build(name, epsilon, categories) for epsilon in epsilons]
    covered = 0
    for _ in range(runs):
        few = chance.multivariate_hypergeometric(held, chance.binomial(people, smaller))
        parts = (np.array(held) - few, few)
        tiers = [
            (mechanism, draw(mechanism, values, part.tolist(), chance))
            for mechanism, part in zip(mechanisms, parts, strict=True)
        ]
        found = answer_tiers(tiers, [str(value) for value in values]).values[0]
        covered += found.low <= held[0] <= found.high
    assert covered / runs >= _at_least(0.95, runs)


def test_a_mean_over_tiers_reckons_with_who_chose_which() -> None:
    chance = np.random.default_rng(32)
    runs, people, held = 400, 10_000, [5000, 5000]
    mechanisms = [
        build("mean.piecewise", epsilon=epsilon, low=0.0, high=1.0) for epsilon in (4.0, 0.5)
    ]
    covered = 0
    for _ in range(runs):
        few = chance.multivariate_hypergeometric(held, chance.binomial(people, 0.5))
        tiers = [
            (mechanism, draw(mechanism, [0.0, 1.0], part.tolist(), chance))
            for mechanism, part in zip(mechanisms, (np.array(held) - few, few), strict=True)
        ]
        found = answer_tiers(tiers, None).values[0]
        covered += found.low <= 0.5 <= found.high
    assert covered / runs >= _at_least(0.95, runs)


# As published, with every string a candidate: 100 of them and 64 cohorts of 32 bits.
LISTED = Setting(32, 1, 64, 0.25, 0.75, 0.5, "zipf", 100, 100, 0, 100_000)
UNLISTED = Setting(32, 1, 64, 0.25, 0.75, 0.5, "zipf", 100, 90, 10, 100_000)


def _decoded(setting: Setting, chance: np.random.Generator, repeats: int = 1) -> Decoded:
    simulated = simulate(setting, chance, repeats)
    return decode_counts(simulated.collection, simulated.places, repeats=repeats)


@pytest.mark.parametrize("repeats", [1, 2, 7])
def test_repeated_lies_are_no_sign_of_a_string_that_is_not_listed(repeats: int) -> None:
    """P(p <= .05) is .05 at most; of 40 collections at most 12 (binomial tail 6e-7)."""
    chance = np.random.default_rng(33)
    told = [_decoded(LISTED, chance, repeats).misfit for _ in range(40)]
    assert sum(misfit is not None and misfit[1] <= 0.05 for misfit in told) <= 12


@pytest.mark.parametrize("repeats", [1, 7])
def test_a_frequent_string_that_is_not_listed_is_noticed_though_lies_repeat(repeats: int) -> None:
    """The candidates leave out what a tenth and more of all devices hold."""
    chance = np.random.default_rng(34)
    setting = Setting(32, 1, 64, 0.25, 0.75, 0.5, "steep zipf", 8, 4, 20, 400_000)
    noticed = 0
    for _ in range(20):
        misfit = _decoded(setting, chance, repeats).misfit
        noticed += misfit is not None and misfit[1] < 1e-3
    assert noticed >= 10  # which four are listed is drawn: the first is missing in half of them


def test_how_many_hold_what_is_not_listed_is_told_rightly_or_not_at_all() -> None:
    """A column for every candidate: the interval holds. Candidates past that: no number."""
    chance = np.random.default_rng(35)
    runs, covered = 60, 0
    for _ in range(runs):
        simulated = simulate(UNLISTED, chance)
        decoded = decode_counts(simulated.collection, simulated.places)
        assert decoded.others is not None
        estimate, stderr = decoded.others
        truth = UNLISTED.reports - int(simulated.truth.sum())
        covered += abs(estimate - truth) <= 1.96 * stderr
    assert covered / runs >= _at_least(0.95, runs)
    many = Setting(32, 2, 64, 0.25, 0.75, 0.5, "zipf", 300, 270, 1730, 100_000)
    decoded = _decoded(many, chance)
    assert decoded.others is None
    assert decoded.misfit is None


Shape = Callable[[int, int], list[int]]


def _equal(categories: int, people: int) -> list[int]:
    each = people // categories
    return [people - each * (categories - 1)] + [each] * (categories - 1)


def _zipf(categories: int, people: int) -> list[int]:
    weights = 1 / np.arange(1, categories + 1)
    held = np.floor(weights / weights.sum() * people).astype(int).tolist()
    held[0] += people - sum(held)
    return [int(one) for one in held]


def _sure(number: int) -> Shape:
    """So many that many hold, and nobody the rest."""
    return lambda categories, people: _equal(number, people) + [0] * (categories - number)


def _lists(
    name: str, epsilon: float, held: Sequence[int], runs: int, seed: int
) -> Iterator[list[tuple[ValueAnswer, int]]]:
    """Answers, each beside its truth, from the largest estimate on."""
    chance = np.random.default_rng(seed)
    mechanism = _build(name, epsilon, len(held))
    names = [str(value) for value in range(len(held))]
    for _ in range(runs):
        totals = draw(mechanism, range(len(held)), list(held), chance)
        found = answer_tiers([(mechanism, totals)], names).values
        yield sorted(zip(found, held, strict=True), key=lambda row: row[0].rank or 0)


LISTS: Sequence[tuple[str, float, int, int, Shape]] = [
    ("unary.oue", 1.0, 1000, 6000, _equal),
    ("unary.oue", 1.0, 1000, 6000, _zipf),
    ("unary.oue", 1.0, 100, 10_000, _equal),
    ("unary.oue", 2.0, 128, 10_000, _sure(15)),
    ("unary.oue", 2.0, 128, 10_000, _zipf),
    ("grr", 1.0, 16, 1000, _zipf),
    ("grr", 2.0, 16, 100_000, _equal),
    ("grr", 4.0, 64, 100, _sure(1)),
    ("subset", 4.0, 100, 500, _zipf),
    ("hadamard", 4.0, 100, 500, _equal),
    ("unary.oue", 8.0, 128, 100, _zipf),
    ("unary.oue", 8.0, 128, 300, _equal),
    ("unary.oue", 8.0, 16, 100, _sure(1)),
    ("rr", 1.0, 2, 1000, _equal),
]


@pytest.mark.parametrize(("name", "epsilon", "size", "people", "shape"), LISTS)
def test_intervals_hold_of_what_was_picked_for_its_size(
    name: str, epsilon: float, size: int, people: int, shape: Shape
) -> None:
    """Of the first, of the first ten, and of what stands out: 95% hold the truth, as of all.

    Rows of one run are not independent: runs count as if each had one row.
    """
    runs, held = 120, shape(size, people)
    shown = {first: [0, 0] for first in (1, 10, size)}
    standing, false = [0, 0], []
    for rows in _lists(name, epsilon, held, runs, seed=41):
        holds = [one.low <= truth <= one.high for one, truth in rows]
        for first, counts in shown.items():
            counts[0] += sum(holds[:first])
            counts[1] += len(holds[:first])
        flagged = [place for place, (one, _) in enumerate(rows) if one.detected]
        assert all(rows[place][0].low > 0 for place in flagged), "flagged, and its interval holds 0"
        standing[0] += sum(holds[place] for place in flagged)
        standing[1] += len(flagged)
        wrong = sum(rows[place][1] == 0 for place in flagged)
        false.append(wrong / max(len(flagged), 1))
    for covered, number in shown.values():
        assert covered / number >= _at_least(0.95, runs)
    if standing[1]:
        assert standing[0] / standing[1] >= _at_least(0.95, min(standing[1], runs))
    assert np.mean(false) <= 0.05 + Z * np.std(false) / sqrt(runs) + 1e-9


@pytest.mark.parametrize("sure", [1, 3, 9, 15, 100])
@pytest.mark.parametrize("absent", [1, 10, 100])
def test_what_nobody_holds_stands_out_once_in_twenty_at_most_whatever_its_company(
    sure: int, absent: int
) -> None:
    runs, held = 60, [2000] * sure + [0] * absent
    flags = [
        one.detected is True
        for rows in _lists("unary.oue", 2.0, held, runs, seed=42)
        for one, truth in rows
        if not truth
    ]
    assert np.mean(flags) <= 0.05 + Z * sqrt(0.05 * 0.95 / runs)


@pytest.mark.parametrize(
    ("name", "epsilon", "size", "number", "people"),
    [
        ("cms", 4.0, (16, 128), 500, 100_000),
        ("cms", 4.0, (8, 64), 200, 50_000),
        ("cms", 2.0, (64, 256), 256, 50_000),
        ("hcms", 2.0, (64, 256), 256, 50_000),
    ],
)
def test_collisions_pass_for_no_string(
    name: str, epsilon: float, size: tuple[int, int], number: int, people: int
) -> None:
    """Fifty strings are held, the first by a fifth of all. Others collide in each run."""
    chance = np.random.default_rng(43)
    mechanism = build(name, epsilon=epsilon, hashes=size[0], width=size[1])
    truth = np.zeros(number)
    truth[:50] = _zipf(50, people)
    runs, false, held, found = 60, [], 0, 0
    for run in range(runs):
        strings = [f"{run}-{place}.example" for place in range(number)]
        totals = draw(mechanism, strings[:50], truth[:50].astype(int).tolist(), chance)
        values = answer_tiers([(mechanism, totals)], None, strings).values
        flagged = [place for place, one in enumerate(values) if one.detected]
        false.append(sum(truth[place] == 0 for place in flagged) / max(len(flagged), 1))
        held += sum(values[place].low <= truth[place] <= values[place].high for place in flagged)
        found += len(flagged)
    assert np.mean(false) <= 0.05 + Z * np.std(false) / sqrt(runs)
    assert found > runs
    assert held / found >= _at_least(0.95, runs)


@pytest.mark.parametrize("epsilon", [1.0, 4.0, 8.0])
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_other_people_are_no_change(epsilon: float, share: float) -> None:
    chance = np.random.default_rng(44)
    mechanism, runs, reports, few, all_held = build("rr", epsilon=epsilon), 400, 10_000, 0, 0
    for _ in range(runs):
        held = [int(chance.binomial(reports, share)) for _ in range(2)]
        answers = [
            answer_tiers(
                [(mechanism, draw(mechanism, [0, 1], [reports - n, n], chance))], ["n", "y"]
            )
            for n in held
        ]
        few += changes(*answers)[1].p_value < 0.05
        tiers = [(mechanism, draw(mechanism, [0, 1], [reports - held[0], held[0]], chance))]
        [point] = shares(tiers, [1])
        all_held += point.low <= share <= point.high
    assert few / runs <= 0.05 + Z * sqrt(0.05 * 0.95 / runs)
    assert all_held / runs >= _at_least(0.95, runs)


def test_lines_that_were_picked_hold_as_often_as_they_say() -> None:
    """The five most frequent of two epochs, of 1,000 even values: chance alone picked them."""
    chance = np.random.default_rng(45)
    mechanism = build("unary.oue", epsilon=1.0, categories=1000)
    names, runs, held = [str(value) for value in range(1000)], 60, 0
    for _ in range(runs):
        epochs = [draw(mechanism, range(1000), [6] * 1000, chance) for _ in range(2)]
        cells = np.sum([one.cells for one in epochs], axis=0).tolist()
        whole = answer_tiers([(mechanism, Totals(cells, 12_000))], names).values
        first = sorted(range(1000), key=lambda place: whole[place].rank or 0)[:5]
        picked = [(whole[place].rank or 0) / 1000 for place in first]
        for one in epochs:
            points = shares([(mechanism, one)], first, picked=picked)
            held += sum(point.low <= 0.001 <= point.high for point in points)
    assert held / (runs * 10) >= _at_least(0.95, runs)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("long.unary", {"epsilon": 1.0, "permanent_epsilon": 2.0}),
        ("long.grr", {"epsilon": 1.0, "permanent_epsilon": 2.0}),
        ("rappor.basic", {"f": 0.5, "p": 0.25, "q": 0.75}),
    ],
)
def test_weeks_of_repeated_lies_are_as_sure_as_they_are(name: str, given: dict[str, float]) -> None:
    """The same devices seven times: coverage, no error wider than it must be, and a move is seen.

    From one week to the next a twentieth of all devices takes up one value; their lies are new.
    """
    mechanism = build(name, **given, categories=8)
    chance, runs, names = np.random.default_rng(47), 60, [str(value) for value in range(8)]
    before = [6000, 4000, 3000, 2500, 2000, 1500, 1000, 0]
    after = [held - held // 20 for held in before]
    after[2] += sum(before) - sum(after)
    off, said, covered, found = [], [], 0, 0

    def week(held: Sequence[int]) -> Answer:
        epochs = list(draw_epochs(mechanism, range(8), held, 7, chance))
        cells = np.sum([one.cells for one in epochs], axis=0).tolist()
        return answer_tiers([(mechanism, Totals(cells, 7 * sum(held)))], names, repeats=7)

    for _ in range(runs):
        first, second = week(before), week(after)
        off.append(
            [one.estimate - 7 * held for one, held in zip(first.values, before, strict=True)]
        )
        said += [one.stderr for one in first.values]
        covered += sum(
            one.low <= 7 * held <= one.high for one, held in zip(first.values, before, strict=True)
        )
        found += changes(first, second)[2].changed
    assert covered / runs / 8 >= _at_least(0.95, runs)
    # Of 480 errors the deviation is known to a twentieth; values of one week vary together.
    assert 0.8 <= np.mean(said) / np.std(off) <= 1.25
    assert found > runs / 2


@pytest.mark.parametrize("epsilon", [1.0, 4.0, 8.0])
@pytest.mark.parametrize("shape", [_equal, _zipf, _sure(1), _sure(5)])
def test_the_consistent_picture_is_never_worse_than_the_estimates(
    epsilon: float, shape: Shape
) -> None:
    held, off, raw = shape(64, 3000), 0.0, 0.0
    for rows in _lists("grr", epsilon, held, 40, seed=46):
        for one, truth in rows:
            assert one.consistent is not None
            assert one.low - 1e-6 <= one.consistent <= one.high + 1e-6
            off += (one.consistent - truth) ** 2
            raw += (one.estimate - truth) ** 2
        assert sum(one.consistent or 0 for one, _ in rows) == pytest.approx(3000, abs=1)
    assert off <= raw * (1 + 1e-6)


def _build(name: str, epsilon: float, categories: int) -> AnyMechanism:
    return build(name, epsilon=epsilon, **({} if name == "rr" else {"categories": categories}))


def _repeated(
    mechanism: LongitudinalGrr, held: Sequence[int], epochs: int, chance: np.random.Generator
) -> Totals:
    """Totals of the same devices in so many epochs: one permanent lie, and fresh ones over it."""
    size = mechanism.categories

    def lies(counts: Sequence[int], keep: float) -> list[int]:
        rows = np.full((size, size), (1 - keep) / (size - 1))
        np.fill_diagonal(rows, keep)
        drawn = [chance.multinomial(count, row) for count, row in zip(counts, rows, strict=True)]
        return [int(number) for number in np.sum(drawn, axis=0)]

    permanent = lies(held, float(mechanism.permanent.exact))
    epochs_told = [lies(permanent, float(mechanism.fresh.exact)) for _ in range(epochs)]
    return Totals(np.sum(epochs_told, axis=0).tolist(), epochs * sum(held))


@pytest.mark.parametrize("epochs", [1, 7, 30])
def test_a_release_reckons_with_lies_that_repeat(epochs: int) -> None:
    mechanism = build("long.grr", epsilon=1.0, permanent_epsilon=2.0, categories=8)
    assert isinstance(mechanism, LongitudinalGrr)
    chance = np.random.default_rng(36)
    labels = [str(value) for value in range(8)]
    held, runs, covered = [6000, 4000, 3000, 2500, 2000, 1500, 1000, 0], 100, 0
    for _ in range(runs):
        totals = _repeated(mechanism, held, epochs, chance)
        [found] = release(
            [(mechanism, totals)],
            labels,
            "count",
            "0",
            policy=LAPLACE,
            reports_each=epochs,
        )
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= epochs * held[0] <= found.high
    assert covered / runs >= _at_least(0.95, runs)


@pytest.mark.parametrize(
    ("epsilon", "reports"), [(8.0, 100), (8.0, 1000), (8.0, 10_000), (4.0, 100), (3.0, 1000)]
)
def test_empty_ranges_are_not_marked_for_a_stray_report(epsilon: float, reports: int) -> None:
    """Half of all numbers in each of two of sixteen buckets of `wave`."""
    chance, runs = np.random.default_rng(48), 100
    mechanism = build("wave", epsilon=epsilon, buckets=16, low=0.0, high=16.0)
    held = [0] * 16
    held[3], held[10] = reports // 2, reports - reports // 2
    middles, false, standing = [bucket + 0.5 for bucket in range(16)], [], [0, 0]
    for _ in range(runs):
        totals = draw(mechanism, middles, held, chance)
        rows = zip(answer_tiers([(mechanism, totals)], None).values, held, strict=True)
        flagged = [(one, truth) for one, truth in rows if one.detected]
        false.append(sum(not truth for _, truth in flagged) / max(len(flagged), 1))
        standing[0] += sum(one.low <= truth <= one.high for one, truth in flagged)
        standing[1] += len(flagged)
    assert np.mean(false) <= 0.05 + Z * np.std(false) / sqrt(runs)
    assert standing[0] / standing[1] >= _at_least(0.95, runs)


def test_a_release_of_tiers_reckons_with_who_chose_which() -> None:
    chance = np.random.default_rng(37)
    runs, held, covered = 200, [5000, 5000], 0
    mechanisms = [build("rr", epsilon=epsilon) for epsilon in (4.0, 0.5)]
    for _ in range(runs):
        few = chance.multivariate_hypergeometric(held, chance.binomial(10_000, 0.2))
        parts = [
            (mechanism, draw(mechanism, [0, 1], part.tolist(), chance))
            for mechanism, part in zip(mechanisms, (np.array(held) - few, few), strict=True)
        ]
        [found] = release(parts, ["0", "1"], "count", "0", policy=LAPLACE, reports_each=1)
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= held[0] <= found.high
    assert covered / runs >= _at_least(0.95, runs)


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_a_release_of_a_peak_is_as_unsure_as_it_says(epsilon: float) -> None:
    """All numbers in one of the buckets of `wave`, and half in each of two."""
    chance = np.random.default_rng(38)
    mechanism = build("wave", epsilon=epsilon, buckets=8, low=0.0, high=8.0)
    runs, reports = 200, 1000
    for counts in ([0, 0, 0, reports, 0, 0, 0, 0], [0, 500, 0, 0, 0, 500, 0, 0]):
        covered = 0
        values = [bucket + 0.5 for bucket in range(8)]
        place = counts.index(max(counts))
        for _ in range(runs):
            totals = draw(mechanism, values, counts, chance)
            made = release(
                [(mechanism, totals)], None, "histogram", "", policy=LAPLACE, reports_each=1
            )[place]
            assert made.low is not None
            assert made.high is not None
            covered += made.low <= counts[place] <= made.high
        assert covered / runs >= _at_least(0.95, runs)
