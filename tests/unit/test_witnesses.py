"""Witnesses of a log: the specification's formula, what they refuse, and what audits ask."""

import base64
import fcntl
import hashlib
import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from hubbub.bundles import read_bundle
from hubbub.bundles.transparency_log import (
    COSIGNATURE,
    ED25519,
    Checkpoint,
    NoteKey,
    merge_notes,
    note_text,
    signed_note,
    signers,
)
from hubbub.cli.main import main
from hubbub.client import Outcome
from hubbub.errors import BadParameter, KeysUnusable, LogBroken
from hubbub.signing.log.log_files import CHECKPOINT, append, folder_fetch, log_key, prove_bundle
from hubbub.signing.log.witnesses import (
    WITNESS_KEY,
    cosign,
    cosign_newest,
    cosigned_file,
    cosigning_time,
    make_witness,
    refuse_unwitnessed,
    witness_key,
)
from tests.support.commands import output_of, refusal_of
from tests.unit.test_log import Operator, first_build, started

ORIGIN = "log.example.org/app"
WITNESS = "witness.example.com/w1"
LOG = Ed25519PrivateKey.from_private_bytes(bytes([1]) * 32)
KEY = Ed25519PrivateKey.from_private_bytes(bytes([2]) * 32)
OWN = NoteKey(ORIGIN, LOG.public_key().public_bytes_raw())
DERIVED_KEY = witness_key(WITNESS, KEY)
AT = 1_679_315_147
# The specification's own example: a checkpoint that a witness cosigned, whose key it does not say.
EXAMPLE = (
    "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n"
    "— example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv"
    "2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=\n"
    "— witness.example.com/w1 jWbPPwAAAABkGFDLEZMHwSRaJNiIDoe9DYn/zXcrtPHeolMI5OWXEhZCB9dlrDJsX3b2"
    "oyin1nPZqhf5nNo0xUe+mbIUBkBIfZ+qnA==\n"
)


operator = pytest.fixture(first_build)


def checkpoint(size: int = 3) -> Checkpoint:
    return Checkpoint.sign(ORIGIN, size, bytes([size]) * 32, LOG)


def parts(line: str) -> tuple[str, bytes]:
    """Name, and what is signed, of a note's line."""
    dash, name, signed = line.split(" ")
    assert dash == "—"
    return name, base64.b64decode(signed)


def test_a_cosignature_is_what_the_specification_computes() -> None:
    note = checkpoint().note
    text, _, _ = note.rpartition("\n\n")
    *before, line, end = cosign(note, WITNESS, KEY, AT).split("\n")
    assert ("\n".join([*before, ""]), end) == (note, ""), "all that was there stays as it was"
    public = KEY.public_key().public_bytes_raw()
    key_id = hashlib.sha256(WITNESS.encode() + b"\n\x04" + public).digest()[:4]
    signature = KEY.sign(f"cosignature/v1\ntime 1679315147\n{text}\n".encode())
    assert parts(line) == (WITNESS, key_id + bytes.fromhex("00000000641850cb") + signature)
    key_text = base64.b64encode(b"\x04" + public).decode()
    assert str(DERIVED_KEY) == f"{WITNESS}+{key_id.hex()}+{key_text}"


def test_a_cosignature_of_a_known_key_and_time_has_these_bytes() -> None:
    public = "8139770ea87d175f56a35466c34c7ecccb8d8a91b4ee37a25df60f5b8fc9b394"
    assert KEY.public_key().public_bytes_raw().hex() == public
    assert cosign(checkpoint().note, WITNESS, KEY, AT).split("\n")[-2] == (
        "— witness.example.com/w1 dF+16AAAAABkGFDL2YTuy05yEnRmOpML+bKUCxTCxg11L8tPoC1hYSDxqzt8"
        "I7ZS1rm/kwwNqpWFJP0maqSBG0KfvQl3u9FxW6VIDw=="
    )


