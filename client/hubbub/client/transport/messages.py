"""Messages to the shuffler and the issuer of tokens, and their answers; services.proto has them."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

from hubbub.client.lazy_log import warn
from hubbub.client.transport.contract import SealedReport, Submitted, TryAgain
from hubbub.client.transport.protobuf import UINT32, element, field, fields_of

REASONS: Final = (
    "refused_unspecified",
    "refused_unknown_stream",
    "refused_wrong_length",
    "refused_wrong_key",
    "refused_expired",
    "refused_not_yet",
    "refused_unknown_field",
    "refused_no_token",
    "refused_token_spent",
)
"""Why a report is refused, for counters, by the numbers of Reason."""

# Unknown reasons of newer shufflers are counted by number, up to a plausible one.
_MAX_REASON: Final = 1000


def request_of(reports: Sequence[SealedReport]) -> bytes:
    """Returns the SubmitRequest of reports."""
    messages = [
        element(
            1,
            field(1, report.stream)
            + field(2, report.epoch)
            + field(3, report.key_id)
            + field(4, report.sealed),
        )
        for report in reports
    ]
    if any(report.token for report in reports):
        messages += [element(2, report.token) for report in reports]
    return b"".join(messages)


def answer_in(response: bytes, reports: int) -> Submitted:
    """Returns what a SubmitResponse to `reports` reports contains. Raises TryAgain if malformed."""
    results: list[str | None] = [None] * reports
    notice, models, seconds, has_strays = b"", b"", 0, False
    try:
        for member in fields_of(response):
            match member:
                case 1, bytes(refusal):
                    index, reason = _refusal(refusal)
                    if index < reports:
                        results[index] = reason
                    has_strays |= index >= reports
                case 2, bytes(signed):
                    notice = signed
                case 3, bytes(signed):
                    models = signed
                case 4, int(number):
                    seconds = number - (number >> 63 << 64)  # is signed
    except ValueError as error:
        raise TryAgain("no_shuffler") from error
    if has_strays:
        _warn_of_strays()
    return Submitted(results, notice, models, seconds)


def _refusal(message: bytes) -> tuple[int, str]:
    """The report's index, and the reason."""
    members = {number: value for number, value in fields_of(message) if isinstance(value, int)}
    reason = members.get(2, 0) & UINT32
    if reason < len(REASONS):
        name = REASONS[reason]
    else:
        name = f"refused_unknown_{reason}" if reason < _MAX_REASON else "refused_unknown"
    return members.get(1, 0) & UINT32, name


@cache
def _warn_of_strays() -> None:
    """Warns, once per process, that reports were refused that had not been sent."""
    warn("the shuffler refused reports that it was not sent")


def token_request_of(blinded: Mapping[tuple[str, int], Sequence[bytes]]) -> bytes:
    """Returns the TokenRequest of blinded elements by stream and epoch."""
    return b"".join(
        element(
            1,
            field(1, stream)
            + field(2, epoch)
            + b"".join(element(3, blinded_element) for blinded_element in elements),
        )
        for (stream, epoch), elements in blinded.items()
    )


def issued_in(answer: bytes, count: int) -> list[tuple[Sequence[bytes], bytes] | None]:
    """Returns elements and proof per request; None where all devices get none. Raises TryAgain."""
    try:
        issued = [
            _issued_tokens(value)
            for number, value in fields_of(answer)
            if number == 1 and isinstance(value, bytes)
        ]
    except ValueError as error:
        raise TryAgain("no_issuer") from error
    if len(issued) != count:
        raise TryAgain("no_issuer")
    return issued


def _issued_tokens(message: bytes) -> tuple[Sequence[bytes], bytes] | None:
    evaluated: list[bytes] = []
    proof, is_given = b"", True
    for member in fields_of(message):
        match member:
            case 1, bytes(evaluated_element):
                evaluated.append(evaluated_element)
            case 2, bytes(content):
                proof = content
            case 3, int(flag):
                is_given = not flag
    return (evaluated, proof) if is_given else None
