"""Converts submissions and answers to protobuf messages, for every protocol."""

from collections.abc import Sequence
from functools import cache
from typing import Final

from hubbub.client.lazy_log import warn
from hubbub.client.transport.contract import SealedReport, Submitted
from hubbub.wire.v1 import report_pb2
from hubbub.wire.v1.services_pb2 import Reason, SubmitRequest, SubmitResponse

# Unknown reasons of newer shufflers are counted by number, up to a plausible one.
_REASONS: Final = 1000


def request_of(reports: Sequence[SealedReport]) -> SubmitRequest:
    """Returns the message of a submission."""
    paid = any(report.token for report in reports)
    return SubmitRequest(
        tokens=[report.token for report in reports] if paid else [],
        reports=[
            report_pb2.SealedReport(
                stream=r.stream, epoch=r.epoch, key_id=r.key_id, sealed=r.sealed
            )
            for r in reports
        ],
    )


def answer_of(response: SubmitResponse, reports: int) -> Submitted:
    """Returns the results of `reports` reports, however malformed the answer, and the notice."""
    results: list[str | None] = [None] * reports
    for refusal in response.refused:
        if refusal.index < reports:
            results[refusal.index] = _reason(refusal.reason)
    if any(refusal.index >= reports for refusal in response.refused):
        _warn_of_strays()
    return Submitted(results, response.notice, response.models, response.time)


@cache
def _warn_of_strays() -> None:
    """Warns, once per process, that reports were refused that had not been sent."""
    warn("the shuffler refused reports that it was not sent")


def _reason(number: "Reason.ValueType") -> str:
    """Returns the name of a reason, for counters; a newer shuffler's unknown one is also final."""
    if number in Reason.values():
        return "refused_" + Reason.Name(number).removeprefix("REASON_").lower()
    return f"refused_unknown_{number}" if 0 < number < _REASONS else "refused_unknown"