def test_the_specifications_example_is_read_with_its_witness_and_its_time() -> None:
    assert signers(EXAMPLE) == ["example.com/behind-the-sofa", WITNESS]
    name, signed = parts(EXAMPLE.split("\n")[-2])
    assert (name, int.from_bytes(signed[4:12], "big"), len(signed)) == (WITNESS, AT, 76)
    assert merge_notes(EXAMPLE, EXAMPLE) == EXAMPLE


def test_a_cosignature_is_valid_also_for_another_implementation() -> None:
    for at in (0, AT, (1 << 63) - 1):
        note = cosign(checkpoint().note, WITNESS, KEY, at)
        assert cosigning_time(note, DERIVED_KEY) == at
        assert Checkpoint.open(note, OWN).size == 3
        _, signed = parts(note.split("\n")[-2])
        message = f"cosignature/v1\ntime {at}\n{note_text(note)}".encode()
        Ed25519PublicKey.from_public_bytes(DERIVED_KEY.public).verify(signed[12:], message)


def test_a_line_that_was_altered_anywhere_is_refused() -> None:
    note = checkpoint().note
    _, signed = parts(cosign(note, WITNESS, KEY, AT).split("\n")[-2])
    for at in range(4, len(signed)):
        wrong = signed[4:at] + bytes([signed[at] ^ 1]) + signed[at + 1 :]
        with pytest.raises(BadParameter, match="does not match"):
            cosigning_time(signed_note(note_text(note), DERIVED_KEY, wrong), DERIVED_KEY)
    own = signed[4:]
    for wrong in (own[:-1], own + b"\0", own[8:], own[:8], b"\xff" + own[1:]):
        with pytest.raises(BadParameter, match=r"not of type cosignature/v1"):
            cosigning_time(signed_note(note_text(note), DERIVED_KEY, wrong), DERIVED_KEY)


def test_a_cosignature_of_another_checkpoint_name_or_kind_is_invalid() -> None:
    name, signed = parts(cosign(checkpoint(3).note, WITNESS, KEY, AT).split("\n")[-2])
    other = checkpoint(4).note
    copied = merge_notes(other, signed_note(note_text(other), DERIVED_KEY, signed[4:]))
    assert name in signers(copied)
    with pytest.raises(BadParameter, match="does not match"):
        cosigning_time(copied, DERIVED_KEY)
    note = cosign(checkpoint().note, WITNESS, KEY, AT)
    for key in (
        NoteKey("witness.example.com/w2", DERIVED_KEY.public, COSIGNATURE),
        NoteKey(WITNESS, DERIVED_KEY.public, ED25519),
        NoteKey(WITNESS, OWN.public, COSIGNATURE),
    ):
        with pytest.raises(BadParameter, match="is not signed by"):
            cosigning_time(note, key)


def test_a_later_cosignature_replaces_only_that_of_the_same_witness() -> None:
    other = Ed25519PrivateKey.from_private_bytes(bytes([3]) * 32)
    note = cosign(cosign(checkpoint().note, WITNESS, KEY, AT), "w2.example", other, AT)
    again = cosign(note, WITNESS, KEY, AT + 60)
    assert signers(again) == [ORIGIN, WITNESS, "w2.example"]
    assert cosigning_time(again, DERIVED_KEY) == AT + 60
    with pytest.raises(BadParameter, match="have different texts"):
        merge_notes(note, checkpoint(4).note)
    full = checkpoint().note
    for number in range(99):
        full = cosign(full, f"w{number}.example", other, AT)
    with pytest.raises(BadParameter, match="100 signatures at most"):
        cosign(full, WITNESS, KEY, AT)


def test_keys_read_back_and_invalid_ones_are_refused() -> None:
    assert NoteKey.read(str(DERIVED_KEY), COSIGNATURE) == DERIVED_KEY
    assert NoteKey.read(str(OWN), ED25519) == OWN
    text = str(DERIVED_KEY)
    for wrong in (text[:-1], text.replace("w1", "w2"), "", "+", WITNESS, text + "A", f" {text}"):
        with pytest.raises(BadParameter):
            NoteKey.read(wrong, COSIGNATURE)
    with pytest.raises(BadParameter, match="type is unsupported"):
        NoteKey.read(str(OWN), COSIGNATURE)


