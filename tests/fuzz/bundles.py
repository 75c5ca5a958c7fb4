"""Bundles signed as they should be, of any content: refused, or usable in every respect."""

import json
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hubbub.bundles import Bundle, open_bundle
from hubbub.bundles.encoding import to_text
from hubbub.bundles.transparency_log import NoteKey
from hubbub.catalog import Metric
from hubbub.client import Client, MemoryState, Outcome
from hubbub.client.testing import FakeClock, FakeShuffler
from hubbub.client.trust import Trust
from hubbub.errors import BundleRefused, HubbubError, ValueOutOfDomain
from hubbub.privacy.card import metric_card
from hubbub.shuffler.stream_table import read_stream_table
from hubbub.signing.log.log_files import append, prove_bundle
from hubbub.signing.sign_bundle import sign_bundle, stream_table
from tests.conftest import CATALOG
from tests.fuzz.documents import varied
from tests.fuzz.target import Target, scratch
from tests.support.bundles import DAY, make_signed
from tests.support.catalogs import metric_toml
from tests.support.waiting import HANG_SECONDS

START = 20_000 * DAY
NOW = START + 4000.0
MORE = (
    metric_toml(
        "launches",
        mechanism="wave",
        epsilon=2.0,
        domain="number",
        low=0,
        high=24,
        buckets=12,
        min_batch=20,
        sampling=0.5,
        release={"mechanism": "gaussian", "epsilon": 0.5, "delta": 1e-07},
    )
    + """\
[budget]
epsilon_per_year = 10.0
delta_per_year = 1e-6
purposes = { "annual report" = 0.6, research = 0.4 }
"""
)
OPERATOR = Ed25519PrivateKey.from_private_bytes(bytes(32))
LOG = Ed25519PrivateKey.from_private_bytes(bytes([2]) * 32)
FORMER = Ed25519PrivateKey.from_private_bytes(bytes([1]) * 32)


def bundles() -> Mapping[str, Target]:
    """Targets by name."""
    folder = scratch()
    signed = make_signed(folder, CATALOG + MORE, start=START)
    body = signed.path.read_bytes().split(b"\n")[1]
    table = folder / "streams.json"

    def open_fuzzed(data: bytes) -> None:
        with suppress(BundleRefused):
            use(open_bundle(sign(data), "fuzzed"), table)

    return {
        "bundle_signed": Target([body], open_fuzzed, varied, 16_384),
        "bundle_proof": _proof(folder / "log", signed.bundle),
    }


def _proof(folder: Path, bundle: Bundle) -> Target:
    """The third line, whatever it says: only the log's own word is believed, and no fork."""
    name = "log.example.org/app"
    named = replace(bundle, log=NoteKey(name, LOG.public_key().public_bytes_raw()), signed=b"")
    contents = [sign_bundle(replace(named, serial=serial), OPERATOR) for serial in range(1, 6)]
    log = append(folder, name, LOG, [("bundle", content) for content in contents])
    first_trust = Trust()
    first = append(folder / "first", name, LOG, [("bundle", contents[0])])
    first_trust.admit(
        "app", open_bundle(contents[0] + prove_bundle(first).dump(), "first"), None, []
    )
    trust_json = json.dumps(first_trust.data())

    def open_fuzzed(line: bytes) -> None:
        trust = Trust.load(json.loads(trust_json))
        with suppress(BundleRefused):
            trust.admit("app", open_bundle(contents[-1] + line, "fuzzed"), None, [])
        pinned = trust.pins["app"].log
        assert pinned is not None
        assert pinned.root in (first.checkpoint.root, log.checkpoint.root)

    return Target([prove_bundle(log).dump()], open_fuzzed, varied, 16_384)


def sign(body: bytes) -> bytes:
    """A bundle's content with this body, and a signature that fits."""
    head = {
        "hubbub bundle": 1,
        "operator": to_text(OPERATOR.public_key().public_bytes_raw()),
        "signature": to_text(OPERATOR.sign(b"hubbub/1 bundle\n" + body)),
    }
    return json.dumps(head).encode() + b"\n" + body


def use(bundle: Bundle, table: Path) -> None:
    """All that an app, an operator and a person do with a bundle that was accepted."""
    _hold_its_promises(bundle)
    table.write_text(stream_table(bundle))
    read_stream_table(table)
    assert open_bundle(sign_bundle(bundle, FORMER), "again").metrics == bundle.metrics
    for metric in bundle.metrics.values():
        assert metric_card(metric).sentence
    shuffler = FakeShuffler()
    client = Client(
        bundle, MemoryState(), shuffler, hold_seconds=None, strict=False, clock=FakeClock(NOW)
    )
    for metric in bundle.metrics.values():
        assert client.report(metric.name, _value(metric)) is not Outcome.FAILED, metric.name
    client.flush(HANG_SECONDS)
    for payload in client.ledger().payloads:
        payload.meanings(["a.example"])
    client.prefer(0.5)
    for metric in bundle.metrics.values():
        assert client.report(metric.name, _value(metric)) is not Outcome.FAILED, metric.name
    client.disable()
    client.close(HANG_SECONDS)


def _hold_its_promises(bundle: Bundle) -> None:
    """What a catalog is checked for holds of a bundle too: limits are limits."""
    for metric in bundle.metrics.values():
        limits = metric.limits
        assert type(limits.reports_per_epoch) is int, "reports_per_epoch is not a whole number"
        assert limits.reports_per_epoch >= 1, "reports_per_epoch is below 1"
        assert isinstance(limits.lifetime_epsilon, (int, float)), "lifetime_epsilon is no number"
        assert math.isfinite(limits.lifetime_epsilon), "lifetime_epsilon is no limit"
        assert type(metric.min_batch) is int, "min_batch is not a whole number"
        assert metric.min_batch >= 10, "min_batch is below 10"
        assert metric.name.isprintable(), "a name that is not printable"


def _value(metric: Metric) -> Any:
    if metric.values is not None:
        return metric.values[0] if metric.values else ""
    for value in (1.0, "a.example"):
        with suppress(ValueOutOfDomain, HubbubError):
            metric.code(value)
            return value
    return 1
