"""Every decoder, as a target: bytes in, and nothing out but what it may answer."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from google.protobuf.message import DecodeError

from hubbub.aggregator.ingest.fold import fold, well_formed
from hubbub.authoring import read_catalog
from hubbub.bundles import Bundle, open_bundle
from hubbub.bundles.encoding import to_text
from hubbub.bundles.key_handover import hand_over
from hubbub.cli.commands.rappor import read_collection, read_map
from hubbub.client.ledger import FOREIGN, Account, merge
from hubbub.client.transport.contract import TryAgain
from hubbub.client.transport.messages import answer_in
from hubbub.client.trust import Trust, lock_store
from hubbub.conservation import Window
from hubbub.errors import (
    BadParameter,
    BadPayload,
    BundleRefused,
    CatalogInvalid,
    HubbubError,
    KeysUnusable,
    StateUnusable,
)
from hubbub.keys.opening_key_files import read_opening_keys, read_public_keys
from hubbub.keys.operator_key import read_handovers
from hubbub.mechanisms import REGISTRY, Layout
from hubbub.sealing.hpke import open_sealed, seal, seal_info
from hubbub.shuffler.stream_table import read_stream_table
from hubbub.signing.sign_bundle import stream_table
from hubbub.wire.v1.services_pb2 import Reason, Refusal, SubmitRequest, SubmitResponse
from tests.conftest import CATALOG
from tests.fuzz.target import Target, scratch
from tests.support.bundles import DAY, make_signed

START = 20_000 * DAY


def decoders() -> Mapping[str, Target]:
    """All of them, by name."""
    folder = scratch()
    signed = make_signed(folder, CATALOG, start=START)
    keys = signed.keys / "opening.keys.json"
    opening = read_opening_keys(keys)[0].load()
    streams = folder / "streams.json"
    streams.write_text(stream_table(signed.bundle))
    table = read_stream_table(streams)
    info = seal_info("theme", 20_000)
    sealed = seal(b"\1", signed.bundle.keys[0].half("x25519"), info)
    theme = {"stream": "theme", "epoch": 20_000, "key_id": 1, "sealed": sealed}
    submit = SubmitRequest(reports=[theme, {**theme, "epoch": 1}])  # type: ignore[list-item]
    answer = SubmitResponse(
        refused=[Refusal(index=1, reason=Reason.REASON_EXPIRED)], time=START
    ).SerializeToString()
    whole = signed.path.read_bytes()

    def submitted(data: bytes) -> None:
        with suppress(DecodeError):
            for report in SubmitRequest.FromString(data).reports:
                table.refusal(report, START + 1000.0)

    def read_table(path: Path) -> None:
        read_stream_table(path).refusal(submit.reports[0], START + 1000.0)

    def trusting(path: Path) -> None:
        with suppress(StateUnusable), lock_store(path) as file:  # written by a newer version
            trust = file.read()
            assert Trust.load(trust.data()).data() == trust.data()
            trust.admit("app", signed.bundle, None, [])

    def handed_over(path: Path) -> None:
        read_handovers(path.parent)

    def parse_window(data: bytes) -> None:
        with suppress(ValueError):
            Window.parse(data)

    all_targets = {
        "submit": Target([submit.SerializeToString()], submitted),
        "answer": Target([answer], _raising(TryAgain, lambda data: answer_in(data, 2))),
        "sealed": Target(
            [sealed], _raising(BadPayload, lambda data: open_sealed(data, opening, info))
        ),
        "bundle": Target(
            [whole], _raising(BundleRefused, lambda data: open_bundle(data, "fuzzed"))
        ),
        "streams": _file(folder / "f.json", streams, BadParameter, read_table),
        "opening_keys": _file(folder / "k.json", keys, KeysUnusable, read_opening_keys),
        "public_keys": _file(
            folder / "opening.pub.json",
            signed.keys / "opening.pub.json",
            KeysUnusable,
            lambda path: read_public_keys(path.parent),
        ),
        "catalog": _file(
            folder / "f.toml", signed.path.with_name("metrics.toml"), CatalogInvalid, read_catalog
        ),
        "window": Target([b"theme:20000", b"theme/0.5:1"], parse_window),
        "trust": _file(
            folder / "trust.json", _trust(folder, signed.bundle), BundleRefused, trusting
        ),
        "handovers": _file(
            signed.keys / "handovers.json", _handovers(folder), KeysUnusable, handed_over
        ),
        "account": Target([json.dumps(_account().data()).encode()], _charged),
        **_rappor(folder),
    }
    for name, mechanism in REGISTRY.items():
        layout = mechanism(**mechanism.SMALL[-1]).layout
        all_targets[f"payload_{name}"] = _payload(layout)
    return all_targets


def _payload(layout: Layout) -> Target:
    """The plain reference and the numpy fold agree on any bytes of the right length."""

    def run(data: bytes) -> None:
        cells: Mapping[int, int] | None
        try:
            cells = layout.cells(data)
        except BadPayload:
            cells = None
        if len(data) == layout.payload_bytes:
            row = np.frombuffer(data, dtype=np.uint8)[None, :]
            [good] = well_formed(layout, row)
            assert bool(good) is (cells is not None)
            if good:
                assert {i: int(c) for i, c in enumerate(fold(layout, row)) if c} == cells
        else:
            assert cells is None

    return Target([bytes(layout.payload_bytes), bytes([1]) * layout.payload_bytes], run)


def _rappor(folder: Path) -> Mapping[str, Target]:
    params, counts, places = (folder / f"{name}.csv" for name in ("params", "counts", "map"))
    params.write_text("k,h,m,p,q,f\n8,1,2,0.5,0.75,0.5\n")
    counts.write_text("10,1,2,3,4,5,6,7,8\n12,1,2,3,4,5,6,7,8\n")
    collection = read_collection(params, counts)
    places.write_text("a,1,9\nb,2,10\n")
    copies = {path: path.with_name("fuzzed_" + path.name) for path in (params, counts, places)}
    return {
        "rappor_params": _file(
            copies[params], params, HubbubError, lambda p: read_collection(p, counts)
        ),
        "rappor_counts": _file(
            copies[counts], counts, HubbubError, lambda c: read_collection(params, c)
        ),
        "rappor_map": _file(copies[places], places, HubbubError, lambda m: read_map(m, collection)),
    }


def _trust(folder: Path, bundle: Bundle) -> Path:
    trust, path = Trust(), folder / "example.trust.json"
    trust.admit("app", bundle, None, [])
    path.write_text(json.dumps(trust.data()))
    return path


def _handovers(folder: Path) -> Path:
    path, old = folder / "example.handovers.json", Ed25519PrivateKey.from_private_bytes(bytes(32))
    word = hand_over(old, Ed25519PrivateKey.generate().public_key().public_bytes_raw())
    handover = {name: to_text(getattr(word, name)) for name in ("old", "new", "signature")}
    path.write_text(json.dumps([handover]))
    return path


def _account() -> Account:
    return Account(spent=1.5, floor=19_990, epochs={20_000: 1}, responses={}, losses={20_000: 1.5})


def _charged(data: bytes) -> None:
    with suppress(*FOREIGN):
        account = Account.load(json.loads(data))
        assert merge(account, _account()).reported(20_000) in (None, 1) or (
            account.epochs[20_000] > 1
        )


def _file(
    path: Path, example: Path, refused: type[HubbubError], reader: Callable[[Path], Any]
) -> Target:
    path.touch(mode=0o600)

    def run(data: bytes) -> None:
        path.write_bytes(data)
        with suppress(refused):
            reader(path)

    return Target([example.read_bytes()], run)


def _raising(refused: type[HubbubError], decode: Callable[[bytes], Any]) -> Callable[[bytes], None]:
    def run(data: bytes) -> None:
        with suppress(refused):
            decode(data)

    return run
