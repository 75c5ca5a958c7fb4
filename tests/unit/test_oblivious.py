"""Oblivious HTTP: the RFCs' own answers, and what no gateway, client or reader takes."""

from contextlib import suppress
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from pyhpke import KEMKey, KEMKeyPair

from hubbub.errors import BadParameter, BadPayload
from hubbub.oblivious.binary_http import (
    Request,
    Response,
    read_request,
    read_response,
    write_request,
    write_response,
)
from hubbub.oblivious.encapsulation import Gateway, encapsulate
from hubbub.oblivious.key_config import key_config, read_config

# RFC 9458, appendix A.
PRIVATE = "3c168975674b2fa8e465970b79c8dcf09f1c741626480bd4c6162fc5b6a98e1a"
CONFIG = (
    "01002031e1f05a740102115220e9af918f738674aec95f54db6e04eb705aae8e79815500080001000100010003"
)
EPHEMERAL = "bc51d5e930bda26589890ac7032f70ad12e4ecb37abb1b65b1256c9c48999c73"
REQUEST = "00034745540568747470730b6578616d706c652e636f6d012f"
ENCAPSULATED = (
    "010020000100014b28f881333e7c164ffc499ad9796f877f4e1051ee6d31bad19dec96c208b4726374e469135906"
    "992e1268c594d2a10c695d858c40a026e7965e7d86b83dd440b2c0185204b4d63525"
)
RESPONSE = "0140c8"
ANSWER = "c789e7151fcba46158ca84b04464910d86f9013e404feea014e7be4a441f234f857fbd"
# RFC 9292, section 5: a request in both forms, and a response with a trailer.
_FIELDS = (
    "0a757365722d6167656e74346375726c2f372e31362e33206c69626375726c2f372e31362e33204f70656e53534c"
    "2f302e392e376c207a6c69622f312e322e3304686f73740f7777772e6578616d706c652e636f6d0f616363657074"
    "2d6c616e677561676506656e2c206d69"
)
_HELLO = "03474554056874747073000a2f68656c6c6f2e747874"
KNOWN_MESSAGE = f"00{_HELLO}406c{_FIELDS}0000"
INDETERMINATE = f"02{_HELLO}{_FIELDS}{'00' * 13}"
TRAILING = (
    "0140c8001d5468697320636f6e74656e7420636f6e7461696e732043524c462e0d0a0d07747261696c6572047465"
    "7874"
)
SMALL = Request(
    method=b"POST",
    scheme=b"https",
    authority=b"a:1",
    path=b"/",
    headers=((b"name", b"value"),),
    content=b"content",
)
NAMES = st.from_regex(rb"[a-z-]{1,70}", fullmatch=True)


def keys(secret: str) -> KEMKeyPair:
    private = X25519PrivateKey.from_private_bytes(bytes.fromhex(secret))
    of = KEMKey.from_pyca_cryptography_key
    return KEMKeyPair(of(private), of(private.public_key()))


def test_the_rfcs_request_and_answer_are_ours() -> None:
    config, request = bytes.fromhex(CONFIG), bytes.fromhex(REQUEST)
    message, opened = encapsulate(config, request, keys(EPHEMERAL))
    assert message.hex() == ENCAPSULATED
    assert opened(bytes.fromhex(ANSWER)).hex() == RESPONSE
    assert read_request(request) == Request(
        method=b"GET", scheme=b"https", authority=b"example.com", path=b"/"
    )
    assert read_response(bytes.fromhex(RESPONSE)) == Response(200)
    public = X25519PrivateKey.from_private_bytes(bytes.fromhex(PRIVATE)).public_key()
    assert read_config(config) == (1, public.public_bytes_raw())


def test_the_rfcs_messages_are_read_in_both_forms() -> None:
    request = read_request(bytes.fromhex(KNOWN_MESSAGE))
    assert read_request(bytes.fromhex(INDETERMINATE)) == request
    assert write_request(request).hex() == KNOWN_MESSAGE
    assert (request.method, request.authority, request.path) == (b"GET", b"", b"/hello.txt")
    assert dict(request.headers)[b"accept-language"] == b"en, mi"
    response = read_response(bytes.fromhex(TRAILING))
    assert response == Response(200, (), b"This content contains CRLF.\r\n")
    chunked = b"\x03\x40\x66\0" + b"\x40\xc8\x01a\x01b\0" + b"\x02hi\x01!\0\0\0"
    assert read_response(chunked) == Response(200, ((b"a", b"b"),), b"hi!")


