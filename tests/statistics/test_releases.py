"""Releases: sensitivities by trying every pair of payloads, and errors as theory has them."""

from math import exp, log, sqrt
from typing import Any

import numpy as np
import pytest

from hubbub.analysis.families import draw, family_for
from hubbub.catalog import Release
from hubbub.errors import BadParameter
from hubbub.mechanisms import AnyMechanism, Totals, build, tally
from hubbub.privacy.central_releases import ReleaseKind, release
from hubbub.privacy.proofs.enumeration import SMALL, rows

RELEASED = [m for m in SMALL if m.VALUES not in {"strings", "vectors"} and m.NAME != "pairs"]
LAPLACE, GAUSSIAN = Release("laplace", 1.0), Release("gaussian", 1.0, 1e-6)


@pytest.mark.parametrize("mechanism", RELEASED, ids=repr)
def test_no_pair_of_payloads_exceeds_the_computed_loss(mechanism: AnyMechanism) -> None:
    """Every payload against every other; and the estimates are what the numbers become."""
    payloads = list(rows(mechanism)[0])
    stats = [
        family_for(mechanism).statistic(mechanism, tally(mechanism.layout, [payload]))
        for payload in payloads
    ]
    l1, l2, unit, base = stats[0].l1, stats[0].l2, stats[0].unit, stats[0].base
    whole = np.array([stat.numbers for stat in stats])
    assert (whole == np.rint(whole)).all()
    first = second = 0.0
    for row in whole:
        apart = np.abs(whole - row)
        first = max(first, apart.sum(axis=1).max())
        second = max(second, np.sqrt((apart**2).sum(axis=1)).max())
    assert first <= l1
    assert second <= l2 * (1 + 1e-12)
    assert first == l1 or mechanism.NAME in {"buckets", "projective", "hadamard"}
    if mechanism.NAME not in {"wave", "haar"}:
        for payload, numbers in zip(payloads[:50], whole, strict=False):
            true = mechanism.estimate(tally(mechanism.layout, [payload])).values
            became = unit @ numbers if isinstance(unit, np.ndarray) else unit * numbers
            assert became + base == pytest.approx(true, abs=1e-9)


def _totals(mechanism: AnyMechanism, counts: list[int]) -> Totals:
    return draw(mechanism, list(mechanism.probes()), counts, np.random.default_rng(3))


def _release(
    mechanism: AnyMechanism, totals: Totals, query: ReleaseKind, policy: Release, **more: Any
) -> Any:
    labels = [f"value {place}" for place in range(len(mechanism.probes()))]
    value = more.pop("value", "")
    return release(
        [(mechanism, totals)], labels, query, value, policy=policy, reports_each=1, **more
    )


@pytest.mark.parametrize("policy", [LAPLACE, GAUSSIAN], ids=lambda policy: policy.mechanism)
@pytest.mark.parametrize(
    ("name", "changes"),
    [
        pytest.param("grr", 2, marks=pytest.mark.thorough),
        ("unary.oue", 4),
        pytest.param("subset", 2, marks=pytest.mark.thorough),
        pytest.param("hadamard", 4, marks=pytest.mark.thorough),
        pytest.param("projective", 2, marks=pytest.mark.thorough),
    ],
)
def test_the_noise_has_the_scale_that_theory_asks_for(
    name: str, changes: int, policy: Release
) -> None:
    """Laplace: sensitivity / epsilon. Gaussian: less than the classical sqrt(2 ln(1.25/delta)).

    The spread of 300 drawings of 4 numbers, within 6 of its own standard errors.
    """
    mechanism = build(name, epsilon=1.0, categories=4)
    totals = _totals(mechanism, [5000, 3000, 1000, 500])
    gap = float(mechanism.channel.p - mechanism.channel.q)  # type: ignore[attr-defined]
    truth = np.array(mechanism.estimate(totals).values)
    answers = [_release(mechanism, totals, "histogram", policy) for _ in range(300)]
    off = np.array([[value.estimate for value in answer] for answer in answers]) - truth
    claimed = answers[0][0].noise
    if policy is LAPLACE:
        alpha = exp(-1 / changes)
        assert claimed == pytest.approx(sqrt(2 * alpha) / (1 - alpha) / gap)
        assert claimed == pytest.approx(sqrt(2) * changes / gap, rel=0.05)
    else:
        assert claimed < sqrt(2 * log(1.25 / 1e-6)) * sqrt(changes) / gap
    error = 6 * sqrt(5 / off.size)  # the fourth moment of Laplace is 6, of Gauss 3
    assert (off**2).mean() / claimed**2 == pytest.approx(1, abs=error)
    assert abs(off.mean()) < 6 * claimed / sqrt(off.size)
    for value in answers[0]:
        assert value.stderr > value.noise
        assert value.low < value.estimate < value.high


