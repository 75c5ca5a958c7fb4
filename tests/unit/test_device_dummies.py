"""Dummies that devices make: by coins of their own, beside a report, and alike to it."""

from collections import Counter
from dataclasses import replace
from math import exp
from typing import Any

import pytest
from scipy.stats import chi2

from hubbub.authoring.crowds.accountant import gathered
from hubbub.bundles import Bundle
from hubbub.client import Client, MemoryState, Outcome
from hubbub.client.state.contract import State
from hubbub.client.testing import FakeClock, FakeShuffler
from hubbub.keys.opening_key_files import read_opening_keys
from hubbub.sealing.hpke import open_sealed, seal_info
from tests.support.bundles import DAY, Signed, crowd_text, make_signed, metric_text
from tests.support.catalogs import promised_catalog_of
from tests.support.waiting import HANG_SECONDS

FIRST, EACH, VALUES = 20_000, 2.25, 4
CROWD = 'shuffler = "127.0.0.1:1"\n' + crowd_text(1000, f"dummies_each = {EACH}\n")


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Signed:
    folder = tmp_path_factory.mktemp("crowd")
    text = 'shuffler = "127.0.0.1:1"\n' + metric_text("other")
    result = make_signed(folder, text, start=FIRST * DAY)
    metrics = promised_catalog_of(CROWD).metrics
    history = {name: metric.digest() for name, metric in metrics.items()}
    return replace(result, bundle=replace(result.bundle, metrics=metrics, history=history))


def _draw(signed: Signed, bundle: Bundle, state: State, value: str) -> list[int]:
    """What a device sends that reports once, opened as the aggregator does."""
    shuffler, clock = FakeShuffler(), FakeClock((FIRST + 3) * DAY + 1000.0)
    client = Client(bundle, state, shuffler, hold_seconds=None, clock=clock)
    assert client.report("theme", value) is Outcome.QUEUED
    assert client.report("theme", value) is Outcome.ALREADY_REPORTED, "and no dummies for that"
    assert client.flush(HANG_SECONDS)
    assert client.report("theme", value) is Outcome.ALREADY_REPORTED
    assert client.flush(HANG_SECONDS)
    [key] = read_opening_keys(signed.keys / "opening.keys.json")[:1]
    sent = shuffler.reports()
    assert {(report.stream, report.epoch, len(report.sealed)) for report in sent} == {
        ("theme", FIRST + 3, bundle.metric("theme").sealed_bytes)
    }
    [view] = client.ledger().metrics
    assert (view.reports, view.spent) == (1, bundle.metric("theme").report_loss)
    payloads = client.ledger().payloads
    assert sum(not payload.is_filler for payload in payloads) == 1, (
        "of a dummy is kept that it was none"
    )
    assert len(payloads) == len(sent)
    info = seal_info("theme", FIRST + 3)
    return [
        int.from_bytes(open_sealed(report.sealed, key.load(), info), "little") for report in sent
    ]


def test_a_device_sends_its_dummies_as_reports_and_charges_none(
    signed: Signed, state: State
) -> None:
    assert len(_draw(signed, signed.bundle, state, "dark")) in {3, 4}


@pytest.mark.slow
def test_number_and_values_of_device_dummies_are_random(signed: Signed) -> None:
    """2 of each device and a third of one in four; each value as likely: 3e-7 by chance."""
    devices = 400
    device_values = [_draw(signed, signed.bundle, MemoryState(), "dark") for _ in range(devices)]
    numbers = Counter(map(len, device_values))
    assert numbers.keys() == {3, 4}
    assert abs(numbers[4] - devices / 4) <= 5.5 * (devices * 3 / 16) ** 0.5
    mechanism: Any = signed.bundle.metric("theme").randomizer
    keep, lie = float(mechanism.channel.p), float(mechanism.channel.q)
    total = sum(map(len, device_values)) - devices
    named = Counter(value for values in device_values for value in values)
    off = 0.0
    for value in range(VALUES):
        expected = total / VALUES + devices * (keep if value == 1 else lie)
        off += (named[value] - expected) ** 2 / (total / VALUES)
    assert chi2.sf(off, VALUES - 1) > 1e-7


def test_devices_send_no_dummies_in_development(signed: Signed) -> None:
    metric = replace(signed.bundle.metric("theme"), development=True)
    bundle = replace(signed.bundle, metrics={"theme": metric}, history={"theme": metric.digest()})
    assert len(_draw(signed, bundle, MemoryState(), "dark")) == 1


@pytest.mark.parametrize("each", [0.1, 0.5, 2.25])
@pytest.mark.parametrize("devices", [2, 100, 1000, 12_345])
def test_fewer_devices_gather_as_much_as_a_crowd_once_in_1e17(devices: int, each: float) -> None:
    """By Bernstein's bound on the dummies of all devices but one: Bernstein 1924."""
    others, part = devices - 1, each % 1
    off = gathered(devices, each) - 1 - others * (1 + each)
    assert exp(-(off**2) / (2 * (others * part * (1 - part) + off / 3))) <= 1e-17 * (1 + 1e-9)
