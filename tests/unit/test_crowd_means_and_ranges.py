"""Numbers in a crowd: what is planned for them, and what is refused with what would do."""

from dataclasses import dataclass, replace
from math import log

import pytest

from hubbub.authoring.crowds.crowd_values import planned_number
from hubbub.catalog import Crowd, Metric
from hubbub.errors import BadParameter, CatalogInvalid
from hubbub.mechanisms import build
from hubbub.mechanisms.even_lies import lies_evenly
from hubbub.privacy.crowd_guarantees import central_of
from tests.support.catalogs import catalog_toml, metric_toml, promised_catalog_of

TEXT = catalog_toml(
    metric_toml(
        "start",
        domain="number",
        low=0,
        high=10,
        central_epsilon=1.0,
        crowd=30000,
        lifetime_epsilon=500.0,
    )
)
WAVE = 'mechanism = "wave"\nbuckets = '


def _read(more: str) -> Metric:
    return promised_catalog_of(TEXT + more).metrics["start"]


@dataclass(frozen=True)
class _Roughly:
    """A quick accountant: 61 lies a value keep epsilon 1, other epsilons in proportion."""

    def local_epsilon(self, promise: Crowd, categories: float, groups: int = 1) -> float:
        del groups
        lies = 61 / promise.epsilon**2
        odds = promise.reports * promise.honest / lies - categories + 1
        return max(min(log(max(odds, 1.01)), promise.max_local_epsilon), promise.epsilon)

    def keeps(self, promise: Crowd, categories: float, epsilon: float, groups: int = 1) -> bool:
        raise NotImplementedError

    def gaussian(self, promise: Crowd, categories: float, epsilon: float, groups: int = 1) -> float:
        raise NotImplementedError

    def padded(self, promise: Crowd, categories: int, dummies: str, **how: bool) -> Crowd:
        raise NotImplementedError

    def crowd_needed(
        self, promise: Crowd, categories: float, epsilon: float, groups: int = 1
    ) -> int | None:
        del promise, categories, groups
        return round(epsilon * 1000)


@pytest.mark.parametrize(
    "crowd", [20, 1000, 30_000, pytest.param(10**6, marks=pytest.mark.thorough)]
)
@pytest.mark.slow
def test_auto_takes_the_steps_with_the_least_worst_error(crowd: int) -> None:
    promise, table = (
        Crowd(epsilon=1.0, reports=crowd, delta=1e-8, honest=0.9, max_local_epsilon=16.0),
        {"low": 0, "high": 10},
    )
    plan = planned_number({**table, "mechanism": "auto"}, promise, _Roughly())

    def worst(name: str, steps: int) -> float:
        parameters = {"steps": steps} if steps > 1 else {}
        epsilon = _Roughly().local_epsilon(promise, steps + 1)
        mechanism = build(name, epsilon=epsilon, **table, **parameters)
        if not lies_evenly(mechanism):
            return 1e99
        return max(mechanism.variance(x / 199 * crowd, crowd) for x in range(200))

    every = [worst("mean.piecewise" if s > 1 else "mean.one_bit", s) for s in range(1, 71)]
    assert worst(plan.mechanism, int(plan.categories) - 1) <= 1.06 * min(every)
    assert (plan.categories > 20) == (crowd > 10**5)


@pytest.mark.slow
def test_a_mean_and_the_parts_of_a_range_keep_the_promise() -> None:
    mean = _read('mechanism = "auto"\n')
    assert mean.mechanism == "mean.piecewise"
    parts = _read(WAVE + "20\n")
    for metric, cells in ((mean, int(mean.parameters["steps"]) + 1), (parts, 20)):
        assert metric.randomizer.layout.size == cells
        assert (metric.mix, metric.min_batch) == ("epoch", 30_000)
        promise = central_of(metric, 30_000)
        assert 0.99 <= promise.epsilon <= 1.0
    alone = build("mean.piecewise", epsilon=1.0, low=0, high=10)
    rate = alone.variance(15_000, 30_000) / mean.randomizer.variance(15_000, 30_000)
    assert rate > 100, "ten times nearer than each report alone at the same epsilon"


def test_parts_too_fine_for_a_crowd_are_refused_with_the_crowd_that_would_do() -> None:
    promise = Crowd(epsilon=1.0, reports=1000, delta=1e-8, honest=0.9, max_local_epsilon=8.0)
    table = {"mechanism": "wave", "low": 0, "high": 10, "buckets": 400}
    with pytest.raises(BadParameter, match="use fewer buckets, or gather a crowd of ") as error:
        planned_number(table, promise, _Roughly())
    epsilon = float(str(error.value).rpartition(" ")[2].replace(",", "")) / 1000
    even = [
        lies_evenly(build("wave", epsilon=e, low=0, high=10, buckets=400))
        for e in (epsilon, epsilon - 0.011)
    ]
    assert even == [True, False]
    low = replace(promise, max_local_epsilon=2.0)
    with pytest.raises(BadParameter, match="or raise max_local_epsilon"):
        planned_number(table, low, _Roughly())


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ('mechanism = "buckets"\nbuckets = 8\nsampled = 2\n', r"numbers with wave, mean\."),
        ('mechanism = "grr"\n', r"numbers with wave"),
        (WAVE + '"many"\n', r"buckets"),
        ('mechanism = "wave"\n', r"buckets"),
        pytest.param(
            'mechanism = "mean.one_bit"\nepsilon = 15.0\nmax_local_epsilon = 16\n',
            r"write 6\.\d+ at",
            marks=pytest.mark.slow,
        ),
        ('mechanism = "mean.one_bit"\nepsilon = "much"\n', r'field "epsilon"'),
    ],
)
def test_an_invalid_number_of_a_crowd_is_named(more: str, message: str) -> None:
    with pytest.raises(CatalogInvalid, match=message):
        _read(more)


@pytest.mark.slow
def test_missing_ends_of_a_range_are_named() -> None:
    with pytest.raises(CatalogInvalid, match="low None and high 10 are not a range"):
        promised_catalog_of(TEXT.replace("low = 0\n", "") + 'mechanism = "auto"\n')


def test_yes_or_no_is_two_listed_values() -> None:
    text = TEXT.replace('domain = "number"\nlow = 0\nhigh = 10\n', 'values = ["true", "false"]\n')
    metric = promised_catalog_of(text + 'mechanism = "auto"\n').metrics["start"]
    assert (metric.code(True), metric.code(False)) == (0, 1)  # noqa: FBT003 the value itself
    promise = central_of(metric, 30_000)
    assert 0.99 <= promise.epsilon <= 1.0


def test_a_bundle_with_parts_too_fine_is_refused() -> None:
    metric = _read(WAVE + "20\n")
    with pytest.raises(BadParameter, match="is not spread evenly, so nothing is proven"):
        replace(metric, epsilon=1.0, parameters={**metric.parameters, "buckets": 20})
