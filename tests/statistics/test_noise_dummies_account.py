"""Noise dummies: what an epoch says is never below what enumeration finds, and hardly above it."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import chain, product
from math import exp, inf, log, sqrt
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, gammaln

from hubbub.analysis.arrays import Floats
from hubbub.analysis.binomials import pmf
from hubbub.catalog.crowds.crowd import noise_of
from hubbub.privacy.fewest_dummies import best_noise
from hubbub.privacy.many_epochs import composed_epsilon
from hubbub.privacy.noise_dummies_account import bare_delta
from hubbub.privacy.shuffled_histogram import central_epsilon
from hubbub.privacy.two_values_account import TwoCounts
from hubbub.sealing.dummy_laws import CountNoise
from tests.support.commands import document_of
from tests.support.crowds import crowd_of, noise_chances, views_with_any_others


def _law(scale: float, shift: int) -> CountNoise:
    law = noise_of(scale, shift)
    assert law is not None
    return law


def _epsilon_of(first: Floats, other: Floats, delta: float) -> float:
    """By bisection of the hockey-stick divergence, over the outcomes that are not decided yet."""
    low, high, certain = 0.0, 40.0, np.zeros(2)
    pairs = np.stack([first[first > other], other[first > other]])
    for _ in range(60):
        middle = (low + high) / 2
        over = pairs[0] - exp(middle) * pairs[1]
        likelier = over > 0
        if certain @ (1.0, -exp(middle)) + over[likelier].sum() <= delta:
            high, certain = middle, certain + pairs[:, likelier].sum(axis=1)
            pairs = pairs[:, ~likelier]
        else:
            low, pairs = middle, pairs[:, likelier]
    return high


@pytest.mark.parametrize(("scale", "shift"), [(0.7, 3), (2.02, 6), (1.0, 5)])
@pytest.mark.parametrize("t", [Fraction(3, 2), Fraction(3), Fraction(10)])
def test_without_lies_delta_equals_exact_fractions(scale: float, shift: int, t: Fraction) -> None:
    law = _law(scale, shift)
    weights, whole = [0, *law.weights, 0], sum(law.weights)
    pairs = list(product(range(len(weights) - 1), repeat=2))
    # Of x dummies and the report on v, and of y on w; and the other way round.
    gains = (weights[x] * weights[y + 1] - t * weights[x + 1] * weights[y] for x, y in pairs)
    exact = sum((max(gain, Fraction(0)) for gain in gains), Fraction(0)) / whole**2
    delta = bare_delta(law, log(t))
    assert float(exact) <= delta <= float(exact) * (1 + 1e-6) + 1e-15


@pytest.mark.parametrize(
    ("others", "values", "local", "law", "delta"),
    [
        (6, 2, 2.0, (1.5, 22), 1e-4),
        (5, 3, 2.0, (2.02, 22), 1e-4),
        (5, 3, 4.0, (1.01, 12), 1e-4),
        (3, 4, 3.0, (1.5, 9), 1e-2),
        (3, 4, 5.0, (1.01, 7), 1e-2),
        (7, 3, 2.1, (1.823, 4), 0.1),
    ],
)
def test_epsilon_with_lies_is_at_most_2_percent_above_the_worst_case(
    others: int, values: int, local: float, law: tuple[float, int], delta: float
) -> None:
    crowd = crowd_of(others + 1, values, local, noise_dummies=_law(*law))
    chances = exp(local), crowd.lie, noise_chances(*law)
    views = views_with_any_others(others, values, *chances)
    worst = max(_epsilon_of(first, other, delta) for first, other in views)
    assert worst <= central_epsilon(crowd, delta) <= 1.02 * worst


def _answer(  # noqa: PLR0917 a row
    capsys: pytest.CaptureFixture[str],
    reports: int,
    values: int,
    central: float,
    delta: float,
    local: float = inf,
) -> dict[str, Any]:
    command = f"privacy crowd --dummies noise --json --reports {reports} --values {values}"
    command += f" --central {central} --delta {delta}"
    command += f" --local-epsilon {local}" if local < inf else ""
    answer: dict[str, Any] = document_of(capsys, *command.split())
    return answer


_Views = tuple[Floats, Floats]


def _bare(answer: dict[str, Any]) -> _Views:
    """Both counts, where nobody lies."""
    law = noise_chances(answer["scale"], answer["shift"])
    rising, falling = np.append(0.0, law), np.append(law, 0.0)
    return np.outer(rising, falling), np.outer(falling, rising)


def _of_few(answer: dict[str, Any], local: float) -> Iterator[_Views]:
    """All counts, where all others hold a third value, and where what the person may."""
    law, m = noise_chances(answer["scale"], answer["shift"]), answer["reports"] - 1
    d, size = answer["categories"], len(law)
    q = 1 / (exp(local) + d - 1)
    most = int(m * q + 8 * sqrt(m * q) + 8)
    moves = np.zeros((most + size, most))
    for lies in range(most):
        moves[lies : lies + size, lies] = law
    numbers = np.indices((most,) * (d - 1))
    total, ways = numbers.sum(axis=0), np.exp(-gammaln(numbers + 1.0).sum(axis=0))
    counts = np.zeros((2 * most + size, *(most + size,) * (d - 1)))
    # How many others do not name the held value, which is the first.
    for liars, chance in enumerate(pmf(np.arange(2 * most), m, (d - 1) * q)):
        split = chance * np.where(total == liars, ways * exp(gammaln(liars + 1.0)), 0.0)
        split /= float(d - 1) ** liars
        for axis in range(d - 1):
            split = np.moveaxis(np.tensordot(moves, split, (1, axis)), 0, axis)
        place = slice(2 * most - 1 - liars, 2 * most - 1 - liars + size)
        counts[place] += np.multiply.outer(law, split)
    sent = [np.roll(counts, 1, axis=value) for value in range(d)]
    mixed = q * sum(sent)
    for v, w in ((1, 2), (0, 1), (1, 0)):
        yield mixed + (1 - d * q) * sent[v], mixed + (1 - d * q) * sent[w]


def _of_two(answer: dict[str, Any], local: float, on_v: int) -> Iterator[_Views]:
    """Both counts, where so many of the others hold v and the rest w: by x and how many dummies."""
    law, m, p = noise_chances(answer["scale"], answer["shift"]), answer["reports"] - 1, expit(local)
    others = np.convolve(
        pmf(np.arange(on_v + 1), on_v, p), pmf(np.arange(m - on_v + 1), m - on_v, 1 - p)
    )
    both = [np.append(0.0, others), np.append(others, 0.0)]
    pairs = np.outer(law, law[::-1])
    dummies = [np.diagonal(pairs, place) for place in range(1 - len(law), len(law))]
    starts = [max(-place, 0) for place in range(1 - len(law), len(law))]
    on_v_sent, on_w_sent = (
        np.concatenate(
            [
                np.append(np.zeros(start), np.convolve(reports, some))
                for start, some in zip(starts, dummies, strict=True)
            ]
        )
        for reports in both
    )
    for v, w in ((on_v_sent, on_w_sent), (on_w_sent, on_v_sent)):
        yield p * v + (1 - p) * w, p * w + (1 - p) * v


def _stderr(answer: dict[str, Any], q: float) -> float:
    law = noise_chances(answer["scale"], answer["shift"])
    values, numbers = answer["categories"], np.arange(len(law)) - answer["shift"]
    variance = float(law @ numbers**2) * (1 - 2 * q + values * q**2)
    return sqrt(variance + float(answer["reports"]) * q * (1 - q)) / float(1 - values * q)


@pytest.mark.parametrize("delta", [1e-10, 1e-6, 1e-3])
@pytest.mark.parametrize("central", [0.2, 0.7, 1, 3, 8])
@pytest.mark.parametrize(("reports", "values"), [(1000, 2), (30_000, 16), (100_000, 4096)])
def test_the_printed_epsilon_of_noise_is_exact_or_at_most_3_percent_above(
    reports: int, values: int, central: float, delta: float, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = _answer(capsys, reports, values, central, delta)
    exact = _epsilon_of(*_bare(answer), delta)
    assert exact * (1 - 1e-7) <= answer["epsilon_central"] <= min(1.001 * exact, central)
    assert answer["stderr"] == pytest.approx(_stderr(answer, 0.0), rel=1e-6)
    assert answer["dummies_per_value"] == answer["shift"]


@pytest.mark.parametrize(
    ("reports", "values", "local", "central", "delta"),
    [
        (3000, 3, 8, 3, 1e-6),
        pytest.param(1000, 3, 6, 1, 1e-6, marks=pytest.mark.thorough),
        pytest.param(30_000, 3, 8, 1, 1e-6, marks=pytest.mark.thorough),
        pytest.param(40, 4, 3, 1, 1e-3, marks=pytest.mark.thorough),
        (33, 4, 6.02, 1, 1e-2),
        (700, 2, 6, 1, 1e-6),
        (300, 2, 3, 0.15, 1e-5),
    ],
)
def test_planned_noise_with_lies_is_at_most_3_percent_above_the_exact(  # noqa: PLR0917 a row
    reports: int,
    values: int,
    local: float,
    central: float,
    delta: float,
    capsys: pytest.CaptureFixture[str],
) -> None:
    answer = _answer(capsys, reports, values, central, delta, local)
    splits = (0, reports // 4, (reports - 1) // 2)
    of_two = chain.from_iterable(_of_two(answer, local, on_v) for on_v in splits)
    views = of_two if values == 2 else _of_few(answer, local)
    exact = max(_epsilon_of(*both, delta) for both in views)
    assert exact * (1 - 1e-7) <= answer["epsilon_central"] <= min(1.03 * exact, central)
    q = 1 / (exp(local) + values - 1)
    assert answer["stderr"] == pytest.approx(_stderr(answer, q), rel=1e-6)


@pytest.mark.parametrize("central", [0.5, 1, 2])
def test_planned_noise_at_a_large_delta_is_at_most_3_percent_above_the_least(
    central: float, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = _answer(capsys, 1000, 16, central, 0.1)
    pairs = product(range(1, 9), np.linspace(1.5, 2.5, 21) / central)
    laws = [{**answer, "shift": shift, "scale": scale} for shift, scale in pairs]
    kept = [law for law in laws if _epsilon_of(*_bare(law), 0.1) <= central]
    assert answer["stderr"] <= 1.03 * min(_stderr(law, 0.0) for law in kept)


@pytest.mark.parametrize("split", [[1.0], [0.2, 0.5, 0.3], [0.6, 0.3, 0.09, 0.01]])
@pytest.mark.parametrize(("scale", "shift"), [(0.0626, 9), (0.7, 3), (2.02, 6), (5.0, 4)])
@pytest.mark.parametrize("t", [1.02, 1.5, 4.0])
def test_two_counts_of_a_known_sum_have_the_enumerated_loss(
    split: list[float], scale: float, shift: int, t: float
) -> None:
    """Also where a report on neither value makes the rest less likely, by any factor."""
    law, p, q, neither = noise_chances(scale, shift), 0.7, 0.1, np.array([0.0, 0.14, 0.2, 0.26])
    size, exact = len(law) + len(split) + 2, np.zeros((2, len(neither)))
    counts = np.zeros((size, size))
    for on_v, chance in enumerate(split):
        on_w = len(split) - 1 - on_v
        counts[on_v : on_v + len(law), on_w : on_w + len(law)] += chance * np.outer(law, law)
    one_on_v, one_on_w = (np.roll(counts, 1, axis=value) for value in (0, 1))
    for place, h in enumerate(neither):
        for first, on_first, other in ((0, one_on_v, one_on_w), (1, one_on_w, one_on_v)):
            over = (p - t * q) * on_first - (t * p - q) * other - (t - 1) * h * counts
            exact[first, place] = np.maximum(over, 0).sum()
    for order, sums in zip((1, -1), exact, strict=True):
        account = TwoCounts(np.array(split)[::order], _law(scale, shift), 1e-13)
        deltas = account.delta(t, p, q, neither)
        assert (deltas >= sums * (1 - 1e-12)).all()
        assert deltas == pytest.approx(sums, rel=1e-5, abs=1e-12)
        assert account.delta(t, p, q, neither[:1]) == pytest.approx(sums[:1], rel=1e-5, abs=1e-12)


@pytest.mark.parametrize(
    ("reports", "local", "central", "delta"),
    [pytest.param(2000, 1, 0.06, 1e-6, marks=pytest.mark.thorough), (132, 8.68, 4.275, 1e-6)],
)
def test_planned_noise_of_two_values_with_lies_is_at_most_3_percent_above_the_least(
    reports: int, local: float, central: float, delta: float, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a scale smaller by so much all others on w reveal more, however long its ends are."""
    answer = _answer(capsys, reports, 2, central, delta, local)
    q, ends = 1 / (exp(local) + 1), {**answer, "shift": 2 * answer["shift"]}
    high = low = answer["scale"]
    while _stderr({**ends, "scale": low}, q) > answer["stderr"] / 1.03 and low > high / 4:
        low *= 0.99
    views = _of_two({**ends, "scale": low}, local, 0)
    assert max(_epsilon_of(*both, delta) for both in views) > central


