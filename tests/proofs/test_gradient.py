"""What a device tells of itself to a model: within its clip, and told without bias at length 1."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from hubbub.mechanisms import Probability
from hubbub.mechanisms.gradient import CLIP, ModelKind, gradient, longest, place, unit


@dataclass
class Coin:
    """One coin that falls as told, and what it was asked."""

    heads: bool
    asked: Probability | None = None

    def chance(self, probability: Probability, /) -> bool:
        self.asked = probability
        return self.heads

    def below(self, limit: int, /) -> int:
        raise AssertionError(limit)

    def mask(self, probability: Probability, width: int, /) -> int:
        raise AssertionError((probability, width))


@pytest.mark.parametrize(
    "vector",
    [[0.3, -0.4], [0.0, 1.0, 0.0], [0.0, 0.0], [2.0, 0.0], [1e-9], [3e-162, 4e-162], [5e-324, 0.0]],
)
def test_a_unit_vector_has_the_vector_as_its_mean(vector: list[float]) -> None:
    told, turned = (unit(vector, Coin(heads)) for heads in (False, True))
    coin = Coin(heads=True)
    unit(vector, coin)
    assert coin.asked is not None
    chance = float(coin.asked.exact)
    mean = [(1 - chance) * a + chance * b for a, b in zip(told, turned, strict=True)]
    for one in (told, turned):
        assert math.hypot(*one) == pytest.approx(1.0, abs=1e-12)
    length = math.hypot(*vector)
    assert mean == pytest.approx([x / max(length, 1.0) for x in vector], abs=1e-12)


def _loss(kind: ModelKind, about: Sequence[float], label: float, weights: Sequence[float]) -> float:
    score = math.fsum(x * w for x, w in zip(about, weights, strict=True))
    if kind == "logistic":
        return math.log1p(math.exp(score)) - label * score
    return (score - label) ** 2 / 2


@pytest.mark.parametrize("kind", ["logistic", "linear", "ridge"])
def test_a_gradient_is_the_losss_own_at_length_one_of_its_columns(kind: ModelKind) -> None:
    columns, centre, weights, label = [0.2, 1.0], [0.5, 0.25], [0.1, -0.2, 0.05], 0.1
    about = [*(x - c for x, c in zip(columns, centre, strict=True)), 1.0]
    found = gradient(kind, columns, label, centre, weights)
    step = 1e-6
    for at in range(3):
        up, down = (
            [w + sign * step * (at == i) for i, w in enumerate(weights)] for sign in (1, -1)
        )
        slope = (_loss(kind, about, label, up) - _loss(kind, about, label, down)) / (2 * step)
        assert found[at] * CLIP[kind] * math.hypot(*about) == pytest.approx(slope, abs=1e-8)


@pytest.mark.parametrize("kind", ["logistic", "linear", "ridge"])
def test_no_gradient_is_longer_than_its_clip(kind: ModelKind) -> None:
    for weight in (-1e6, -1.0, 0.0, 1.0, 1e6):
        for label in (0.0, 1.0):
            found = gradient(kind, [1.0, 0.0], label, [0.0, 1.0], [weight, weight, weight])
            assert math.hypot(*found) <= 1 + 1e-12


def test_where_columns_lie_is_told_over_its_clip() -> None:
    assert longest(4) == 2.0
    assert longest(1000) == 2.7
    assert place([1.0, 0.0, 0.5, 1.0]) == [0.5, 0.0, 0.25, 0.5, 0.0]