def test_noise_of_a_release_is_least_for_a_count_and_grows_with_reports_each() -> None:
    mechanism = build("unary.oue", epsilon=1.0, categories=9)
    totals = _totals(mechanism, [500] * 9)
    [count] = _release(mechanism, totals, "count", LAPLACE, value="value 3")
    histogram = _release(mechanism, totals, "histogram", LAPLACE)
    assert count.value == "value 3"
    assert histogram[3].noise == pytest.approx(9 * count.noise, rel=0.15)
    labels = [f"value {place}" for place in range(9)]
    thrice = release(
        [(mechanism, totals)], labels, "count", "value 3", policy=LAPLACE, reports_each=3
    )
    assert thrice[0].noise == pytest.approx(3 * (count.noise or 0), rel=0.1)


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("mean.one_bit", {}),
        pytest.param("mean.piecewise", {"steps": 16}, marks=pytest.mark.thorough),
        pytest.param("mean.table", {}, marks=pytest.mark.thorough),
    ],
)
def test_a_mean_is_released_within_its_error(name: str, more: dict[str, int]) -> None:
    mechanism = build(name, epsilon=1.0, low=-2, high=8, **more)
    totals = draw(mechanism, [1.0, 4.0], [6000, 6000], np.random.default_rng(4))
    exact = -2 + 10 * mechanism.estimate(totals).values[0] / 12_000
    answers = [_release(mechanism, totals, "mean", LAPLACE)[0] for _ in range(400)]
    off = np.array([answer.estimate for answer in answers]) - exact
    assert (off**2).mean() / (answers[0].noise or 0) ** 2 == pytest.approx(1, abs=6 * sqrt(5 / 400))
    assert abs(answers[0].estimate - 2.5) < 6 * answers[0].stderr


@pytest.mark.parametrize(
    ("name", "more"), [("wave", {}), ("haar", {}), ("buckets", {"sampled": 3})]
)
def test_ranges_are_released_within_their_error(name: str, more: dict[str, int]) -> None:
    mechanism = build(name, epsilon=2.0, low=0, high=6, buckets=6, **more)
    counts = [4000, 3000, 2000, 1000, 500, 500]
    totals = _totals(mechanism, counts)
    answers = [_release(mechanism, totals, "histogram", LAPLACE) for _ in range(300)]
    assert answers[0][0].value == "[0, 1)"
    values = np.array([[value.estimate for value in answer] for answer in answers])
    noises = np.array([value.noise for value in answers[0]])
    assert (values.std(axis=0) / noises) == pytest.approx(np.ones(6), abs=6 * sqrt(1.25 / 300))
    for value, count in zip(answers[0], counts, strict=True):
        assert abs(value.estimate - count) < 6 * value.stderr


def test_the_most_common_value_is_found_as_often_as_its_lead_says() -> None:
    mechanism = build("grr", epsilon=3.0, categories=3)
    policy = Release("exponential", 1.0)
    ahead = Totals(cells=[140, 100, 60], reports=300)
    modes = [_release(mechanism, ahead, "mode", policy)[0].value for _ in range(40)]
    assert modes == ["value 0"] * 40  # 40 ahead of scale 2: wrong once in 10^8
    even = Totals(cells=[100, 100, 100], reports=300)
    picks = [_release(mechanism, even, "mode", policy)[0].value for _ in range(600)]
    for value in set(picks):
        assert abs(picks.count(value) - 200) < 6 * sqrt(600 * 2 / 9)
    assert len(set(picks)) == 3


def test_people_of_several_tiers_are_released_together() -> None:
    full, half = (build("grr", epsilon=e, categories=3) for e in (2.0, 1.0))
    parts = [(full, _totals(full, [600, 300, 100])), (half, _totals(half, [3000, 1500, 500]))]
    policy = Release("laplace", 5.0)
    product = release(parts, list("abc"), "histogram", "", policy=policy, reports_each=1)
    for value, true in zip(product, (3600, 1800, 600), strict=True):
        assert value.estimate is not None
        assert value.stderr is not None
        assert abs(value.estimate - true) < 6 * value.stderr
    with pytest.raises(BadParameter, match="tiers has no mode"):
        release(parts, list("abc"), "mode", "", policy=policy, reports_each=1)


@pytest.mark.parametrize(
    ("name", "query", "value", "policy", "message"),
    [
        ("grr", "mean", "", LAPLACE, "grr does not answer mean"),
        ("grr", "count", "", LAPLACE, "the query count needs a value"),
        ("grr", "histogram", "value 1", LAPLACE, "other queries need none"),
        ("grr", "count", "value 9", LAPLACE, "not one of the metric's"),
        ("grr", "mode", "", GAUSSIAN, "gaussian, which cannot answer mode"),
        ("grr", "count", "value 1", Release("exponential", 1.0), "exponential only mode"),
        ("mean.one_bit", "histogram", "", LAPLACE, "mean.one_bit does not answer histogram"),
        ("wave", "mode", "", LAPLACE, "request the histogram"),
        ("cms", "histogram", "", LAPLACE, "over strings cannot be released"),
    ],
)
def test_a_query_without_an_answer_is_named(
    name: str, query: ReleaseKind, value: str, policy: Release, message: str
) -> None:
    [mechanism] = [m for m in SMALL if name == m.NAME][:1]
    totals = Totals(cells=[50] * mechanism.layout.size, reports=50 * mechanism.layout.size)
    with pytest.raises(BadParameter, match=message):
        _release(mechanism, totals, query, policy, value=value)


def test_a_metric_of_parts_is_not_released() -> None:
    for mechanism in (m for m in SMALL if m.NAME == "pairs"):
        totals = Totals(cells=[50] * mechanism.layout.size, reports=50 * mechanism.layout.size)
        with pytest.raises(BadParameter, match="make a metric of each part"):
            family_for(mechanism).statistic(mechanism, totals)