@pytest.fixture
def log(tmp_path: Path) -> Callable[..., Path]:
    """A log's folder with these entries more."""

    def grow(*contents: bytes, folder: str = "log") -> Path:
        append(tmp_path / folder, ORIGIN, LOG, [("keys", content) for content in contents])
        return tmp_path / folder

    return grow


@pytest.fixture
def sign(tmp_path: Path) -> Callable[..., Checkpoint]:
    """A witness that cosigns what a folder shows."""
    keys = tmp_path / "witness"
    make_witness(keys, WITNESS)

    def sign(folder: Path, *, first: bool = False, now: float = AT) -> Checkpoint:
        state = cosigned_file(keys, OWN)
        return cosign_newest(folder_fetch(folder), OWN, keys, state, first=first, now=now)

    return sign


def test_a_witness_cosigns_a_grown_or_equal_log(
    tmp_path: Path, log: Callable[..., Path], sign: Callable[..., Checkpoint]
) -> None:
    state = cosigned_file(tmp_path / "witness", OWN)
    public = (tmp_path / "witness" / "witness.pub").read_text().strip()
    witness_key = NoteKey.read(public, COSIGNATURE)
    for contents, at in (((b"1",), AT), ((), AT + 1), ((b"2", b"3"), AT + 1.5)):
        new_checkpoint = sign(log(*contents), first=at == AT, now=at)
        text = state.read_text()
        assert Checkpoint.open(text, OWN).size == new_checkpoint.size
        assert cosigning_time(text, witness_key) == int(at)


def test_a_slow_log_delays_no_cosignature_of_another(
    tmp_path: Path, log: Callable[..., Path], sign: Callable[..., Checkpoint]
) -> None:
    """And what another cosigned of it meanwhile is what it must have grown from."""
    folder, keys = log(b"1"), tmp_path / "witness"
    sign(folder, first=True)
    state, paths = cosigned_file(keys, OWN), list[str]()

    def slow(path: str) -> bytes:
        content = folder_fetch(folder)(path)
        if not paths:
            with (keys / WITNESS_KEY).open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            assert sign(log(b"2")).size == 2
        paths.append(path)
        return content

    assert cosign_newest(slow, OWN, keys, state, first=False, now=AT).size == 2
    assert paths.count(CHECKPOINT) == 2, "it was read again"
    assert Checkpoint.open(state.read_text(), OWN).size == 2


def test_a_witness_refuses_a_fork_an_older_checkpoint_and_a_clock_that_went_back(
    tmp_path: Path, log: Callable[..., Path], sign: Callable[..., Checkpoint]
) -> None:
    older = log(b"1", b"2", folder="older")
    sign(log(b"1", b"2", b"3"), first=True)
    state = cosigned_file(tmp_path / "witness", OWN)
    original = state.read_bytes()
    forks = (log(b"1", b"2", b"other", folder="same"), log(b"1", b"2", b"o", b"4", folder="longer"))
    for fork in forks:
        with pytest.raises(LogBroken, match="forked"):
            sign(fork)
    with pytest.raises(LogBroken, match="it was cut short, or this is another"):
        sign(older)
    altered = log(b"1", b"2", b"3", b"4", folder="altered")
    (altered / CHECKPOINT).write_text((altered / CHECKPOINT).read_text().replace("\n4\n", "\n5\n"))
    with pytest.raises(LogBroken, match="does not match"):
        sign(altered)
    with pytest.raises(BadParameter, match="correct the clock"):
        sign(log(b"4"), now=AT - 1)
    assert state.read_bytes() == original, "what was refused leaves no trace"
    assert sign(tmp_path / "log").size == 4


