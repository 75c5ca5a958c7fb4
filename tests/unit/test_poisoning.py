"""The maximal gain attack: its formula, its payload, and what it measurably does."""

from collections.abc import Mapping
from hashlib import sha256
from itertools import product
from math import exp, sqrt
from typing import Any

import numpy as np
import pytest

from hubbub.aggregator.ingest.fold import fold
from hubbub.analysis.answering import answer
from hubbub.analysis.fake_report_attacks import Attack, maximal_gain
from hubbub.analysis.families import family_for
from hubbub.errors import BadParameter, BadPayload
from hubbub.mechanisms import REGISTRY, AnyMechanism, KeyedBits, Layout, Totals

pytestmark = pytest.mark.slow

VALUES = 50
BUILD: Mapping[str, Any] = REGISTRY
BUILT: dict[str, dict[str, Any]] = {
    "rr": {"epsilon": 1.0},
    "grr": {"epsilon": 1.0, "categories": VALUES},
    "unary.sue": {"epsilon": 1.0, "categories": VALUES},
    "unary.oue": {"epsilon": 1.0, "categories": VALUES},
    "subset": {"epsilon": 1.0, "categories": VALUES},
    "hadamard": {"epsilon": 1.0, "categories": VALUES},
    "projective": {"epsilon": 1.0, "categories": VALUES},
    "rappor.basic": {"categories": VALUES, "f": 0.25, "p": 0.35, "q": 0.65},
    "long.grr": {"epsilon": 1.0, "permanent_epsilon": 2.0, "categories": VALUES},
    "long.hash": {"epsilon": 1.0, "permanent_epsilon": 2.0, "categories": VALUES},
    "long.unary": {"epsilon": 1.0, "permanent_epsilon": 2.0, "categories": VALUES},
    "buckets": {"epsilon": 1.0, "low": 0, "high": 50, "buckets": VALUES, "sampled": 5},
    "wave": {"epsilon": 1.0, "low": 0, "high": 50, "buckets": VALUES},
    "haar": {"epsilon": 1.0, "low": 0, "high": 50, "buckets": VALUES},
    "cms": {"epsilon": 2.0, "hashes": 8, "width": 64},
    "hcms": {"epsilon": 2.0, "hashes": 8, "width": 64},
    "local_hash": {"epsilon": 2.0, "hashes": 8, "width": 64},
    "tree": {"epsilon": 2.0, "bits": 72, "cells": 4096},
    "pairs": {"epsilon": 1.0, "sizes": (VALUES // 5, 5)},
    "privset": {"epsilon": 1.0, "categories": VALUES, "most": 3},
    "rappor": {"bits": 64, "hashes": 2, "cohorts": 8, "f": 0.25, "p": 0.35, "q": 0.65},
    "vector.codes": {"epsilon": 1.0, "dimensions": 3, "words": 16, "books": 8, "max_length": 2.0},
    "mean.one_bit": {"epsilon": 1.0, "low": 0, "high": 10},
    "mean.piecewise": {"epsilon": 1.0, "low": 0, "high": 10, "steps": 100},
    "mean.table": {"epsilon": 1.0, "low": 0, "high": 10},
}


# Whose answers are others than the mechanism's estimates: a pair's reports count for all, and none
# as even; a word's for each coordinate.
OWN = ("pairs", "vector.codes")


@pytest.mark.parametrize("name", REGISTRY)
def test_no_payload_at_all_is_worth_more(name: str) -> None:
    """Every payload of a small mechanism, through the mechanism's own estimator."""
    for parameters in BUILD[name].SMALL:
        mechanism = BUILD[name](**parameters)
        layout = mechanism.layout
        if layout.payload_bytes > 2 or mechanism.VALUES == "strings":
            continue
        if name in {"wave", "haar"}:
            continue  # answer by their own least squares: `test_the_measured_gain...`
        number = len(mechanism.estimate(Totals(cells=[0] * layout.size, reports=1)).values)
        for targets in ([0], list(range(min(2, number)))):
            most = max(
                sum(mechanism.estimate(Totals(cells=cells, reports=1)).values[t] for t in targets)
                for cells in _every_payload(layout)
            )
            attack = maximal_gain(mechanism, targets)
            if name in OWN:
                most = _of_answers(mechanism, targets)
            assert attack.worth == pytest.approx(most, rel=1e-9)


def _of_answers(mechanism: Any, targets: list[int]) -> float:
    family = family_for(mechanism)
    return max(
        float(
            family.figures(mechanism, Totals(cells=cells, reports=1), ()).estimates[targets].sum()
        )
        for cells in _every_payload(mechanism.layout)
    )


def _every_payload(layout: Layout) -> list[list[int]]:
    rows = []
    for number in product(range(256), repeat=layout.payload_bytes):
        try:
            cells = layout.cells(bytes(number))
        except BadPayload:
            continue
        rows.append([cells.get(cell, 0) for cell in range(layout.size)])
    return rows


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("targets", [1, 5])
def test_the_published_gains(epsilon: float, targets: int) -> None:
    """Cao, Jia, Gong (2021), Table 2: GRR and OUE, for a share b of fake reports."""
    chosen, b, f, d = list(range(targets)), 0.05, 0.01, VALUES
    grr = BUILD["grr"](epsilon=epsilon, categories=d)
    oue = BUILD["unary.oue"](epsilon=epsilon, categories=d)
    of_grr = b * (1 - f) + b * (d - targets) / (exp(epsilon) - 1)
    of_oue = b * (2 * targets - f) + 2 * b * targets / (exp(epsilon) - 1)
    assert maximal_gain(grr, chosen).gain(b, f) == pytest.approx(of_grr, rel=1e-9)
    assert maximal_gain(oue, chosen).gain(b, f) == pytest.approx(of_oue, rel=1e-9)


def test_how_many_fake_reports_a_gain_takes() -> None:
    attack = Attack({0: 1}, 4.0)
    assert attack.fake_share(attack.gain(0.1, 0.2), 0.2) == pytest.approx(0.1)


@pytest.mark.parametrize("name", REGISTRY)
def test_the_measured_gain_is_the_formulas(name: str) -> None:
    """4,000 honest reports and 400 fake ones; off by more than 6 standard errors with 2e-9."""
    mechanism = BUILD[name](**BUILT[name])
    source = KeyedBits(sha256(f"poison {name}".encode()).digest())
    strings = [f"string {number}" for number in range(20)]
    values: Any = {
        "categories": range(VALUES),
        "strings": strings,
        "numbers": range(50),
        "vectors": mechanism.probes(),
    }[mechanism.VALUES]
    if name == "rr":
        values = [0, 1]
    if name == "privset":
        values = [1 << place for place in range(VALUES)]
    if name.startswith("mean"):
        values = list(range(11))
    honest_reports, fake_reports = 4000, 400
    payloads = [
        mechanism.randomize(values[number % len(values)], source)
        for number in range(honest_reports)
    ]
    targets = strings[:2] if mechanism.VALUES == "strings" else [0, 1]
    if name.startswith("mean"):
        targets = [0]
    attack = maximal_gain(mechanism, targets)
    rows = np.frombuffer(b"".join(payloads), dtype=np.uint8).reshape(honest_reports, -1)
    cells = fold(mechanism.layout, rows)
    fake = np.zeros_like(cells)
    for cell, number in attack.cells.items():
        fake[cell] = number * fake_reports
    candidates = strings if mechanism.VALUES == "strings" else []
    names = [str(v) for v in values] if mechanism.VALUES == "categories" else None
    if name == "pairs":
        parts = {f"part {place}": range(size) for place, size in enumerate(BUILT[name]["sizes"])}
        names = [f"{part}={value}" for part, own in parts.items() for value in own]
    before, sd = _share(mechanism, cells, honest_reports, targets, names, candidates)
    after, _ = _share(mechanism, cells + fake, 4400, targets, names, candidates)
    moved = after * 4400 - before * honest_reports
    expected = fake_reports * attack.worth
    # The honest reports' noise is in both; of a sketch what is taken off for collisions, too.
    loose = 0.1 if name == "rappor" else 1e-6
    assert moved == pytest.approx(expected, rel=loose, abs=1e-6), sd
    honest_truth = len(targets) / len(values) if not name.startswith("mean") else 0.5
    if name == "vector.codes":  # the places of both, where one of seven is between all
        honest_truth = 1 + 1 / 7 / sqrt(3)
    if name != "rappor":
        gain = attack.gain(400 / 4400, honest_truth)
        assert abs((after - honest_truth) - gain) < 6 * sd * 4000 / 4400


def _share(  # noqa: PLR0917 what one answer is made of
    mechanism: AnyMechanism,
    cells: Any,
    reports: int,
    targets: list[Any],
    names: list[str] | None,
    candidates: list[str],
) -> tuple[float, float]:
    answered = answer(mechanism, Totals(cells=cells.tolist(), reports=reports), names, candidates)
    values, places = answered.values, [candidates.index(t) if candidates else t for t in targets]
    if answered.kind == "mean":
        return float(answered.places[0]), values[0].stderr / 10
    # Errors of two values of one report are no more than wholly dependent.
    share, unit = float(answered.places[places].sum()), float(reports)
    if answered.kind == "vector" and answered.span:
        unit = answered.span[1] - answered.span[0]
    return share, sum(values[place].stderr for place in places) / unit


def test_an_impossible_attack_is_named() -> None:
    with pytest.raises(BadParameter, match="at least one target"):
        maximal_gain(BUILD["grr"](epsilon=1.0, categories=3), [])
    with pytest.raises(BadParameter, match="too many to examine"):
        maximal_gain(BUILD["hadamard"](epsilon=1.0, categories=1 << 20), [1, 2, 3])
