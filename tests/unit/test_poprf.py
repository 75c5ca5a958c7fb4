"""The function behind tokens is RFC 9497's, by its answers (A.1.3), and refuses what is none."""

import subprocess
import sys
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import pytest

from hubbub.errors import BadParameter
from hubbub.tokens import poprf

_KEY = bytes.fromhex("145c79c108538421ac164ecbe131942136d5570b16d8bf41a24d4337da981e07")
_PUBLIC = bytes.fromhex("c647bef38497bc6ec077c22af65b696efa43bff3b4a1975a3e8e0a1c5a79d631")
_INFO = b"test info"
_LONG = bytes([0x5A]) * 17
_ONE_BLIND = "64d37aed22a27f5191de1c1d69fadb899d8862b58eb4220029e036ec4c1f6706"
_OTHER_BLIND = "222a5e897cf59db8145db8d16e597e8facb80ae7d4e26d9881aa6f61d645fc0e"
_OF_NOTHING = (
    "ca688351e88afb1d841fde4401c79efebb2eb75e7998fa9737bd5a82a152406d"
    "38bd29f680504e54fd4587eddcf2f37a2617ac2fbd2993f7bdf45442ace7d221"
)
_OF_LONG = (
    "7c6557b276a137922a0bcfc2aa2b35dd78322bd500235eb6d6b6f91bc5b56a52"
    "de2d65612d503236b321f5d0bebcbc52b64b92e426f29c9b8b69f52de98ae507"
)


class _Vector(NamedTuple):
    inputs: tuple[bytes, ...]
    blinds: tuple[str, ...]
    blinded: tuple[str, ...]
    evaluated: tuple[str, ...]
    proof_scalar: str
    proof: tuple[str, str]
    outputs: tuple[str, ...]


_VECTORS = (
    _Vector(
        (b"\0",),
        (_ONE_BLIND,),
        ("c8713aa89241d6989ac142f22dba30596db635c772cbf25021fdd8f3d461f715",),
        ("1a4b860d808ff19624731e67b5eff20ceb2df3c3c03b906f5693e2078450d874",),
        _OTHER_BLIND,
        (
            "41ad1a291aa02c80b0915fbfbb0c0afa15a57e2970067a602ddb9e8fd6b7100d",
            "e32e1ecff943a36f0b10e3dae6bd266cdeb8adf825d86ef27dbc6c0e30c52206",
        ),
        (_OF_NOTHING,),
    ),
    _Vector(
        (_LONG,),
        (_ONE_BLIND,),
        ("f0f0b209dd4d5f1844dac679acc7761b91a2e704879656cb7c201e82a99ab07d",),
        ("8c3c9d064c334c6991e99f286ea2301d1bde170b54003fb9c44c6d7bd6fc1540",),
        _OTHER_BLIND,
        (
            "4c39992d55ffba38232cdac88fe583af8a85441fefd7d1d4a8d0394cd1de7701",
            "8bf135c174f20281b3341ab1f453fe72b0293a7398703384bed822bfdeec8908",
        ),
        (_OF_LONG,),
    ),
    _Vector(
        (b"\0", _LONG),
        (_ONE_BLIND, _OTHER_BLIND),
        (
            "c8713aa89241d6989ac142f22dba30596db635c772cbf25021fdd8f3d461f715",
            "423a01c072e06eb1cce96d23acce06e1ea64a609d7ec9e9023f3049f2d64e50c",
        ),
        (
            "1a4b860d808ff19624731e67b5eff20ceb2df3c3c03b906f5693e2078450d874",
            "aa1f16e903841036e38075da8a46655c94fc92341887eb5819f46312adfc0504",
        ),
        "419c4f4f5052c53c45f3da494d2b67b220d02118e0857cdbcf037f9ea84bbe0c",
        (
            "43fdb53be399cbd3561186ae480320caa2b9f36cca0e5b160c4a677b8bbf4301",
            "b28f12c36aa8e11e5a7ef551da0781e863a6dc8c0b2bf5a149c9e00621f02006",
        ),
        (_OF_NOTHING, _OF_LONG),
    ),
)


def test_the_public_key_is_the_rfcs() -> None:
    assert poprf.public_of(_KEY) == _PUBLIC