def test_a_witness_without_its_records_signs_nothing(
    tmp_path: Path, log: Callable[..., Path], sign: Callable[..., Checkpoint]
) -> None:
    folder, state = log(b"1"), cosigned_file(tmp_path / "witness", OWN)
    with pytest.raises(BadParameter, match=r"is missing.*--first"):
        sign(folder)
    sign(folder, first=True)
    with pytest.raises(BadParameter, match="leave out --first"):
        sign(folder, first=True)
    state.write_bytes((folder / CHECKPOINT).read_bytes())
    with pytest.raises(BadParameter, match="is not signed by"):
        sign(folder)
    for damaged in (b"", b"\xff", state.read_bytes()[:-9]):
        state.write_bytes(damaged)
        with pytest.raises(BadParameter, match=state.name):
            sign(folder)


def test_a_witnesss_key_is_made_once_and_read_with_its_name(
    tmp_path: Path, log: Callable[..., Path], sign: Callable[..., Checkpoint]
) -> None:
    with pytest.raises(KeysUnusable, match="exists, and audits use it"):
        make_witness(tmp_path / "witness", WITNESS)
    with pytest.raises(BadParameter, match="a space or plus sign"):
        make_witness(tmp_path / "other", "a witness")
    public = tmp_path / "witness" / "witness.pub"
    with pytest.raises(KeysUnusable, match="make a key: hubbub keys witness"):
        cosign_newest(folder_fetch(tmp_path), OWN, tmp_path, tmp_path / "s", first=True, now=AT)
    public.write_text(str(DERIVED_KEY))
    with pytest.raises(KeysUnusable, match="does not belong to the key beside it"):
        sign(log(b"1"), first=True)
    public.write_text(WITNESS)
    with pytest.raises(KeysUnusable, match="put it back"):
        sign(log(b"1"), first=True)


def test_an_audit_counts_each_witness_once_and_no_future_time() -> None:
    other = Ed25519PrivateKey.from_private_bytes(bytes([3]) * 32)
    second = witness_key("w2.example", other)
    own_checkpoint = Checkpoint.open(cosign(checkpoint().note, WITNESS, KEY, AT), OWN)
    assert refuse_unwitnessed(own_checkpoint, OWN, [DERIVED_KEY, second], 1, AT)[0] == (
        f"{WITNESS}: cosigned it at 2023-03-20 12:25:47 UTC"
    )
    with pytest.raises(LogBroken, match=r"1 of 2 .* is not signed by w2\.example"):
        refuse_unwitnessed(own_checkpoint, OWN, [DERIVED_KEY, second], 2, AT)
    refuse_unwitnessed(own_checkpoint, OWN, [DERIVED_KEY], 1, AT - 300)
    with pytest.raises(LogBroken, match=f"the time of {WITNESS} is ahead"):
        refuse_unwitnessed(own_checkpoint, OWN, [DERIVED_KEY], 1, AT - 301)
    for public in (DERIVED_KEY.public, OWN.public):
        twice = [DERIVED_KEY, NoteKey("w2", public, COSIGNATURE)]
        with pytest.raises(BadParameter, match="have the same key"):
            refuse_unwitnessed(own_checkpoint, OWN, twice, 1, AT)


def test_an_audit_with_a_witness_detects_a_fork_from_the_first_day(
    tmp_path: Path, operator: Operator, capsys: pytest.CaptureFixture[str]
) -> None:
    text = str(make_witness(tmp_path / "w", "w.example"))
    bundle = ["--bundle", str(operator.out)]
    sign = ["log", "cosign", str(operator.log), *bundle, "--keys", str(tmp_path / "w"), "--first"]
    assert main(sign) == 0
    assert main(sign[:-1]) == 0
    # Another log from the first entry on, with one bundle, for one person, by the same keys.
    personal = operator.sign(serial=read_bundle(operator.out).serial + 1)
    things = [("keys", b"{}"), ("bundle", personal)]
    fork = append(tmp_path / "fork", ORIGIN, log_key(operator.keys), things)
    device = tmp_path / "device.hubbub"
    device.write_bytes(personal + prove_bundle(fork).dump() + b"\n")
    audit = ["log", "audit", str(tmp_path / "fork"), "--bundle", str(device)]
    assert main(audit) == 0, "without a witness nothing contradicts it"
    assert "is not signed by w.example" in refusal_of(capsys, *audit, "--witness", text)
    assert "has forked" in refusal_of(capsys, *sign[:2], str(tmp_path / "fork"), *sign[3:-1])
    cosigned = next((tmp_path / "w").glob("*.checkpoint"))
    assert main(["log", "publish", str(operator.log), str(cosigned), *bundle]) == 0
    assert main(["log", "audit", str(operator.log), *bundle, "--witness", text]) == 0
    audit[2] = str(operator.log)
    assert "differ from those" in refusal_of(capsys, *audit, "--witness", text), (
        "nor is it in the log that the witness saw"
    )


