"""The averaging attack: everything that a device ever sent about one unchanged value."""

import math
from collections.abc import Sequence

import pytest

from hubbub.client import Client, MemoryState, Outcome
from hubbub.client.testing import FakeClock, FakeShuffler, coins
from hubbub.mechanisms.rappor import Rappor
from tests.support.bundles import DAY, Signed
from tests.support.client_parts import drawn_reports, store_reports
from tests.support.devices import idle_client

REPORTS = 10_000
TRUTH = "true.example"
CANDIDATES = [TRUTH, *(f"{n}.example" for n in range(60))]


def _evidence(mechanism: Rappor, payloads: Sequence[bytes]) -> list[float]:
    """Per candidate the log-likelihood of all payloads together, over both steps exactly.

    Each bit's permanent lie is one hidden bit: what is sent of it, report after report, is
    independent given that bit.
    """
    layout, chain = mechanism.layout, mechanism.chain
    cohorts = {int.from_bytes(payload[:2], "little") for payload in payloads}
    assert len(cohorts) == 1, "a device is in one cohort for ever"
    (cohort,) = cohorts
    ones = [0] * mechanism.bits
    for payload in payloads:
        cells = layout.cells(payload)
        for bit in range(mechanism.bits):
            ones[bit] += layout.cell(cohort, bit) in cells
    flip = float(chain.flip.exact)
    ones_after = float(chain.one_after_zero.exact), float(chain.one_after_one.exact)

    def of_bit(true: bool, count: int) -> float:
        logs = []
        for permanent in (False, True):
            first = 1 - flip if permanent == true else flip
            second = ones_after[permanent]
            logs.append(
                math.log(first)
                + count * math.log(second)
                + (len(payloads) - count) * math.log(1 - second)
            )
        most = max(logs)
        return most + math.log(sum(math.exp(log - most) for log in logs))

    evidence = []
    for candidate in CANDIDATES:
        bloom = mechanism.positions(candidate)[cohort]
        evidence.append(sum(of_bit(bit in bloom, ones[bit]) for bit in range(mechanism.bits)))
    return evidence


def _everything_sent(signed: Signed, seed: str) -> list[bytes]:
    """A hundred reports a day of one value, by one device."""
    clock = FakeClock(float(signed.bundle.keys[0].start))
    client = idle_client(
        signed.bundle, MemoryState(seed.encode().ljust(32, b".")), coins=coins(seed), clock=clock
    )
    payloads: list[bytes] = []
    for _ in range(REPORTS // 100):
        for _ in range(100):
            assert client.report("homepage", TRUTH) is Outcome.QUEUED
        payloads += [drawn.payload for _, drawn in drawn_reports(client)]
        store_reports(client)
        clock.advance(DAY)
    return payloads


@pytest.mark.thorough
def test_ten_thousand_reports_of_one_value_reveal_only_its_permanent_response(
    signed: Signed,
) -> None:
    mechanism = signed.bundle.metric("homepage").randomizer
    assert isinstance(mechanism, Rappor)
    payloads = _everything_sent(signed, "one device")
    assert len(payloads) == REPORTS
    evidence = _evidence(mechanism, payloads)
    bound = mechanism.permanent_loss()
    assert evidence[0] - min(evidence) <= bound + 1e-9
    posterior = 1 / sum(math.exp(other - evidence[0]) for other in evidence)
    assert posterior <= math.exp(bound) / (math.exp(bound) + len(CANDIDATES) - 1)


def test_the_same_attack_finds_a_value_without_permanent_response(signed: Signed) -> None:
    """The attack is a real one: fresh lies in every report give the value away."""
    mechanism = signed.bundle.metric("homepage").randomizer
    assert isinstance(mechanism, Rappor)
    source = coins("forgetful")
    fresh = [mechanism.randomize(TRUTH, source) for _ in range(REPORTS)]
    cohort = fresh[0][:2]
    payloads = [payload for payload in fresh if payload[:2] == cohort]
    rates = [0.0] * mechanism.bits
    for payload in payloads:
        for cell in mechanism.layout.cells(payload):
            bit = cell % (mechanism.bits + 1) - 1
            if bit >= 0:
                rates[bit] += 1 / len(payloads)
    channel = mechanism.chain.channel
    loud = {bit for bit, rate in enumerate(rates) if rate > float(channel.p + channel.q) / 2}
    positions = mechanism.positions(TRUTH)[int.from_bytes(cohort, "little")]
    assert loud == set(positions)


@pytest.mark.parametrize("reports", [1, 40])
def test_the_ledger_charges_a_permanent_response_once(signed: Signed, reports: int) -> None:
    client = Client(
        signed.bundle, MemoryState(), FakeShuffler(), hold_seconds=None, coins=coins("x")
    )
    for _ in range(reports):
        assert client.report("homepage", TRUTH) is Outcome.QUEUED
    store_reports(client)
    metric = signed.bundle.metric("homepage")
    views = {view.name: view for view in client.ledger().metrics}
    spent = views["homepage"].spent
    assert views["homepage"].spent_in_epoch == spent
    assert spent == pytest.approx(min(reports * metric.report_loss, metric.lifetime_loss))
