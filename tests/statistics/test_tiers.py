"""Tiers: a person may ask for less epsilon; each tier is a stream, and an answer combines them."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from hubbub.analysis.answering import answer, answer_tiers
from hubbub.analysis.families.tiers_and_rows import choice_variance
from hubbub.bundles import read_bundle
from hubbub.errors import BatchTooSmall, UnknownMetric
from hubbub.mechanisms import AnyMechanism, KeyedBits, Totals, build, tally
from hubbub.shuffler.stream_table import read_stream_table
from hubbub.signing.sign_bundle import stream_table
from tests.conftest import CATALOG
from tests.support.bundles import DAY, Signed, make_signed

# Two-sided, false alarm below 1e-6.
Z = 4.9


def test_every_tier_is_a_stream_with_its_own_length_and_limits_of_the_metric(
    signed: Signed, tmp_path: Path
) -> None:
    bundle = read_bundle(signed.path)
    assert bundle == signed.bundle
    assert bundle.metric("crashed").streams == ("crashed", "crashed/0.5", "crashed/1")
    assert {name for name in bundle.streams if name.startswith("crashed")} == {
        "crashed",
        "crashed/0.5",
        "crashed/1",
    }
    half = bundle.metric("crashed/0.5")
    assert (half.base_name, half.tier, half.epsilon) == ("crashed", "0.5", 0.5)
    assert half.report_loss <= 0.5
    assert half.limits == bundle.metric("crashed").limits
    table = tmp_path / "streams.json"
    table.write_text(stream_table(bundle))
    streams = read_stream_table(table).streams
    assert streams["crashed/0.5"] == streams["crashed"]
    with pytest.raises(UnknownMetric, match=r'"crashed" has no tier "0.7"; it has 0.5, 1$'):
        bundle.metric("crashed/0.7")


def test_a_permanent_epsilon_is_scaled_with_it(tmp_path: Path) -> None:
    text = CATALOG.replace(
        'mechanism = "unary.oue"', 'mechanism = "long.grr"\npermanent_epsilon = 3\ntiers = [0.25]'
    )
    quarter = make_signed(tmp_path, text, start=20_000 * DAY).bundle.metric("theme/0.25")
    assert quarter.parameters == {"permanent_epsilon": 0.75}
    assert quarter.lifetime_loss <= 0.75


def test_the_largest_epsilon_that_is_allowed_is_chosen(signed: Signed) -> None:
    crashed = signed.bundle.metric("crashed")
    for most, stream in (
        (math.inf, "crashed"),
        (2.0, "crashed"),
        (1.9, "crashed/1"),
        (0.5, "crashed/0.5"),
        (0.4, None),
        (0.0, None),
    ):
        assert crashed.stream_within(most, most) == stream


def _draw_tier(
    mechanism: AnyMechanism, truth: list[int], chance: np.random.Generator
) -> tuple[AnyMechanism, Totals]:
    """Totals of k-ary randomized response, from their exact law."""
    p, q = float(mechanism.channel.p), float(mechanism.channel.q)  # type: ignore[attr-defined]
    cells: npt.NDArray[np.int64] = sum(  # type: ignore[assignment]
        chance.multinomial(n, [p if v == code else q for v in range(len(truth))])
        for code, n in enumerate(truth)
    )
    return mechanism, Totals(cells=cells.tolist(), reports=sum(truth))


def test_combined_estimates_are_unbiased_and_their_intervals_hold() -> None:
    """Three tiers of unlike sizes, 400 times: 10 values each."""
    chance = np.random.default_rng(20_261_121)
    shares = [0.4, 0.2, 0.1, 0.1, 0.05, 0.05, 0.04, 0.03, 0.02, 0.01]
    sizes = {0.5: 4000, 1.0: 2000, 2.0: 6000}
    truth = [round(share * sum(sizes.values())) for share in shares]
    names = [str(n) for n in range(10)]
    scores, holds, listed, errors = [], [], [], []
    for _ in range(400):
        tiers = [
            _draw_tier(
                build("grr", epsilon=epsilon, categories=10),
                [round(share * size) for share in shares],
                chance,
            )
            for epsilon, size in sizes.items()
        ]
        result = answer_tiers(tiers, names)
        assert result.reports == sum(sizes.values())
        scores += [(v.estimate - t) / v.stderr for v, t in zip(result.values, truth, strict=True)]
        holds += [
            abs(v.estimate - t) <= 1.959964 * v.stderr
            for v, t in zip(result.values, truth, strict=True)
        ]
        listed += [v.low <= t <= v.high for v, t in zip(result.values, truth, strict=True)]
        errors.append(result.values[5].stderr)
    assert abs(np.mean(scores)) < Z / math.sqrt(len(scores))
    assert abs(np.mean(holds) - 0.95) < Z * math.sqrt(0.95 * 0.05 / len(holds)) + 0.003
    assert np.mean(listed) >= 0.95
    # The largest tier alone, standing in for everybody: by its coins, and by who is in it.
    scale = sum(sizes.values()) / sizes[2.0]
    alone = answer(*tiers[-1], names).values[5]
    scales = np.array([0.0, 0.0, scale])
    others = choice_variance(scales, list(sizes.values()), np.array([scale * alone.estimate]))
    best = math.hypot(scale * alone.stderr, math.sqrt(float(others[0])))
    assert np.mean(errors) < best, "the careful ones add something"


@pytest.mark.parametrize(
    ("name", "parameters", "values", "candidates", "value"),
    [
        ("unary.oue", {"categories": 3}, ["a", "b", "c"], [], 1),
        ("projective", {"categories": 5}, ["a", "b", "c", "d", "e"], [], 1),
        ("cms", {"hashes": 4, "width": 16}, None, ["a", "b"], "a"),
        ("mean.one_bit", {"low": 0, "high": 10}, None, [], 2.5),
        ("buckets", {"low": 0, "high": 8, "buckets": 4, "sampled": 2}, None, [], 2.5),
        ("wave", {"low": 0, "high": 8, "buckets": 4}, None, [], 2.5),
        ("haar", {"low": 0, "high": 8, "buckets": 4}, None, [], 2.5),
    ],
)
def test_mechanisms_of_every_kind_combine(
    name: str,
    parameters: dict[str, Any],
    values: list[str] | None,
    candidates: list[str],
    value: Any,
) -> None:
    """Half of the people at each tier."""
    coins, tiers = KeyedBits(b"tiers of people, half and half 1"), []
    for epsilon in (2.0, 4.0):
        mechanism = build(name, epsilon=epsilon, **parameters)
        payloads = [mechanism.randomize(value, coins) for _ in range(2000)]
        tiers.append((mechanism, tally(mechanism.layout, payloads)))
    nobody = build(name, epsilon=1.0, **parameters)
    tiers.insert(0, (nobody, Totals(cells=[0] * nobody.layout.size, reports=0)))
    result = answer_tiers(tiers, values, candidates)
    assert result.reports == 4000
    place = values.index("b") if values else {"wave": 1, "haar": 1, "buckets": 1}.get(name, 0)
    answer_value = result.values[place]
    expected = 2.5 if name == "mean.one_bit" else 4000
    assert abs(answer_value.estimate - expected) < 5.2 * answer_value.stderr
    alone = answer(*tiers[1], values, candidates)
    lone_value = next(v for v in alone.values if v.value == answer_value.value)
    assert (
        answer_value.stderr / result.reports < lone_value.stderr / alone.reports
        or result.kind == "mean"
    )
    if name == "wave":
        assert answer_value.consistent is not None


def test_tiers_without_reports_are_refused() -> None:
    tiers = [
        (mechanism, Totals(cells=[0] * mechanism.layout.size, reports=0))
        for mechanism in (build("wave", epsilon=e, low=0, high=1, buckets=4) for e in (1.0, 2.0))
    ]
    with pytest.raises(BatchTooSmall, match="no reports"):
        answer_tiers(tiers, None)