def test_a_device_ignores_cosignatures_of_witnesses(tmp_path: Path, operator: Operator) -> None:
    for line in (
        signed_note("", DERIVED_KEY, bytes(72)),
        signed_note("", NoteKey("other", b"1" * 32), b"1"),
    ):
        head, body, proof = operator.out.read_bytes().splitlines()
        document = json.loads(proof)
        document["checkpoint"] += line.lstrip("\n")
        operator.out.write_bytes(b"\n".join([head, body, json.dumps(document).encode(), b""]))
        bundle = read_bundle(operator.out)
        assert bundle.proof is not None
        assert len(signers(bundle.proof.checkpoint.note)) > 1
        client = started(operator.out, tmp_path / "state")
        assert client.report("theme", "dark") is Outcome.QUEUED
        client.close(0)


@pytest.mark.slow
def test_an_operator_publishes_cosignatures_and_audits_require_them(
    tmp_path: Path, operator: Operator, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle, where = ["--bundle", str(operator.out)], str(operator.log)
    log_key = read_bundle(operator.out).log
    assert log_key is not None
    options, cosigned = [], []
    for name in ("w1.example", "w2.example"):
        keys = tmp_path / name
        capsys.readouterr()
        output = output_of(capsys, "keys", "witness", str(keys), "--name", name)
        options += ["--witness", output.splitlines()[-1]]
        assert main(["log", "cosign", where, *bundle, "--keys", str(keys), "--first"]) == 0
        cosigned.append(str(cosigned_file(keys, log_key)))
    history_path = tmp_path / "known"
    audit = ["log", "audit", where, *bundle]
    assert main([*audit, *options, "--known", str(history_path)]) == 2
    assert "0 of 2 required cosignatures" in (error_text := capsys.readouterr().err)
    assert "w1.example" in error_text
    assert "w2.example" in error_text
    assert not history_path.exists(), "what was refused is not what was seen"
    assert main(["log", "publish", where, cosigned[0], *bundle]) == 0
    assert "not signed by w2.example" in refusal_of(capsys, *audit, *options)
    assert "w1.example: cosigned it at" in output_of(capsys, *audit, *options, "--witnesses", "1")
    assert main(["log", "publish", where, *cosigned, *bundle]) == 0
    assert main([*audit, *options]) == 0
    assert main([*audit, *options, *options[:2]]) == 0, "a witness named twice is one"
    assert main(audit) == 0
    assert "--witnesses 1 must be from 1 to 0" in refusal_of(capsys, *audit, "--witnesses", "1")
    refusal = refusal_of(capsys, *audit, "--witness", str(log_key))
    assert "as hubbub keys witness prints it" in refusal
    assert operator.build() == 0, "a log goes on below witnesses' lines"
    assert signers((operator.log / CHECKPOINT).read_text()) == [ORIGIN]
    assert main([*audit, *options]) == 2
    assert main(["log", "publish", where, cosigned[0], *bundle]) == 2
    assert "the witness must cosign " in capsys.readouterr().err
    for name in ("w1.example", "w2.example"):
        assert main(["log", "cosign", where, *bundle, "--keys", str(tmp_path / name)]) == 0
    assert main(["log", "publish", where, *cosigned, *bundle]) == 0
    assert main([*audit, *options, "--known", str(history_path)]) == 0
    first = NoteKey.read(options[1], COSIGNATURE)
    assert cosigning_time(history_path.read_text(), first) <= time.time()
