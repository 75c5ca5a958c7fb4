"""Whole epochs under attack: an honest account holds, and one that hides less is caught."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import inf, log
from pathlib import Path

import pytest
from numpy.random import default_rng

from hubbub.authoring import read_with_promises
from hubbub.catalog import Metric
from hubbub.client.state.secret import DeviceMemo
from hubbub.mechanisms import KeyedBits, build
from hubbub.mechanisms.string_hashing import encoded, position
from hubbub.mechanisms.vector_codes import VectorCodes
from hubbub.privacy.crowd_guarantees import smallest_crowd
from hubbub.privacy.proofs import audit
from hubbub.privacy.proofs.audit import Check
from hubbub.privacy.proofs.distinguishing_attack import (
    Attacked,
    Neighbours,
    attack_epochs,
    draw_neighbours,
    draw_sums,
)
from hubbub.privacy.shuffled_epoch import ShuffledEpoch
from hubbub.privacy.shuffled_histogram import central_epsilon
from hubbub.sealing.dummy_laws import CountNoise, ValueNoise
from tests.support.catalogs import catalog_toml, metric_toml
from tests.support.crowds import crowd_of

pytestmark = pytest.mark.thorough

ALARM, DELTA, EPOCHS = 1e-7, 0.01, 600_000
CATALOG = catalog_toml(
    metric_toml("crowded", central_epsilon=1.0, crowd=3000, lifetime_epsilon=500.0)
)
LISTED = 'mechanism = "auto"\nvalues = ["light", "dark", "system", "contrast"]'
STRING = 'mechanism = "auto"\ndomain = "string"'
NUMBER = 'mechanism = "wave"\nbuckets = 5\ndomain = "number"\nlow = 0\nhigh = 10'
NOISE = 'dummies = "noise"\n'
MEAN = f'{NOISE}mechanism = "auto"\ndomain = "number"\nlow = 0\nhigh = 10'
CROWDS = [
    (crowd_of(500, 2, 3.0), crowd_of(1000, 2, 3.0)),
    (crowd_of(1000, 3, 3.5), crowd_of(1000, 3, 3.5, dummies=80)),
    (crowd_of(10_000, 16, 6.0, honest=0.9), crowd_of(10_000, 16, 6.0 - log(2), honest=0.9)),
    (
        crowd_of(2000, 64, 7.0, honest=0.5, dummies=1500),
        crowd_of(2000, 64, 7.0, honest=1.0, dummies=3000),
    ),
    (crowd_of(9000, 32, 4.5, honest=0.9, groups=3), crowd_of(9000, 32, 4.5, honest=0.9)),
    (crowd_of(4000, 256 / 9, 5.0), crowd_of(8000, 256 / 9, 5.0)),
]
"""Each with a belief in more noise: twice the reports; dummies that never came; rarer lies;
everybody honest, dummies twice; hash functions that hide together; twice the reports of codes."""


def _draw_differences(crowd: ShuffledEpoch) -> Neighbours:
    chance, cells = default_rng(20_261_123), int(crowd.categories)
    if cells < crowd.categories:
        codes = VectorCodes(epsilon=crowd.epsilon_local, dimensions=64, words=256, books=4096)
        assert codes.words / codes.near == crowd.categories
        values = codes.probes()
        return draw_neighbours(codes, crowd, (values[0], values[1], values[2]), EPOCHS, chance)
    if crowd.groups > 1:
        hashed = {"hashes": crowd.groups, "width": cells}
        hashing = build("local_hash", epsilon=crowd.epsilon_local, **hashed)
        strings = ("a", "b", "c")
        assert len({position(encoded(string), 0, cells) for string in strings}) == 3
        return draw_neighbours(hashing, crowd, strings, EPOCHS, chance)
    grr = build("grr", epsilon=crowd.epsilon_local, categories=cells)
    return draw_neighbours(grr, crowd, (0, cells - 1, 1), EPOCHS, chance)


def _attacked(drawn: Neighbours, claim: float, delta: float = DELTA) -> Attacked:
    return attack_epochs(drawn, delta=delta, claim=claim, alarm=ALARM)


@pytest.mark.parametrize(("crowd", "believed"), CROWDS)
def test_an_attack_comes_near_the_claim_and_passes_that_of_too_much_noise(
    crowd: ShuffledEpoch, believed: ShuffledEpoch
) -> None:
    drawn, claim = _draw_differences(crowd), central_epsilon(crowd, DELTA)
    assert 0.7 * claim < _attacked(drawn, claim).lower <= claim
    epsilon = central_epsilon(crowd, 1e-8)
    assert 0.2 * epsilon < _attacked(drawn, epsilon, 1e-8).lower <= epsilon
    believed_claim = central_epsilon(believed, DELTA)
    assert _attacked(drawn, believed_claim).lower > believed_claim


def _checks(path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Metric, list[Check]]:
    monkeypatch.setattr(audit, "_EPOCHS", EPOCHS)
    monkeypatch.setattr(audit, "_SUMS", 20_000)
    path.write_text(CATALOG + kind)
    metric = read_with_promises(path).metrics["crowded"]
    checks = audit._whole_epochs(metric, KeyedBits(b"seed" * 8), ALARM)
    return metric, [check for check in checks if check]


# The one count is all that others alike leave: less where lies are many, as in the first three.
@pytest.mark.parametrize(
    ("kind", "apart", "alike"),
    [
        (LISTED, 0.7, 0.3),
        (NUMBER, 0.7, 0.3),
        (STRING, 0.7, 0.3),
        (NOISE + LISTED, 0.6, 0.4),
    ],
)
def test_the_audit_attacks_the_promise_of_a_catalog(
    kind: str, apart: float, alike: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = _checks(tmp_path / "metrics.toml", kind, monkeypatch)[1]
    _assert_promise_attacked(checks, apart, alike)


def _assert_promise_attacked(checks: Sequence[Check], apart: float, alike: float) -> None:
    first, second, third, fourth, *_ = checks
    for others, promised, near, least in (
        ("apart", first, second, apart),
        ("alike", third, fourth, alike),
    ):
        assert promised.passed
        assert promised.claim == 1.0
        assert promised.kind == f"a whole epoch, others {others}, delta 1e-08"
        assert near.passed
        assert near.claim is not None
        assert near.lower is not None
        assert near.lower > least * near.claim


def test_the_audit_attacks_the_sum_of_dummies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metric, checks = _checks(tmp_path / "metrics.toml", MEAN, monkeypatch)
    # What the sum of a mean's dummies shows is attacked by itself, and its counts show less.
    _assert_promise_attacked(checks, 0.15, 0.1)
    promised, near = checks[4:]
    assert promised.kind == "a whole epoch, its dummies' sum, delta 1e-08"
    for check, least in ((promised, 0.4), (near, 0.5)):
        assert check.passed
        assert check.lower is not None
        assert check.claim is not None
        assert check.lower > least * check.claim
    monkeypatch.setattr(audit, "_EPOCHS", 1000)
    bits, people = KeyedBits(b"seed" * 8), 8
    steps = audit.audit_metric(metric, bits, partial(DeviceMemo, bytes(32)), people, ALARM)
    no_memory = 1  # of a device, is checked
    assert len(list(steps)) + no_memory == audit.steps_of(metric, people)


NUMBERS, SUM = CountNoise(5 << 30, 60), CountNoise(66 << 26, 900)


@pytest.mark.parametrize(
    ("noise", "caught"),
    [
        (ValueNoise(NUMBERS, 9, SUM), False),
        (ValueNoise(CountNoise(6 << 30, 40), 9, SUM), True),
        (ValueNoise(NUMBERS, 9, CountNoise(5 << 30, 400)), True),
    ],
)
def test_the_audit_detects_a_secret_number_with_too_little_noise(
    noise: ValueNoise, *, caught: bool
) -> None:
    crowd = crowd_of(100, 9, inf, noise_dummies=NUMBERS, sum_noise=SUM)
    claim = central_epsilon(crowd, DELTA)
    sums = draw_sums(noise, 30_000, default_rng(20_261_129))
    assert (_attacked(sums, claim).lower > claim) is caught


def test_the_audit_fails_if_reports_have_less_noise_than_assumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def weaker_crowd(metric: Metric) -> ShuffledEpoch | None:
        crowd = smallest_crowd(metric)
        return crowd and replace(crowd, epsilon_local=crowd.epsilon_local - log(2))

    monkeypatch.setattr(audit, "smallest_crowd", weaker_crowd)
    _, (_, near, *_) = _checks(tmp_path / "metrics.toml", LISTED, monkeypatch)
    assert not near.passed


def test_the_attack_with_equal_others_stays_below_the_claim() -> None:
    crowd = crowd_of(200, 3, log(200 / 2 - 2))
    grr = build("grr", epsilon=crowd.epsilon_local, categories=3)
    claim = central_epsilon(crowd, 1e-3)
    apart, alike = (
        _attacked(
            draw_neighbours(grr, crowd, (0, 2, value), EPOCHS, default_rng(20_261_124)), claim, 1e-3
        ).lower
        for value in (1, 2)
    )
    assert 0 < max(apart, alike) <= claim
    assert 0.3 * claim < alike
