"""Bundles that earlier versions signed: read as they are, and written again to the same bytes."""

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hubbub.bundles import open_bundle
from hubbub.catalog import Metric
from hubbub.client import transport_to
from hubbub.errors import BundleRefused
from hubbub.fields.rules import is_address
from hubbub.signing.sign_bundle import sign_bundle
from tests.support.document_readers import signed

FOLDER = Path(__file__).parents[1] / "data" / "bundles"
# Each holds every field that its version had; 0.2 is as of before the table of fields.
VERSIONS = ("0.1", "0.2")
OPERATOR = Ed25519PrivateKey.from_private_bytes(bytes(32))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_bundle_of_an_earlier_version_is_written_unchanged(version: str) -> None:
    signed = (FOLDER / f"{version}.hubbub").read_bytes()
    bundle = open_bundle(signed, version, operator=OPERATOR.public_key().public_bytes_raw())
    assert sign_bundle(bundle, OPERATOR) == signed
    for name, metric in bundle.metrics.items():
        assert metric.digest() == bundle.history[name]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_field_of_an_earlier_bundle_is_read(version: str) -> None:
    bundle = open_bundle((FOLDER / f"{version}.hubbub").read_bytes(), version)
    theme, crashed, launches = (bundle.metric(name) for name in ("theme", "crashed", "launches"))
    assert isinstance(theme, Metric)
    assert theme.values == ("light", "dark", "système")
    assert theme.description == "What is asked of theme"
    assert theme.expires.isoformat() == "2099-06-30"
    assert (crashed.limits.reports_per_epoch, crashed.limits.lifetime_epsilon) == (3, 10.5)
    assert crashed.tiers == (0.5, 1.0)
    assert launches.sampling == 0.5
    assert launches.release is not None
    assert (launches.release.mechanism, launches.release.delta) == ("gaussian", 1e-7)
    assert bundle.metric("often").choice is not None
    assert bundle.budget is not None
    assert bundle.budget.allowance("research") == (4.0, 0.0)
    assert bundle.caps.of("year") == (None if version == "0.1" else 900)


@pytest.mark.parametrize("address", ["host:0443", "a+b:443", "https://a~b:0443"])
def test_a_device_goes_on_with_an_address_that_builders_now_refuse(address: str) -> None:
    body = json.loads((FOLDER / "0.2.hubbub").read_text().split("\n")[1])
    text = signed("bundle", json.dumps({**body, "shuffler": address}))
    bundle = open_bundle(text.encode(), "0.2")
    assert bundle.shuffler == address
    assert not is_address(address)
    transport_to(bundle.shuffler, roots=None).close()
    text = signed("bundle", json.dumps({**body, "shuffler": "host:65536"}))
    with pytest.raises(BundleRefused, match="shuffler must be HOST:PORT"):
        open_bundle(text.encode(), "0.2")
