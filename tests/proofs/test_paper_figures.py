"""The chances and variances that the papers print, worked out here once more, in floats.

The proofs show that a mechanism keeps its own word; this shows that it is the published one.
"""

import math

import pytest

from hubbub.mechanisms import AnyMechanism, build
from hubbub.mechanisms.pure_protocols import Pure

EPSILONS = (0.5, 1.0, 2.0, 4.0)


def _channel(mechanism: AnyMechanism) -> Pure:
    channel = mechanism.channel  # type: ignore[attr-defined]
    assert isinstance(channel, Pure)
    return channel


def _rare(mechanism: AnyMechanism) -> float:
    """Variance of the share of a value that nobody holds, times the number of reports."""
    return mechanism.variance(0, 1000) / 1000


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_variances_of_rare_values_are_the_published_ones(epsilon: float) -> None:
    """Wang et al. (2017), sections 4.1 and 4.3; Acharya, Sun, Zhang (2019); Warner (1965)."""
    e, half, d = math.exp(epsilon), math.exp(epsilon / 2), 128
    published = {
        "grr": (e + d - 2) / (e - 1) ** 2,
        "unary.sue": half / (half - 1) ** 2,
        "unary.oue": 4 * e / (e - 1) ** 2,
        "hadamard": (e + 1) ** 2 / (e - 1) ** 2,
    }
    for name, variance in published.items():
        assert math.isclose(
            _rare(build(name, epsilon=epsilon, categories=d)), variance, rel_tol=1e-9
        )
    assert math.isclose(_rare(build("rr", epsilon=epsilon)), e / (e - 1) ** 2, rel_tol=1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_chances_of_subset_selection_are_the_published_ones(epsilon: float) -> None:
    """Ye and Barg (2018), with w = round(d/(e+1))."""
    e, d = math.exp(epsilon), 100
    w = max(1, round(d / (e + 1)))
    channel = _channel(build("subset", epsilon=epsilon, categories=d))
    p = w * e / (w * e + d - w)
    assert math.isclose(channel.p, p, rel_tol=1e-9)
    assert math.isclose(channel.q, p * (w - 1) / (d - 1) + (1 - p) * w / (d - 1), rel_tol=1e-9)


def test_chances_of_projective_response_are_the_published_ones() -> None:
    """Feldman et al. (2022), section 3: over 3 with 5 coordinates there are 121 points."""
    mechanism = build("projective", epsilon=1.0, categories=121)
    space = mechanism.transform  # type: ignore[attr-defined]
    assert (space.prime, space.points, space.on_one, space.on_two) == (3, 121, 40, 13)
    total = (math.e - 1) * 40 + 121
    channel = _channel(mechanism)
    assert math.isclose(channel.p, math.e * 40 / total, rel_tol=1e-9)
    assert math.isclose(channel.q, ((math.e - 1) * 13 + 40) / total, rel_tol=1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_large_domains_come_near_the_best_possible_variance(epsilon: float) -> None:
    """4 e/(e-1)^2 for rare values; peers crash or lose a factor of two at small epsilon."""
    e = math.exp(epsilon)
    for categories in (16, 128, 1024, 1 << 20):
        lost = _rare(build("projective", epsilon=epsilon, categories=categories))
        lost /= 4 * e / (e - 1) ** 2
        assert lost < 1.15


@pytest.mark.parametrize("epsilon", [2.0**-10, 0.01, 0.1, 8.0, 16.0])
@pytest.mark.parametrize("categories", [2, 3, 1000, 1 << 20])
def test_no_epsilon_makes_a_large_domain_fail(epsilon: float, categories: int) -> None:
    for name in ("hadamard", "projective"):
        mechanism = build(name, epsilon=epsilon, categories=categories)
        assert 0.999 * epsilon <= mechanism.privacy_loss() <= epsilon
        assert 0 < _rare(mechanism) < math.inf


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_sketches_flip_with_the_published_chances(epsilon: float) -> None:
    """Apple (2017): 1/(1 + e^(epsilon/2)) per bit of CMS, 1/(1 + e^epsilon) of HCMS."""
    cms = build("cms", epsilon=epsilon, hashes=16, width=64)
    hcms = build("hcms", epsilon=epsilon, hashes=16, width=64)
    assert math.isclose(_channel(cms).q, 1 / (1 + math.exp(epsilon / 2)), rel_tol=1e-9)
    assert math.isclose(_channel(hcms).p, 1 - 1 / (1 + math.exp(epsilon)), rel_tol=1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_means_have_the_published_variances(epsilon: float) -> None:
    """Ding et al. (2017); Wang N. et al. (2019), lemma 1, for t in [-1, 1]: a range of 2."""
    e, half = math.exp(epsilon), math.exp(epsilon / 2)
    for t in (-1.0, -0.5, 0.0, 0.75):
        place = (t + 1) / 2
        one_bit = build("mean.one_bit", epsilon=epsilon, low=-1, high=1)
        chance = 1 / (e + 1) + place * (e - 1) / (e + 1)
        expected = ((e + 1) / (e - 1)) ** 2 * chance * (1 - chance)
        assert math.isclose(one_bit.variance(place, 1), expected, rel_tol=1e-9)
        piecewise = build("mean.piecewise", epsilon=epsilon, low=-1, high=1, steps=4096)
        expected = (t * t / (half - 1) + (half + 3) / (3 * (half - 1) ** 2)) / 4
        assert math.isclose(piecewise.variance(place, 1), expected, rel_tol=1e-3)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_buckets_have_the_published_variance(epsilon: float) -> None:
    """Ding et al. (2017), section 3: k = 32 buckets, 4 of them asked."""
    half, n, t = math.exp(epsilon / 2), 1000, 300
    flips = build("buckets", epsilon=epsilon, low=0, high=1, buckets=32, sampled=4)
    expected = n * 8 * (half / (half - 1) ** 2) + t * (8 - 1)
    assert math.isclose(flips.variance(t, n), expected, rel_tol=1e-9)


def test_longitudinal_unary_has_the_published_second_step() -> None:
    """Arcolezi et al. (2022): p2 = (ab - 1)/((a - 1)(b + 1)), a and b the two exponentials."""
    a, b = math.exp(3.0), math.exp(1.0)
    mechanism = build("long.unary", epsilon=1.0, permanent_epsilon=3.0, categories=9)
    keep = mechanism.flip.complement.exact  # type: ignore[attr-defined]
    assert math.isclose(keep, (a * b - 1) / ((a - 1) * (b + 1)), rel_tol=1e-9)


@pytest.mark.parametrize(("categories", "report", "forever"), [(12, 0.5, 1.0), (20, 1.0, 2.0)])
def test_longitudinal_grr_spends_all_of_its_epsilon(
    categories: int, report: float, forever: float
) -> None:
    """The published second step loses .22 of .5 at 12 values, .512 of 1 at 20."""
    mechanism = build("long.grr", epsilon=report, permanent_epsilon=forever, categories=categories)
    assert math.isclose(mechanism.privacy_loss(), report, rel_tol=1e-9)
    assert math.isclose(mechanism.permanent_loss(), forever, rel_tol=1e-9)  # type: ignore[attr-defined]
    a, b, d = math.exp(forever), math.exp(report), categories
    rest = (b * (a + d - 2) - (d - 1)) / (a - b)
    assert math.isclose(mechanism.fresh.exact, rest / (rest + d - 1), rel_tol=1e-9)  # type: ignore[attr-defined]


@pytest.mark.parametrize(("categories", "report", "forever"), [(18, 1.0, 3.0), (80, 2.0, 4.0)])
def test_longitudinal_hashing_is_no_worse_than_the_published_one(
    categories: int, report: float, forever: float
) -> None:
    """LOLOHA (2023), of functions drawn at random: two values collide under one in g of them."""
    mechanism = build("long.hash", epsilon=report, permanent_epsilon=forever, categories=categories)
    assert math.isclose(mechanism.privacy_loss(), report, rel_tol=1e-9)
    assert math.isclose(mechanism.permanent_loss(), forever, rel_tol=1e-9)  # type: ignore[attr-defined]
    g = mechanism.transform.prime  # type: ignore[attr-defined]
    p, q = math.exp(report) / (math.exp(report) + g - 1), 1 / g
    published = q * (1 - q) / (p - q) ** 2
    assert 0.8 * published < _rare(mechanism) <= published * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_wave_has_the_published_width(epsilon: float) -> None:
    """Li et al. (2020), section 5.3: b = (epsilon e - e + 1)/(2 e (e - 1 - epsilon))."""
    e = math.exp(epsilon)
    b = (epsilon * e - e + 1) / (2 * e * (e - 1 - epsilon))
    wave = build("wave", epsilon=epsilon, low=0, high=1, buckets=1024)
    width = wave.window.width  # type: ignore[attr-defined]
    assert abs(width - 2 * b * 1024) <= 0.5
    near = wave.window.near  # type: ignore[attr-defined]
    assert math.isclose(float(near) * width, 2 * b * e / (2 * b * e + 1), rel_tol=5e-3)