@pytest.mark.parametrize(
    "wrong",
    [
        KNOWN_MESSAGE + "01",  # something behind
        KNOWN_MESSAGE[:60],  # cut off
        "0004504f535405687474707300012f09073a73746174757300",  # a pseudo-field
        "0004504f535405687474707300012f070548454c4c4f00",  # a name in capitals
        RESPONSE,
        "",
    ],
)
def test_an_invalid_request_is_refused(wrong: str) -> None:
    with pytest.raises(BadPayload):
        read_request(bytes.fromhex(wrong))


def test_a_message_is_cut_off_between_its_parts_or_refused() -> None:
    """RFC 9292, section 3.8: what is empty at the end may be left out, and nothing else."""
    message = write_request(SMALL)
    ends = {message.index(b"/") + 1, message.index(b"value") + 5, len(message) - 1}
    for end in range(len(message)):
        if end in ends:
            assert read_request(message[:end]).path == b"/"
        else:
            with pytest.raises(BadPayload):
                read_request(message[:end])


def test_a_field_does_not_reach_past_its_section() -> None:
    message = write_request(SMALL)
    assert message.count(b"\x05value") == 1
    with pytest.raises(BadPayload, match="ends too soon"):
        read_request(message.replace(b"\x05value", b"\x06value"))


@pytest.mark.parametrize("many", ["0161" + "00", "0161"])
def test_a_request_of_too_many_parts_is_refused_before_it_is_read_through(many: str) -> None:
    head = bytes.fromhex("0204504f53540568747470730001") + b"/"
    fields, chunks = (
        (bytes.fromhex(many) * 2000, b"") if many == "016100" else (b"", b"\x01a" * 2000)
    )
    with pytest.raises(BadPayload, match="more than 1024"):
        read_request(head + fields + b"\0" + chunks + b"\0\0")


@pytest.mark.slow
@given(
    st.binary(max_size=100),
    st.lists(st.tuples(NAMES, st.binary(max_size=200)), max_size=4),
    st.sampled_from([1, 64, 1024]),
)
def test_written_binary_http_is_read_back(
    content: bytes, headers: list[tuple[bytes, bytes]], step: int
) -> None:
    request = replace(SMALL, path=b"/v1/reports", headers=tuple(headers), content=content)
    payload_text = write_request(request, padded_to=step)
    assert len(payload_text) % step == 0
    assert read_request(payload_text) == request
    response = Response(503, tuple(headers), content)
    payload_text = write_response(response, padded_to=step)
    assert len(payload_text) % step == 0
    assert read_response(payload_text) == response


@given(st.binary(max_size=80))
def test_random_bytes_are_refused_with_a_sentence(noise: bytes) -> None:
    for reader in (read_request, read_response):
        with suppress(BadPayload):
            reader(noise)
    gateway = Gateway([X25519PrivateKey.generate()])
    with pytest.raises((BadPayload, BadParameter)):
        gateway.open(noise)
    with pytest.raises(BadParameter):
        encapsulate(noise, b"")


def test_an_altered_message_opens_nowhere() -> None:
    gateway = Gateway([X25519PrivateKey.from_private_bytes(bytes([n]) * 32) for n in (1, 2)])
    size = gateway.configs[1] + 2
    config = gateway.configs[2:size]
    message, opened = encapsulate(config, b"said")
    content, seal = gateway.open(message)
    answer = seal(b"answered")
    assert (content, opened(answer)) == (b"said", b"answered")
    for at in (10, 40, len(message) - 1):
        with pytest.raises(BadPayload):
            gateway.open(message[:at] + bytes([message[at] ^ 1]) + message[at + 1 :])
    for wrong in (answer[:-1], b"", answer[:20], encapsulate(config, b"said")[0]):
        with pytest.raises(BadPayload):
            opened(wrong)
    other, _ = encapsulate(config, b"said")
    with pytest.raises(BadPayload):
        opened(gateway.open(other)[1](b"answered"))


def test_a_gateway_has_a_key_and_each_has_its_number() -> None:
    key = X25519PrivateKey.generate()
    for wrong in ([], [key, key]):
        with pytest.raises(BadParameter, match="a gateway needs keys"):
            Gateway(wrong)
    weak = key_config(bytes(32))
    with pytest.raises(BadParameter, match="too weak to encrypt to"):
        encapsulate(weak, b"")
