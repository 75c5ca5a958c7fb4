"""Properties of the floors that the bare client has."""

from hypothesis import given
from hypothesis import strategies as st

from hubbub.bundles import read_bundle
from hubbub.errors import BadPayload, BundleRefused
from hubbub.keys.opening_key_files import read_opening_keys
from hubbub.mechanisms import SystemBits, build
from hubbub.sealing.hpke import open_sealed, seal, seal_info
from tests.support.bundles import Signed


@given(payload=st.binary(min_size=1, max_size=300), epoch=st.integers(0, 2**32 - 1))
def test_a_sealed_payload_opens(signed: Signed, payload: bytes, epoch: int) -> None:
    key = read_opening_keys(signed.keys / "opening.keys.json")[0].load()
    info = seal_info("theme", epoch)
    assert (
        open_sealed(seal(payload, signed.bundle.keys[0].half("x25519"), info), key, info) == payload
    )


@given(st.binary(max_size=200))
def test_hostile_reports_only_ever_raise_bad_payload(signed: Signed, hostile: bytes) -> None:
    key = read_opening_keys(signed.keys / "opening.keys.json")[0].load()
    try:
        open_sealed(hostile, key, seal_info("theme", 1))
    except BadPayload:
        return
    raise AssertionError("opened what nobody sealed")


@given(st.binary(max_size=300))
def test_hostile_bundles_are_only_ever_refused(signed: Signed, hostile: bytes) -> None:
    path = signed.path.with_name("hostile.hubbub")
    path.write_bytes(hostile)
    try:
        read_bundle(path)
    except BundleRefused:
        return
    raise AssertionError("took what nobody signed")


@given(st.text(max_size=50))
def test_any_text_is_a_value_of_rappor(text: str) -> None:
    mechanism = build("rappor", bits=32, hashes=2, cohorts=8, f=0.5, p=0.25, q=0.75)
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    payload = mechanism.randomize(text, SystemBits())
    assert len(payload) == mechanism.layout.payload_bytes
    mechanism.layout.cells(payload)
