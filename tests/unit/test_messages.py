"""The client's own encoding of messages beside protobuf's library, which services use."""

from contextlib import suppress

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from hubbub.client import SealedReport, TryAgain
from hubbub.client.transport.messages import (
    REASONS,
    answer_in,
    fields_of,
    issued_in,
    request_of,
    token_request_of,
)
from hubbub.wire.v1.services_pb2 import (
    IssuedTokens,
    Reason,
    Refusal,
    SubmitRequest,
    SubmitResponse,
    TokenRequest,
    TokenResponse,
    WantedTokens,
)

NUMBERS = st.integers(0, 2**32 - 1)
LISTS_OF_BYTES = st.lists(st.binary(max_size=300), max_size=3)


@pytest.mark.slow
@given(
    st.lists(
        st.builds(
            SealedReport,
            stream=st.text(max_size=200),
            epoch=NUMBERS,
            key_id=NUMBERS,
            sealed=st.binary(max_size=300),
            token=st.binary(max_size=32),
        ),
        max_size=3,
    )
)
def test_a_submission_has_the_bytes_of_the_library(reports: list[SealedReport]) -> None:
    request = SubmitRequest()
    for report in reports:
        request.reports.add(
            stream=report.stream, epoch=report.epoch, key_id=report.key_id, sealed=report.sealed
        )
    if any(report.token for report in reports):
        request.tokens.extend(report.token for report in reports)
    assert request_of(reports) == request.SerializeToString(deterministic=True)


@pytest.mark.slow
@given(st.dictionaries(st.tuples(st.text(max_size=9), NUMBERS), LISTS_OF_BYTES, max_size=3))
def test_a_request_for_tokens_has_the_bytes_of_the_library(
    blinded: dict[tuple[str, int], list[bytes]],
) -> None:
    wanted = [
        WantedTokens(stream=stream, epoch=epoch, blinded=elements)
        for (stream, epoch), elements in blinded.items()
    ]
    assert token_request_of(blinded) == TokenRequest(wanted=wanted).SerializeToString(
        deterministic=True
    )


@given(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from(Reason.values())), max_size=3),
    st.binary(max_size=300),
    st.binary(max_size=300),
    st.integers(-(2**63), 2**63 - 1),
)
def test_an_answer_of_the_library_is_read(
    refusals: list[tuple[int, Reason.ValueType]], notice: bytes, models: bytes, time: int
) -> None:
    refused = [Refusal(index=index, reason=reason) for index, reason in refusals]
    response = SubmitResponse(refused=refused, notice=notice, models=models, time=time)
    answer = answer_in(response.SerializeToString(), 3)
    assert answer[1:] == (notice, models, time)
    reasons = dict(refusals)
    assert answer.results == [
        REASONS[reasons[index]] if index in reasons else None for index in range(3)
    ]


@given(st.lists(st.tuples(LISTS_OF_BYTES, st.binary(max_size=64), st.booleans()), max_size=3))
def test_issued_tokens_of_the_library_are_read(
    entries: list[tuple[list[bytes], bytes, bool]],
) -> None:
    issued = [
        IssuedTokens(evaluated=evaluated, proof=proof, not_given=not_given)
        for evaluated, proof, not_given in entries
    ]
    answer = TokenResponse(issued=issued).SerializeToString()
    assert issued_in(answer, len(entries)) == [
        None if not_given else (evaluated, proof) for evaluated, proof, not_given in entries
    ]


def _varint(number: int, size: int) -> bytes:
    """The number in at least `size` bytes, more than it needs."""
    digits = [
        number >> 7 * place & 0x7F for place in range(max(size, -(-number.bit_length() // 7)))
    ]
    return bytes(digit | 0x80 for digit in digits[:-1]) + bytes(digits[-1:])


@given(
    st.one_of(st.sampled_from((1, 5, 2**29 - 1, 2**29)), st.integers(0, 2**33)),
    st.sampled_from(((0, b"\1"), (1, bytes(8)), (2, b""), (5, bytes(4)), (6, b""), (7, b""))),
    st.lists(st.integers(1, 11), min_size=2, max_size=2),
)
def test_fields_are_refused_as_the_library_refuses_them(
    number: int, content: tuple[int, bytes], sizes: list[int]
) -> None:
    kind, value = content
    message = _varint(number << 3 | kind, sizes[0])
    message += value if kind in {1, 5} else _varint(sum(value), sizes[1]) + value[1:]
    try:
        SubmitResponse.FromString(message)
    except DecodeError:
        with pytest.raises(ValueError, match=r"number|kind"):
            list(fields_of(message))
    else:
        assert len(list(fields_of(message))) == (kind in {0, 2})


@given(st.binary(max_size=40))
def test_any_bytes_give_an_answer_or_an_error(raw: bytes) -> None:
    with suppress(TryAgain):
        answer_in(raw, 3)
    with suppress(TryAgain):
        issued_in(raw, 1)


def test_reasons_are_those_of_the_services_by_number() -> None:
    names = [Reason.Name(number).removeprefix("REASON_") for number in sorted(Reason.values())]
    assert [f"refused_{name.lower()}" for name in names] == list(REASONS)
