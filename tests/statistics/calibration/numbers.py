"""Means, and ranges with the mean of what is in them."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from math import sqrt

import numpy as np
from scipy.special import ndtr
from scipy.stats import beta

from hubbub.analysis.answer import Answer
from hubbub.analysis.answering import Followed, answer_tiers, joined_shares
from hubbub.analysis.comparisons.change import changes
from hubbub.analysis.families import draw
from hubbub.authoring.crowds.accountant import sum_scale
from hubbub.catalog.crowds.crowd import noise_of, sum_noise_of
from hubbub.mechanisms import AnyMechanism, Totals, build
from hubbub.sealing.dummy_laws import CountNoise
from tests.statistics.calibration.changes import DIFFERENCE, SMALL_P
from tests.statistics.calibration.few_reports import NARROW
from tests.statistics.calibration.hidden import noisy_totals
from tests.statistics.calibration.listed import ENDS
from tests.statistics.calibration.statement import Counted, Setting, Statement

NOISE = noise_of(2.02, 36)
MEAN = Statement(
    "95% interval of a mean",
    0.95,
    (*ENDS, "Estimated.mean", "Mean.estimate", "Mean.stderr", "Mean.low", "Mean.high"),
)
FOUND = Statement("a moved mean is found beside the best test", 0.9, ("Change.changed",))
BAND = Statement("95% band of a mean's trend", 0.95, ("Point.low", "Point.high", "Point.stderr"))
# Each in the middle of a range, so that ranges round nothing.
MANY = {0.5: 2000, 2.5: 1500, 4.5: 1000, 15.5: 500}
# Where the normal law says too little: hardly a report lies, and that one says much.
FEW = {"all at one end": {15.5: 100}, "one at the other end": {0.5: 99, 15.5: 1}}


def _mean(
    mechanism: AnyMechanism,
    counts: Mapping[float, int],
    noise: CountNoise | None,
    chance: np.random.Generator,
    of_sum: CountNoise | None = None,
) -> Iterator[Counted]:
    numbers, people = list(counts), list(counts.values())

    def draw_totals(people: Sequence[int]) -> Totals:
        totals = draw(mechanism, numbers, people, chance)
        return noisy_totals(noise, totals, chance, of_sum) if noise else totals

    answer = answer_tiers([(mechanism, draw_totals(people))], None)
    true = float(np.dot(numbers, people)) / sum(people)
    row = answer.mean or answer.values[0]
    yield MEAN, row.low <= true <= row.high, 1
    others = chance.multinomial(sum(people), np.array(people) / sum(people)).tolist()
    [point] = joined_shares([Followed([(mechanism, draw_totals(others))], [0])])
    yield BAND, point.low <= true <= point.high, 1


def _compared(
    mechanism: AnyMechanism, shape: tuple[float, float], n: int, chance: np.random.Generator
) -> Iterator[Counted]:
    """Two epochs of one population, whose numbers have a beta law, and of another.

    Beside the test of two sums whose variances are known: its power at 3.5 errors of a difference.
    Numbers are rounded at random to 128ths of the range, which keeps their mean.
    """

    def draw_totals(size: int, low: float = 0.0) -> Answer:
        places = low + (1 - low) * chance.beta(*shape, size)
        rounded = np.floor(128 * places + chance.random(size)).astype(int)
        counts = np.bincount(rounded, minlength=129).tolist()
        totals = draw(mechanism, [step / 8 for step in range(129)], counts, chance)
        return answer_tiers([(mechanism, totals)], None)

    [same] = changes(draw_totals(n), draw_totals(n))
    yield SMALL_P, same.p_value < 0.05, 1
    yield DIFFERENCE, same.low <= 0 <= same.high, 1
    large = draw_totals(8 * n).values[0]
    mean, variance = beta.stats(*shape)
    # Of one bit, the coins' error is that of a population.
    people = 0.0 if mechanism.NAME == "mean.one_bit" else float(variance) / n
    error = 16 * sqrt(2 * people + 2 * 8 * (large.stderr / 16) ** 2)
    [moved] = changes(draw_totals(n), draw_totals(n, 3.5 * error / 16 / (1 - float(mean))))
    yield NARROW, 2 * 1.96 * error, moved.high - moved.low
    yield FOUND, moved.changed, float(ndtr(3.5 - 1.96))


def _followed(
    mechanism: AnyMechanism, shape: tuple[float, float], n: int, chance: np.random.Generator
) -> Iterator[Counted]:
    """The mean of one epoch's numbers in parts of a range, for a population of that beta law."""
    shares = np.diff(beta.cdf(np.arange(17) / 16, *shape))
    middles = np.arange(16) + 0.5
    totals = draw(mechanism, middles.tolist(), chance.multinomial(n, shares).tolist(), chance)
    [point] = joined_shares([Followed([(mechanism, totals)], [0])])
    mean = float(shares @ middles)
    yield BAND, point.low <= mean <= point.high, 1
    coins = answer_tiers([(mechanism, totals)], None).mean
    assert coins
    error = sqrt(float(shares @ (middles - mean) ** 2) / n + coins.stderr**2)
    yield NARROW, 2 * 1.96 * error, point.high - point.low


