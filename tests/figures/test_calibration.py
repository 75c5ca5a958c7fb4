"""What answers say of themselves holds as often as they say: simulated, from the exact laws.

Fixed seeds. A coverage is compared with its claim less 4.9 of its own standard errors, so that a
true claim fails once in a million.
"""

from collections.abc import Sequence
from math import sqrt

import numpy as np
import pytest

from hubbub.analysis import answer_tiers
from hubbub.analysis.decode import Decoded, decode_counts
from hubbub.catalog import Release
from hubbub.mechanisms import AnyMechanism, Totals, build
from hubbub.mechanisms.long_grr import LongitudinalGrr
from hubbub.privacy.draws import draw
from hubbub.privacy.releases import release
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
