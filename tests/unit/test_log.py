"""The transparency log: its specification's own answers, and what devices and reviewers refuse."""

import base64
import contextlib
import functools
import http.server
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hubbub.bundles import Bundle, open_bundle, read_bundle
from hubbub.bundles.transparency_log import (
    Checkpoint,
    NoteKey,
    entry_of,
    leaf_hash,
    note_text,
    proven_root,
    refuse_inconsistent,
    refuse_unsigned,
    signed_note,
)
from hubbub.catalog import Metric
from hubbub.cli.main import main
from hubbub.client import Client, Outcome
from hubbub.errors import BadParameter, BundleRefused
from hubbub.keys.operator_key import read_operator_key
from hubbub.signing.log import witnesses
from hubbub.signing.log.log_files import (
    append,
    consistency_proof,
    entries_in,
    entry_tiles,
    hash_tiles,
    inclusion_proof,
    log_key,
    packed_entries,
    prove_bundle,
    tree_root,
)
from hubbub.signing.sign_bundle import sign_bundle
from tests.support import web
from tests.support.catalogs import catalog_toml, metric_toml
from tests.support.commands import Capture, output_of, refusal_of

# The leaves and roots of the reference implementation of RFC 6962.
HEX = "00 10 2021 3031 40414243 5051525354555657 606162636465666768696a6b6c6d6e6f"
LEAVES = [b"", *map(bytes.fromhex, HEX.split())]
ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
SIX_TO_EIGHT = [
    "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
    "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
]
ONE_TO_EIGHT = [
    "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
    "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
    "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
]
TEXT = (
    "If you think cryptography is the answer to your problem,\n"
    "then you don't know what your problem is.\n"
)
NOTE = (
    f"{TEXT}\n— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKv"
    "qfqdngotpRZb6KE6RyyBwJnAM=\n"
)
PETER = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
ORIGIN = "log.example.org/app"


def hashes(entries: list[bytes]) -> list[bytes]:
    return list(map(leaf_hash, entries))


def test_trees_have_the_roots_of_the_reference() -> None:
    for size, root in enumerate(ROOTS):
        assert tree_root(hashes(LEAVES[:size])).hex() == root


def test_proofs_are_those_of_the_reference() -> None:
    leaves = hashes(LEAVES)
    assert [digest.hex() for digest in consistency_proof(leaves, 6)] == SIX_TO_EIGHT
    assert [digest.hex() for digest in consistency_proof(leaves, 1)] == ONE_TO_EIGHT
    assert [digest.hex() for digest in inclusion_proof(leaves, 0)] == ONE_TO_EIGHT


def test_every_proof_of_small_trees_holds_and_none_of_another_place_or_tree() -> None:
    for size in range(1, 34):
        leaves = hashes([bytes([n]) for n in range(size)])
        root = tree_root(leaves)
        for at in range(size):
            proof = inclusion_proof(leaves, at)
            assert proven_root(leaves[at], at, size, proof) == root
            assert proven_root(leaf_hash(b"another"), at, size, proof) != root
            with pytest.raises(BadParameter):
                proven_root(leaves[at], at, size, [*proof, root])
            if proof:
                with pytest.raises(BadParameter):
                    proven_root(leaves[at], at, size, proof[:-1])
        for before in range(1, size + 1):
            grew = consistency_proof(leaves, before)
            then = (before, tree_root(leaves[:before]))
            refuse_inconsistent(then, (size, root), grew)
            other = (before, tree_root([leaf_hash(b"another"), *leaves[1:before]]))
            with pytest.raises(BadParameter):
                refuse_inconsistent(other, (size, root), grew)
            with pytest.raises(BadParameter):
                refuse_inconsistent(then, (size, root), [*grew, root])