def _build(name: str, epsilon: float, sampled: int = 4) -> AnyMechanism:
    more = {"buckets": 16} if name in {"wave", "haar", "buckets"} else {}
    part = {"sampled": sampled} if name == "buckets" else {}
    return build(name, epsilon=epsilon, low=0.0, high=16.0, **more, **part)


SETTINGS: Sequence[Setting] = (
    [
        Setting(
            f"{name} {epsilon:g}, {shape}",
            40 if name == "wave" else 200,  # its smooth shape takes long
            partial(_mean, _build(name, epsilon), counts, None),
        )
        for name in ("mean.one_bit", "mean.piecewise", "mean.table", "wave", "haar", "buckets")
        for epsilon, shape, counts in (
            (1.0, "5,000 reports", MANY),
            *((8.0, f"100 reports, {shape}", counts) for shape, counts in FEW.items()),
            # Hardly a report lies, which moves the sum up as far as down.
            (9.0, "25 reports, all in the middle", {8.5: 25}),
        )
    ]
    + [
        Setting(
            f"{name} {epsilon:g}, {n:,} reports of beta {shape[0]:g}, {shape[1]:g}, compared",
            60,
            partial(_compared, build(name, epsilon=epsilon, low=0.0, high=16.0), shape, n),
        )
        for name, epsilon, n, shape in (
            ("mean.one_bit", 7.5, 1000, (1.1, 2.9)),
            ("mean.piecewise", 7.5, 1000, (1.1, 2.9)),
            ("mean.table", 7.5, 1000, (5.0, 2.0)),
        )
    ]
    + [
        Setting(
            f"{name} {epsilon:g}, {n:,} reports of beta {shape[0]:g}, {shape[1]:g}, followed",
            40 if name == "wave" else 200,
            partial(_followed, _build(name, epsilon, sampled=16), shape, n),
        )
        for name, epsilon, n, shape in (
            ("haar", 8.0, 1000, (1.1, 2.9)),
            ("wave", 8.0, 2000, (5.0, 2.0)),
            ("buckets", 8.0, 1000, (5.0, 5.0)),
        )
    ]
    + [
        Setting(
            f"{name} {epsilon:g}, {shape}, noise dummies",
            200,
            partial(
                _mean, build(name, epsilon=epsilon, low=0.0, high=16.0, **steps), counts, NOISE
            ),
        )
        for name, steps in (("mean.one_bit", {}), ("mean.piecewise", {"steps": 16}))
        for epsilon, shape, counts in (
            (8.0, "5,000 reports", MANY),
            (16.0, "5,000 reports", MANY),
            (16.0, "1,000 reports, all at one end", {15.5: 1000}),
        )
    ]
    + [
        Setting(
            f"mean.piecewise {epsilon:g}, {steps} steps, {shape}, noise dummies of a fixed sum",
            200,
            partial(
                _mean,
                build("mean.piecewise", epsilon=epsilon, low=0.0, high=16.0, steps=steps),
                counts,
                noise_of(5.05, 147),
                of_sum=sum_noise_of(sum_scale(5.05, steps)),
            ),
        )
        for epsilon, steps, shape, counts in (
            (8.0, 16, "5,000 reports", MANY),
            (12.0, 64, "1,000 reports, all at one end", {15.5: 1000}),
            (16.0, 64, "200 reports", {0.5: 150, 8.5: 50}),
        )
    ]
)
