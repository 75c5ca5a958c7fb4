"""Requests to an issuer of tokens, and its answers, as messages; imported at the first request."""

from collections.abc import Mapping, Sequence

from google.protobuf.message import DecodeError

from hubbub.client.transport.contract import TryAgain
from hubbub.wire.v1.services_pb2 import TokenRequest, TokenResponse, WantedTokens


def request_of(blinded: Mapping[tuple[str, int], Sequence[bytes]]) -> bytes:
    """Returns the request's bytes: blinded elements by stream and epoch."""
    return TokenRequest(
        wanted=[
            WantedTokens(stream=stream, epoch=epoch, blinded=elements)
            for (stream, epoch), elements in blinded.items()
        ]
    ).SerializeToString()


def issued_in(answer: bytes, count: int) -> list[tuple[Sequence[bytes], bytes] | None]:
    """Returns elements and proof per request; None where all devices get none. Raises TryAgain."""
    try:
        issued = TokenResponse.FromString(answer).issued
    except DecodeError as error:
        raise TryAgain("no_issuer") from error
    if len(issued) != count:
        raise TryAgain("no_issuer")
    return [None if entry.not_given else (entry.evaluated, entry.proof) for entry in issued]
