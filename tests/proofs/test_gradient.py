"""What a device tells of itself to a model: within its clip."""

import math
from collections.abc import Sequence

import pytest

from hubbub.errors import BadParameter
from hubbub.mechanisms.gradient import (
    CLIP,
    ModelKind,
    chances,
    check_classes,
    check_size,
    contrasts,
    dimensions_of,
    gradient,
    longest,
    place,
    to_judge,
)


def _loss(kind: ModelKind, about: Sequence[float], label: float, weights: Sequence[float]) -> float:
    score = math.fsum(x * w for x, w in zip(about, weights, strict=True))
    if kind == "logistic":
        return math.log1p(math.exp(score)) - label * score
    return (score - label) ** 2 / 2


@pytest.mark.parametrize("kind", ["logistic", "linear", "ridge"])
def test_a_gradient_is_the_losss_own_at_length_one_of_its_columns(kind: ModelKind) -> None:
    columns, centre, weights, label = [0.2, 1.0], [0.5, 0.25], [0.1, -0.2, 0.05], 0.1
    about = [*(x - c for x, c in zip(columns, centre, strict=True)), 1.0]
    result = gradient(kind, columns, label, centre, weights)
    step = 1e-6
    for at in range(3):
        up, down = (
            [w + sign * step * (at == i) for i, w in enumerate(weights)] for sign in (1, -1)
        )
        slope = (_loss(kind, about, label, up) - _loss(kind, about, label, down)) / (2 * step)
        assert result[at] * CLIP[kind] * math.hypot(*about) == pytest.approx(slope, abs=1e-8)


@pytest.mark.parametrize("kind", ["logistic", "linear", "ridge"])
def test_no_gradient_is_longer_than_its_clip(kind: ModelKind) -> None:
    for weight in (-1e6, -1.0, 0.0, 1.0, 1e6):
        for label in (0.0, 1.0):
            result = gradient(kind, [1.0, 0.0], label, [0.0, 1.0], [weight, weight, weight])
            assert math.hypot(*result) <= 1 + 1e-12


@pytest.mark.parametrize("classes", [3, 16])
def test_contrasts_are_orthonormal_and_orthogonal_to_ones(
    classes: int,
) -> None:
    rows = [*contrasts(classes), [1 / math.sqrt(classes)] * classes]
    for at, row in enumerate(rows):
        for other, beside in enumerate(rows):
            product = math.fsum(a * b for a, b in zip(row, beside, strict=True))
            assert product == pytest.approx(float(at == other), abs=1e-12)


WEIGHTS = [0.1, -0.2, 0.05, 0.7, 0.3, -0.4, -0.6, 0.2, 0.1]
"""Of three contrasts, so four classes, and two columns with the intercept."""


def _softmax(about: Sequence[float], weights: Sequence[float]) -> list[float]:
    rows = [weights[at : at + 3] for at in (0, 3, 6)]
    scores = [math.fsum(x * w for x, w in zip(about, row, strict=True)) for row in rows]
    parts = [
        math.exp(math.fsum(t * c for t, c in zip(scores, coefficients, strict=True)))
        for coefficients in zip(*contrasts(4), strict=True)
    ]
    return [part / math.fsum(parts) for part in parts]


@pytest.mark.parametrize("label", [0, 3])
def test_a_gradient_of_classes_is_that_of_the_surprise_at_length_one_of_its_columns(
    label: int,
) -> None:
    columns, centre = [0.2, 1.0], [0.5, 0.25]
    about = [-0.3, 0.75, 1.0]
    result = gradient("softmax", columns, float(label), centre, WEIGHTS)
    step = 1e-6
    slopes = []
    for at in range(9):
        moved = ([w + sign * step * (at == i) for i, w in enumerate(WEIGHTS)] for sign in (1, -1))
        up, down = (-math.log(_softmax(about, weights)[label]) for weights in moved)
        slopes.append((up - down) / (2 * step))
    length = math.hypot(*slopes) / math.hypot(*about)
    clipped = [slope / max(length, CLIP["softmax"]) / math.hypot(*about) for slope in slopes]
    assert result == pytest.approx(clipped, abs=1e-8)
    assert math.hypot(*result) <= 1 + 1e-12
    for weight in (-1e6, 1e6):
        wild = gradient("softmax", [1.0, 0.0], 2.0, [0.0, 1.0], [weight * w for w in WEIGHTS])
        assert math.hypot(*wild) <= 1 + 1e-12


def test_rounds_settle_where_people_are_of_classes_with_these_chances() -> None:
    softmax = [0.05, 0.6, 0.25, 0.1]
    chance = chances(softmax)
    assert math.fsum(chance) == pytest.approx(1.0)
    for at in range(4):
        mean = 0.0
        for label, label_chance in enumerate(chance):
            off = [s - (place == label) for place, s in enumerate(softmax)]
            mean += label_chance * off[at] / max(math.hypot(*off), CLIP["softmax"])
        assert mean == pytest.approx(0.0, abs=1e-12)


def test_a_held_out_device_reports_score_and_label_or_class_and_correctness() -> None:
    person, centre = [0.2, 1.0], [0.5, 0.25]
    assert to_judge("logistic", person, 1.0, centre, [1.0, 2.0, 0.5]) == pytest.approx((1.7, 1.0))
    class_chances = chances(_softmax([-0.3, 0.75, 1.0], WEIGHTS))
    for label in range(4):
        right = float(class_chances[label] == max(class_chances))
        judgment = to_judge("softmax", person, float(label), centre, WEIGHTS)
        assert judgment == pytest.approx((max(class_chances), right))


def test_the_round_of_columns_scales_places_by_its_clip() -> None:
    assert longest(4) == 2.0
    assert longest(1000) == 2.7
    assert place([1.0, 0.0, 0.5, 1.0]) == [0.5, 0.0, 0.25, 0.5, 0.0]


def test_a_gradient_has_a_number_for_each_column_and_contrast_up_to_a_thousand_and_one() -> None:
    assert dimensions_of(64, 0) == 65
    assert dimensions_of(12, 6) == 65
    check_size(1000, 0, "logistic")
    check_size(65, 16, "softmax")
    check_classes(["a", "b", "c"])
    for columns, classes, kind, why in (
        (0, 0, "linear", "0 columns are outside"),
        (1001, 0, "linear", "1001 columns are outside"),
        (4, 3, "logistic", "classes is of softmax"),
        (4, 0, "softmax", "classes is missing"),
        (4, 2, "softmax", "for two use logistic"),
        (4, 17, "softmax", "classes has 17"),
        (66, 16, "softmax", "has 1005 numbers, above 1001"),
    ):
        with pytest.raises(BadParameter, match=why):
            check_size(columns, classes, kind)
    for names in (["a", "b", "a"], ["a", " ", "b"]):
        with pytest.raises(BadParameter, match="a class twice, or an empty class"):
            check_classes(names)