@pytest.mark.parametrize("vector", _VECTORS, ids=["one", "another", "both together"])
def test_the_rfcs_inputs_have_the_rfcs_outputs(vector: _Vector) -> None:
    blinds = map(bytes.fromhex, vector.blinds)
    inputs = [
        (message, poprf.blind(message, by))
        for message, by in zip(vector.inputs, blinds, strict=True)
    ]
    sent = [blinded.element for _, blinded in inputs]
    assert [element.hex() for element in sent] == list(vector.blinded)
    scalar = bytes.fromhex(vector.proof_scalar)
    answer, proof = poprf.blind_evaluate(_KEY, sent, _INFO, scalar)
    assert [element.hex() for element in answer] == list(vector.evaluated)
    assert proof.hex() == "".join(vector.proof)
    outputs = poprf.finalize(inputs, answer, proof, _PUBLIC, _INFO)
    assert [output.hex() for output in outputs] == list(vector.outputs)
    evaluations = [poprf.evaluate(_KEY, message, _INFO).hex() for message in vector.inputs]
    assert evaluations == list(vector.outputs)


def test_another_key_text_or_byte_is_refused() -> None:
    values = [b"a", b"b", b"c"]
    inputs = [(value, poprf.blind(value, poprf.new_blind())) for value in values]
    answer, proof = poprf.blind_evaluate(_KEY, [b.element for _, b in inputs], _INFO)
    poprf.finalize(inputs, answer, proof, _PUBLIC, _INFO)
    other = poprf.new_key()[1]
    wrong = [
        (answer, proof, other, _INFO),
        (answer, proof, _PUBLIC, b"another"),
        (answer, proof[:-1] + bytes([proof[-1] ^ 1]), _PUBLIC, _INFO),
        (answer, proof[:-1], _PUBLIC, _INFO),
        (answer[:-1], proof, _PUBLIC, _INFO),
        (answer[::-1], proof, _PUBLIC, _INFO),
        ([answer[0], answer[1], poprf.public_of(_KEY)], proof, _PUBLIC, _INFO),
        ([answer[0], answer[1], bytes(32)], proof, _PUBLIC, _INFO),
        ([answer[0], answer[1], b"\xff" * 32], proof, _PUBLIC, _INFO),
        (answer, proof, bytes(32), _INFO),
        (answer, proof, b"\xff" * 32, _INFO),
    ]
    for evaluated, wrong_proof, public, info in wrong:
        with pytest.raises(BadParameter):
            poprf.finalize(inputs, evaluated, wrong_proof, public, info)


def test_an_issuer_cannot_answer_one_of_many_with_another_key() -> None:
    inputs = [(bytes([n]), poprf.blind(bytes([n]), poprf.new_blind())) for n in range(4)]
    elements = [blinded.element for _, blinded in inputs]
    honest, proof = poprf.blind_evaluate(_KEY, elements, _INFO)
    marked, _ = poprf.blind_evaluate(poprf.new_key()[0], elements, _INFO)
    for place in range(4):
        mixed = [*honest[:place], marked[place], *honest[place + 1 :]]
        with pytest.raises(BadParameter, match="proof"):
            poprf.finalize(inputs, mixed, proof, _PUBLIC, _INFO)


def test_an_invalid_element_is_not_evaluated() -> None:
    for element in (bytes(32), b"\xff" * 32, b"short"):
        with pytest.raises(BadParameter):
            poprf.blind_evaluate(_KEY, [element], _INFO)


def test_the_length_of_an_answer_is_checked_before_reading() -> None:
    value = poprf.blind(b"one", poprf.new_blind())
    _, proof = poprf.blind_evaluate(_KEY, [value.element], _INFO)
    second = bytes([*value.element[:-1], value.element[-1] | 0x80])
    for element in (b"x" * 70_000, b"", bytes(32), b"\xff" * 32, bytes(31) + b"\x80", second):
        with pytest.raises(BadParameter, match="no element"):
            poprf.finalize([(b"one", value)], [element], proof, _PUBLIC, _INFO)


def test_a_system_that_loads_no_temporary_library_gets_a_remedy(
    tmp_path: Path,
) -> None:
    (tmp_path / "rbcl.py").write_text("raise OSError('failed to map segment')\n")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import hubbub.tokens.poprf"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "MissingDependency: tokens need libsodium" in done.stderr
    assert "set TMPDIR" in done.stderr


def test_no_two_blindings_of_one_input_are_alike() -> None:
    blinded = [poprf.blind(b"the same", poprf.new_blind()).element for _ in range(50)]
    assert all(element != other for element, other in combinations(blinded, 2))