def test_the_specifications_own_note_is_read_and_no_altered_one() -> None:
    public = base64.b64decode(PETER.split("+", 2)[2])[1:]
    key = NoteKey("PeterNeumann", public)
    assert str(key) == PETER
    refuse_unsigned(NOTE, key)
    assert note_text(NOTE) == TEXT
    for wrong in (NOTE.replace("answer", "Answer"), NOTE[:-1], TEXT, "\n\n"):
        with pytest.raises(BadParameter):
            refuse_unsigned(wrong, key)


def test_witnesses_lines_are_passed_over() -> None:
    log_key, witness = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    checkpoint = Checkpoint.sign(ORIGIN, 3, bytes(32), log_key)
    text = note_text(checkpoint.note)
    witness_key = NoteKey("witness.example", witness.public_key().public_bytes_raw())
    lines = signed_note(text, witness_key, witness.sign(text.encode())).rpartition("\n\n")[2]
    cosigned = checkpoint.note + lines
    key = NoteKey(ORIGIN, log_key.public_key().public_bytes_raw())
    assert Checkpoint.open(cosigned, key).size == 3


@pytest.mark.slow
def test_tiles_are_where_the_specification_has_them() -> None:
    entries = [bytes([n % 251]) for n in range(256 * 2 + 3)]
    paths = [path for path, _ in hash_tiles(hashes(entries))]
    assert paths == ["tile/0/000", "tile/0/001", "tile/0/002.p/3", "tile/1/000.p/2"]
    assert entry_tiles(70_000)[-2:] == ["tile/entries/272", "tile/entries/273.p/112"]
    assert entry_tiles(1_067 * 256)[-1] == "tile/entries/x001/066"
    packed = dict(packed_entries(entries))
    back = [entry for path in entry_tiles(len(entries)) for entry in entries_in(packed[path])]
    assert back == entries
    with pytest.raises(BadParameter):
        entries_in(packed["tile/entries/000"][:-1])


@pytest.mark.thorough
def test_the_tile_of_the_specifications_example_is_where_it_has_it() -> None:
    assert entry_tiles(1_234_067 * 256)[-1] == "tile/entries/x001/x234/066"