@pytest.mark.parametrize(
    ("central", "stderr", "shift"), [(0.5, 5.69, 69), (1, 2.82, 36), (2, 1.37, 19)]
)
def test_a_count_is_as_exact_as_that_of_a_trusted_curator(
    central: float, stderr: float, shift: int, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = _answer(capsys, 30_000, 16, central, 1e-8)
    assert answer["stderr"] == pytest.approx(stderr, abs=0.01)
    assert answer["shift"] == shift
    assert answer["stderr"] <= 1.01 * 2 * sqrt(2) / central


@pytest.mark.parametrize(
    ("reports", "stderr"),
    [pytest.param(30_000, 4.3, marks=pytest.mark.thorough), (300_000, 10.06)],
)
def test_noise_dummies_are_few_beside_devices_at_8_nats(reports: int, stderr: float) -> None:
    """From where their lies hide a person none are drawn."""
    crowd = crowd_of(reports, 16, 8.0, honest=0.9)
    scale, shift = best_noise(crowd, 1.0, 1e-8)
    assert (scale == shift == 0) is (reports == 300_000)
    with_noise = crowd_of(reports, 16, 8.0, honest=0.9, noise_dummies=noise_of(scale, shift))
    assert with_noise.stderr(0.0) == pytest.approx(stderr, rel=0.012)
    assert central_epsilon(with_noise, 1e-8) <= 1


def test_the_loss_of_epochs_under_one_promise_is_that_of_their_counts() -> None:
    """Of two epochs, by enumeration of all four counts; of many they need less than of each."""
    law, delta = _law(1.5, 18), 1e-4
    crowd = crowd_of(100, 4, inf, noise_dummies=law)
    v, w = map(np.ravel, _bare({"scale": 1.5, "shift": 18}))
    exact = _epsilon_of(np.outer(v, v).ravel(), np.outer(w, w).ravel(), delta)
    assert exact <= composed_epsilon([(crowd, 2)], delta) <= exact * 1.001
    # Lies hide a person, too, even where all of a small law is found out.
    lying = crowd_of(4, 3, 1.5, noise_dummies=_law(0.7, 2))
    worst = 0.0
    for both in views_with_any_others(3, 3, exp(1.5), lying.lie, noise_chances(0.7, 2)):
        first, other = (np.outer(view, view).ravel() for view in both)
        worst = max(worst, _epsilon_of(first, other, 0.05))
    assert worst <= composed_epsilon([(lying, 2)], 0.05) <= 1.2 * worst
    scale, shift = best_noise(crowd, 1.0, 1e-8, 30)
    drawn = crowd_of(100, 4, inf, noise_dummies=_law(scale, shift))
    assert 0.95 < composed_epsilon([(drawn, 30)], 1e-8) <= 1
    assert scale < 0.8 * 30 * 2
