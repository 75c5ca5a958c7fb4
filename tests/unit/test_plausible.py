"""The flag on totals: silent on honest reports, whatever people hold; heard on fake ones."""

from hashlib import sha256
from typing import Any

import numpy as np
import pytest

from hubbub.aggregator.ingest.fold import fold
from hubbub.analysis.fake_report_attacks import maximal_gain
from hubbub.analysis.families import family_for
from hubbub.mechanisms import REGISTRY, AnyMechanism, KeyedBits, Totals
from tests.unit.test_poisoning import BUILD, BUILT

pytestmark = pytest.mark.slow

HONEST = 2000
# Whose fake reports look like honest ones: each supports one value, as it should, or any subset.
HIDDEN = {"mean.one_bit"}


def _values(mechanism: AnyMechanism, name: str) -> list[Any]:
    if mechanism.VALUES == "strings":
        return [f"string {number}" for number in range(20)]
    if mechanism.VALUES == "vectors":
        return list(mechanism.probes())
    return {
        "rr": [0, 1],
        "mean.one_bit": [0, 10],
        "mean.piecewise": [0, 3, 10],
        "mean.table": [0, 3, 10],
    }.get(name, [*range(50)])


def _cells(mechanism: AnyMechanism, values: list[Any], coins: str) -> Any:
    source = KeyedBits(sha256(coins.encode()).digest())
    payloads = b"".join(
        mechanism.randomize(values[number % len(values)], source) for number in range(HONEST)
    )
    rows = np.frombuffer(payloads, dtype=np.uint8).reshape(HONEST, -1)
    return fold(mechanism.layout, rows)


@pytest.mark.parametrize("name", REGISTRY)
@pytest.mark.parametrize("spread", ["even", "one value"])
def test_honest_reports_of_any_values_are_plausible(name: str, spread: str) -> None:
    """A false alarm is at most one in a million, by the bound itself."""
    mechanism = BUILD[name](**BUILT[name])
    family, values = family_for(mechanism), _values(mechanism, name)
    cells = _cells(mechanism, values if spread == "even" else values[:1], f"{name} {spread}")
    verdict = family.plausibility([(mechanism, Totals(cells=cells.tolist(), reports=HONEST))])
    assert verdict.findings == ()
    assert verdict.p_value > 1e-6
    nothing = Totals(cells=[0] * mechanism.layout.size, reports=0)
    assert family.plausibility([(mechanism, nothing)]).p_value == 1


@pytest.mark.parametrize("name", [name for name in REGISTRY if name not in HIDDEN])
def test_reports_of_one_kind_that_nobody_honest_makes_are_noticed(name: str) -> None:
    """A thousand reports all of one payload, beside two thousand honest ones."""
    mechanism = BUILD[name](**BUILT[name])
    values = _values(mechanism, name)
    targets = values[:1] if mechanism.VALUES == "strings" else [0]
    fakes = 20_000
    cells = _cells(mechanism, values[:1], name)
    for cell, number in maximal_gain(mechanism, targets).cells.items():
        cells[cell] += number * fakes
    totals = Totals(cells=cells.tolist(), reports=HONEST + fakes)
    verdict = family_for(mechanism).plausibility([(mechanism, totals)])
    assert verdict.p_value < 1e-6
    assert verdict.findings
    assert all("%" in finding or "report" in finding for finding in verdict.findings)


def test_reports_of_one_device_over_again_are_no_alarm() -> None:
    """A permanent response that is odd by chance stays odd in every epoch added up."""
    mechanism = BUILD["rappor.basic"](**BUILT["rappor.basic"])
    cells = np.zeros(mechanism.layout.size, dtype=np.int64)
    cells[:] = 30 * _cells(mechanism, [3], "again")
    totals = Totals(cells=cells.tolist(), reports=30 * HONEST)
    many = family_for(mechanism).plausibility([(mechanism, totals)], repeats=30)
    assert many.findings == ()
    assert many.p_value >= family_for(mechanism).plausibility([(mechanism, totals)]).p_value


def test_too_few_ones_in_reports_are_named_with_the_expected_number() -> None:
    mechanism = BUILD["unary.oue"](epsilon=1.0, categories=40)
    totals = Totals(cells=[5000, *[0] * 39], reports=10_000)
    [finding, *_] = family_for(mechanism).plausibility([(mechanism, totals)]).findings
    assert finding.startswith("reports support 0.50 values each, honest ones 10.99")