class Operator:
    """An operator's folder: keys, catalog, log, and the bundles that were built."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.keys, self.log = folder, folder / "keys", folder / "log"
        self.out = folder / "app.hubbub"
        assert main(["keys", "new", str(self.keys)]) == 0

    def build(self, *, epsilon: float = 1.0, lifetime: float = 40.0, log: str = ORIGIN) -> int:
        source = self.folder / "metrics.toml"
        limits = {"reports_per_epoch": 3, "lifetime_epsilon": lifetime}
        values = ["light", "dark"]
        metric = metric_toml("theme", mechanism="rr", epsilon=epsilon, values=values, **limits)
        source.write_text(
            catalog_toml(metric, shuffler="shuffler.example.org:443", log=log or None)
        )
        build = ["catalog", "build", str(source), "--keys", str(self.keys), "--out", str(self.out)]
        return main([*build, "--streams", str(self.folder / "streams.json")])

    def more(self) -> dict[str, Metric]:
        """Its metrics, of which theme allows twice as much for life."""
        theme = read_bundle(self.out).metrics["theme"]
        return {"theme": replace(theme, limits=replace(theme.limits, lifetime_epsilon=80.0))}

    def sign(self, **changes: object) -> bytes:
        """A bundle that never went through the log."""
        bundle = replace(read_bundle(self.out), proof=None, **changes)  # type: ignore[arg-type]
        return sign_bundle(bundle, read_operator_key(self.keys))


def started(bundle: Path, state: Path) -> Client:
    """A client whose shuffler is the port of discarding, where nobody answers."""
    return Client.from_bundle(
        bundle, insecure=True, state_dir=state, shuffler="127.0.0.1:9", hold_seconds=3600.0
    )


def first_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Operator:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    log_operator = Operator(tmp_path)
    assert log_operator.build() == 0
    return log_operator


operator = pytest.fixture(first_build)


@pytest.fixture
def start(tmp_path: Path) -> Callable[[bytes], Client]:
    shipped = tmp_path / "shipped.hubbub"

    def start(signed: bytes) -> Client:
        shipped.write_bytes(signed)
        return started(shipped, tmp_path / "state")

    return start


def test_devices_accept_a_bundle_with_a_proof_of_the_log(
    operator: Operator, start: Callable[[bytes], Client]
) -> None:
    for _ in range(4):
        assert read_bundle(operator.out).proof is not None
        start(operator.out.read_bytes()).close(0)
        assert operator.build() == 0
    skipped = read_bundle(operator.out)
    assert skipped.proof is not None
    assert sorted(skipped.proof.grown) == [2, 3, 4, 5]  # of one entry for the keys, and bundles


def _without_proof(operator: Operator) -> bytes:
    return operator.sign(serial=read_bundle(operator.out).serial + 1)


def _without_log(operator: Operator) -> bytes:
    return operator.sign(serial=read_bundle(operator.out).serial + 1, log=None)


def _of_a_fork(operator: Operator) -> bytes:
    """Signed by the same keys, in a second log of the same name, with a valid proof."""
    personal = operator.sign(serial=read_bundle(operator.out).serial + 1)
    key = log_key(operator.keys)
    filler = [("keys", b"{}"), ("bundle", operator.sign(serial=1)), ("bundle", personal)]
    log = append(operator.folder / "fork", ORIGIN, key, filler)
    return personal + prove_bundle(log).dump() + b"\n"


def _of_another_log(operator: Operator) -> bytes:
    key = Ed25519PrivateKey.generate()
    named = NoteKey(ORIGIN, key.public_key().public_bytes_raw())
    personal = operator.sign(serial=read_bundle(operator.out).serial + 1, log=named)
    log = append(operator.folder / "other", ORIGIN, key, [("bundle", personal)])
    return personal + prove_bundle(log).dump() + b"\n"


def _more_under_an_old_name(operator: Operator) -> bytes:
    """In the very log that everybody sees, with a valid proof."""
    public = operator.sign(serial=read_bundle(operator.out).serial + 1, metrics=operator.more())
    log = append(operator.log, ORIGIN, log_key(operator.keys), [("bundle", public)])
    return public + prove_bundle(log).dump() + b"\n"


@pytest.mark.parametrize(
    ("personal", "reason"),
    [
        (_more_under_an_old_name, "allows more .*lifetime_epsilon raised from 40 to 80"),
        (_without_proof, "does not prove that it is in the log"),
        (_without_log, "names no log"),
        (_of_a_fork, "has forked"),
        (_of_another_log, "names the log"),
    ],
)
def test_a_bundle_for_one_person_is_refused_and_reports_wait_for_the_next(
    operator: Operator,
    start: Callable[[bytes], Client],
    personal: Callable[[Operator], bytes],
    reason: str,
) -> None:
    client = start(operator.out.read_bytes())
    assert client.report("theme", "dark") is Outcome.QUEUED
    client.close(0)
    with pytest.raises(BundleRefused, match=reason):
        start(personal(operator))
    assert operator.build() == 0
    client = start(operator.out.read_bytes())
    assert client.waiting == 1
    client.close(0)


def test_an_older_checkpoint_is_refused(
    operator: Operator, start: Callable[[bytes], Client]
) -> None:
    old = operator.out.read_bytes()
    assert operator.build() == 0
    start(operator.out.read_bytes()).close(0)
    with pytest.raises(BundleRefused, match="older"):
        start(old)


@pytest.mark.slow
def test_an_audit_checks_how_the_log_grew_from_every_bundle_before(
    operator: Operator, capsys: Capture
) -> None:
    for _ in range(3):
        assert operator.build() == 0
    head, body, line = operator.out.read_bytes().splitlines()
    audit = ["log", "audit", str(operator.log), "--bundle", str(operator.out)]
    assert main(audit) == 0
    document = json.loads(line)
    grown = document["grown"]
    assert sorted(grown) == ["2", "3", "4"]
    wrong = base64.urlsafe_b64encode(bytes(32)).decode()
    for other, message in (
        ({**grown, "3": grown["2"]}, "that the log grew from 3 entries is wrong"),
        ({**grown, "4": [wrong]}, "that the log grew from 4 entries is wrong"),
        ({**grown, "9": []}, "that the log grew from 9 entries is wrong"),
        ({"2": grown["2"], "4": grown["4"]}, "has no proof that the log grew from 3 entries"),
    ):
        altered = json.dumps({**document, "grown": other}).encode()
        operator.out.write_bytes(b"\n".join([head, body, altered, b""]))
        capsys.readouterr()
        assert main(audit) == 1
        assert message in capsys.readouterr().out


def test_a_proof_of_another_bundle_or_altered_is_refused(operator: Operator) -> None:
    head, body, proof = operator.out.read_bytes().splitlines()
    other = operator.sign(serial=7)
    with pytest.raises(BundleRefused, match="does not contain this bundle"):
        open_bundle(other + proof + b"\n", "app.hubbub")
    for wrong in (b"{}", b"[]", proof.replace(b'"index":1', b'"index":9'), proof[:-1]):
        with pytest.raises(BundleRefused, match=r"app\.hubbub"):
            open_bundle(b"\n".join([head, body, wrong]), "app.hubbub")


def test_a_build_refuses_a_lost_or_abandoned_log(operator: Operator, capsys: Capture) -> None:
    assert operator.build(log="") == 2
    assert "accept no bundle outside the log" in capsys.readouterr().err
    operator.log.rename(operator.folder / "away")
    assert operator.build() == 2
    assert "restore the served files" in capsys.readouterr().err
    operator.out.rename(operator.folder / "away.hubbub")
    assert operator.build() == 2, "also where the bundle before is not there"
    assert "restore the served files" in capsys.readouterr().err
    (operator.folder / "away.hubbub").rename(operator.out)
    (operator.folder / "away").rename(operator.log)
    assert operator.build() == 0
    assert f"--bundle {operator.out}" in capsys.readouterr().out


@pytest.fixture
def served(operator: Operator) -> Iterator[str]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    handler = functools.partial(Quiet, directory=str(operator.log))
    with web.serving(handler) as place:
        yield f"http://{place}"


def test_a_reviewer_reads_every_bundle_ever_shipped_and_what_each_changed(
    operator: Operator, served: str, capsys: Capture
) -> None:
    notice = ["notice", "make", "--stop", "theme", "--keys", str(operator.keys)]
    notice += ["--bundle", str(operator.out), "--out", str(operator.folder / "notice.hubbub")]
    assert main(notice) == 0
    assert operator.build(lifetime=30.0) == 0
    options = ["--known", str(operator.folder / "known")]
    capsys.readouterr()
    audit = ["log", "audit", served, "--bundle", str(operator.out), *options]
    output = output_of(capsys, *audit)
    assert "4 entries" in output
    assert "number" in output
    assert "lifetime_epsilon" in output
    assert "less" in output
    assert operator.build() == 2  # more under an old name
    assert operator.build(lifetime=20.0) == 0
    assert "grew from 4 to 5 entries" in output_of(capsys, *audit)


def test_a_rewritten_log_is_detected_with_an_earlier_checkpoint(
    operator: Operator, tmp_path: Path, capsys: Capture
) -> None:
    device = tmp_path / "device.hubbub"
    device.write_bytes(_of_a_fork(operator))
    assert main(["log", "audit", str(operator.log), "--bundle", str(device)]) == 2
    assert "cut short" in capsys.readouterr().err
    assert operator.build() == 0
    assert main(["log", "audit", str(operator.log), "--bundle", str(device)]) == 2
    assert "forked" in capsys.readouterr().err


def test_two_bundles_at_once_and_more_under_an_old_name_show_in_the_audit(
    operator: Operator, capsys: Capture
) -> None:
    things = [("bundle", operator.sign(metrics=operator.more()))]
    append(operator.log, ORIGIN, log_key(operator.keys), things)
    assert main(["log", "audit", str(operator.log), "--bundle", str(operator.out)]) == 1
    output = capsys.readouterr().out
    assert "two bundles at once" in output
    assert "lifetime_epsilon raised from 40 to 80" in output


def test_the_audit_shows_a_raised_limit_under_a_retired_name(
    operator: Operator, capsys: Capture
) -> None:
    serial = read_bundle(operator.out).serial
    things = [
        ("bundle", operator.sign(serial=serial + 1, metrics={})),
        ("bundle", operator.sign(serial=serial + 2, metrics=operator.more())),
    ]
    append(operator.log, ORIGIN, log_key(operator.keys), things)
    assert main(["log", "audit", str(operator.log), "--bundle", str(operator.out)]) == 1
    assert "lifetime_epsilon raised from 40 to 80 under an old name" in capsys.readouterr().out


def test_missing_or_altered_files_of_a_served_log_are_named(
    operator: Operator, capsys: Capture
) -> None:
    audit = ["log", "audit", str(operator.log), "--bundle", str(operator.out)]
    content = next(
        path
        for path in (operator.log / "content").iterdir()
        if path.name in entry_of("bundle", path.read_bytes()).decode()
    )
    original = content.read_bytes()
    content.write_bytes(original + b" ")
    assert main(audit) == 1
    assert "differs from what was logged" in capsys.readouterr().out
    content.write_bytes(original)
    tile = operator.log / "tile/0/000.p/2"
    tile.write_bytes(bytes(64))
    assert "tile/0/000.p/2" in refusal_of(capsys, *audit)
    entries = operator.log / "tile/entries/000.p/2"
    entries.write_bytes(entries.read_bytes()[:-1])
    assert "tile/entries/000.p/2: the file of entries is cut off" in refusal_of(capsys, *audit)


@pytest.mark.slow
@pytest.mark.parametrize("answer", ["redirect", "long", "slow"])
def test_an_audit_follows_no_redirect_and_limits_size_and_time(
    answer: str, operator: Operator, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    paths: list[str] = []

    class Hostile(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_response(302 if answer == "redirect" else 200)
            self.send_header("Location", "/private")
            self.end_headers()
            with contextlib.suppress(OSError):
                if answer == "slow":
                    self.wfile.write(b"x")
                    done.wait()
                while answer == "long":
                    self.wfile.write(b"x" * 65_536)

        def log_message(self, *_: Any) -> None:
            """Nothing: a test's output is the command's."""

    done = threading.Event()
    monkeypatch.setattr(witnesses, "_SECONDS", 1.0)
    with web.serving(Hostile) as place:
        assert main(["log", "audit", f"http://{place}", "--bundle", str(operator.out)]) == 2
        done.set()
    assert paths == ["/checkpoint"]
    assert "cannot be read" in capsys.readouterr().err


def test_privacy_diff_shows_each_change_of_a_persons_loss(
    operator: Operator, tmp_path: Path, capsys: Capture
) -> None:
    old = tmp_path / "old.hubbub"
    old.write_bytes(operator.out.read_bytes())
    assert "nothing differs" in output_of(capsys, "privacy", "diff", str(old), str(old))
    assert operator.build(lifetime=30.0) == 0
    assert "less" in (output := output_of(capsys, "privacy", "diff", str(old), str(operator.out)))
    assert "more" not in output
    assert "more" in output_of(capsys, "privacy", "diff", str(operator.out), str(old))


def test_bundles_without_a_log_are_as_they_were(tmp_path: Path) -> None:
    plain = Operator(tmp_path)
    assert plain.build(log="") == 0
    assert len(plain.out.read_bytes().splitlines()) == 2
    assert not plain.log.exists()
    assert b'"log"' not in plain.out.read_bytes()
    bundle: Bundle = read_bundle(plain.out)
    assert bundle.log is None
