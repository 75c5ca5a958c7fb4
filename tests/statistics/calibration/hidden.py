"""Numbers of reports that are estimates: whatever is said of shares of them, and of changes."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from hubbub.aggregator.query.cache import sum_totals
from hubbub.aggregator.store.contract import WindowTotals
from hubbub.analysis.answer import Answer
from hubbub.analysis.answering import Followed, answer_tiers, joined_shares
from hubbub.analysis.comparisons.change import changes
from hubbub.analysis.families import draw
from hubbub.catalog.crowds.crowd import noise_of
from hubbub.mechanisms import AnyMechanism, Totals
from hubbub.mechanisms.probability import exp_at_most
from hubbub.privacy.central_releases import release_without_noise
from hubbub.privacy.noise_dummies_account import law_of
from hubbub.sealing.dummy_laws import CountNoise, ValueNoise
from tests.statistics.calibration.changes import ANY, DIFFERENCE, REQUESTED_BAND, SMALL_P
from tests.statistics.calibration.few_reports import TINY_P
from tests.statistics.calibration.listed import judge_rows
from tests.statistics.calibration.released import COUNT
from tests.statistics.calibration.shapes import built
from tests.statistics.calibration.statement import Counted, Setting, Statement

SHARE = Statement(
    "95% interval of a share",
    0.95,
    ("ValueAnswer.share_low", "ValueAnswer.share_high", "ValueAnswer.share"),
)


def hidden_totals(
    noise: CountNoise, mechanism: AnyMechanism, counts: Sequence[int], chance: np.random.Generator
) -> Totals:
    """Reports, and a drawn number of dummies, each any value alike."""
    weights = np.array(noise.weights, dtype=np.float64)
    dummies = int(chance.choice(len(weights), p=weights / weights.sum()))
    cells = np.array(draw(mechanism, range(len(counts)), counts, chance).cells)
    cells += chance.multinomial(dummies, [1 / len(counts)] * len(counts))
    reports = sum(counts) + dummies - noise.reach
    return Totals(
        cells=cells.tolist(),
        reports=reports,
        dummies=noise.reach,
        dummies_variance=0.0,
        beside_variance=noise.variance,
    )


def noisy_totals(
    each: CountNoise,
    totals: Totals,
    chance: np.random.Generator,
    of_sum: CountNoise | None = None,
) -> Totals:
    """Reports, and of each value a drawn number of dummies."""
    noise = ValueNoise(each, len(totals.cells), of_sum)
    named = noise.draw(lambda law: int(chance.choice(len(law.weights), p=law_of(law))))
    epoch = WindowTotals(
        cells=np.array(totals.cells, dtype=np.int64) + named,
        counted=totals.reports + sum(named) - noise.expected,
        dummies=noise.expected,
        batch_reports=0,
        at=0,
    )
    return sum_totals([epoch], noise.values, dummies=noise.expected, noise=noise)


def _noisy(
    noise: CountNoise, mechanism: AnyMechanism, counts: Sequence[int], chance: np.random.Generator
) -> Totals:
    return noisy_totals(noise, draw(mechanism, range(len(counts)), counts, chance), chance)


Drawn = Callable[[AnyMechanism, Sequence[int], np.random.Generator], Totals]


def _hidden(
    mechanism: AnyMechanism,
    population: Sequence[float],
    people: int,
    drawn: Drawn,
    chance: np.random.Generator,
) -> Iterator[Counted]:
    """Two epochs of one population."""
    names = [str(value) for value in range(len(population))]
    answers: list[Answer] = []
    for _ in range(2):
        counts = chance.multinomial(people, population).tolist()
        totals = drawn(mechanism, counts, chance)
        answer = answer_tiers([(mechanism, totals)], names)
        yield from judge_rows(answer.values, counts)
        first = answer.values[0]
        assert first.share_low is not None
        assert first.share_high is not None
        yield SHARE, first.share_low <= counts[0] / people <= first.share_high, 1
        [point] = joined_shares([Followed([(mechanism, totals)], [0])])
        yield REQUESTED_BAND, point.low <= population[0] <= point.high, 1
        [count] = release_without_noise(mechanism, totals, names, "count", "0")
        assert count.low is not None
        assert count.high is not None
        yield COUNT, count.low <= counts[0] <= count.high, 1
        answers.append(answer)
    result = changes(*answers)
    yield SMALL_P, result[0].p_value < 0.05, 1
    yield TINY_P, result[0].p_value < 0.01, 1
    yield ANY, any(change.changed for change in result), 1
    yield DIFFERENCE, sum(change.low <= 0 <= change.high for change in result), len(result)


SETTINGS: Sequence[Setting] = [
    Setting(
        f"grr {epsilon:g}, {values} values, {people} reports of a hidden number, {share:.0%}",
        100,
        partial(
            _hidden,
            built("grr", epsilon, values),
            [share, *[(1 - share) / (values - 1)] * (values - 1)],
            people,
            partial(hidden_totals, CountNoise.least(exp_at_most(count_epsilon), 1e-8)),
        ),
    )
    for epsilon, values, people, count_epsilon, share in (
        (8.0, 8, 660, 0.05, 0.95),
        (8.0, 3, 1600, 0.1, 0.98),
        (7.0, 20, 1000, 0.1, 1.0),
        (4.0, 8, 3000, 0.5, 0.5),
    )
] + [
    Setting(
        f"grr {epsilon:g}, {values} values, {people} reports, noise dummies {scale:g}, {share:.0%}",
        100,
        partial(
            _hidden,
            built("grr", epsilon, values),
            [share, *[(1 - share) / (values - 1)] * (values - 1)],
            people,
            partial(_noisy, law),
        ),
    )
    for epsilon, values, people, scale, shift, share in (
        (16.0, 16, 1000, 4.04, 69, 1.0),
        (8.0, 16, 10_000, 2.02, 36, 0.1),
    )
    if (law := noise_of(scale, shift))
]
