"""Asking running services: one call each, with errors that say what to do."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, TypeVar

import grpc

from hubbub.errors import HubbubError, ServiceUnavailable
from hubbub.serving import TlsFolder
from hubbub.serving.server import LARGEST_MESSAGE_BYTES
from hubbub.serving.tls import check_plain
from hubbub.wire.v1.services_pb2 import (
    EstimateRequest,
    EstimateResponse,
    MetricsRequest,
    MetricsResponse,
    RecordRequest,
    RecordResponse,
    ReleaseRequest,
    ReleaseResponse,
    StatusRequest,
)
from hubbub.wire.v1.services_pb2_grpc import OperatorStub, QueryStub, ReleasesStub

__all__ = [
    "LAW",
    "Endpoints",
    "estimate",
    "law",
    "metrics",
    "read_endpoints",
    "release",
    "releases",
    "whole",
]

_CALL_SECONDS: Final = 60.0
_FILE: Final = "endpoints.json"
_Answer = TypeVar("_Answer")

LAW: Final = (
    "acknowledged",
    "pooled",
    "in_flight",
    "counted",
    "duplicate",
    "rejected",
    "withheld",
)
"""The terms of the conservation law: the first is the sum of the others."""


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Where the query and the shuffler's status are served; `tls`: folder, or None for plain."""

    query: str
    shuffler_status: str
    tls: str | None

    def write(self, home: Path) -> None:
        """Keep them where `read_endpoints` looks."""
        (home / _FILE).write_text(json.dumps(asdict(self)))


def read_endpoints(home: Path) -> Endpoints:
    """The endpoints of what `hubbub up` runs in this folder.

    Raises:
        ServiceUnavailable: nothing was started there.
    """
    try:
        return Endpoints(**json.loads((home / _FILE).read_bytes()))
    except (OSError, ValueError, TypeError) as error:
        raise ServiceUnavailable(
            f"nothing runs in {home}: start it with: hubbub up --home {home}; "
            "or give --query, --shuffler-status and --tls"
        ) from error


def estimate(
    where: Endpoints, metric: str, epochs: Sequence[int], last: int, candidates: Sequence[str]
) -> EstimateResponse:
    """One metric's estimates."""
    request = EstimateRequest(metric=metric, epochs=epochs, last=last, candidates=candidates)
    return _ask(where.query, where, lambda c: QueryStub(c).Estimate(request, timeout=_CALL_SECONDS))


def release(where: Endpoints, request: ReleaseRequest) -> ReleaseResponse:
    """Make a release."""
    return _ask(
        where.query, where, lambda c: ReleasesStub(c).Release(request, timeout=_CALL_SECONDS)
    )


def releases(where: Endpoints) -> RecordResponse:
    """What was released, and what is left."""
    return _ask(
        where.query,
        where,
        lambda c: ReleasesStub(c).Record(RecordRequest(), timeout=_CALL_SECONDS),
    )


def metrics(where: Endpoints) -> MetricsResponse:
    """Every metric, with the epochs that hold reports."""
    return _ask(
        where.query,
        where,
        lambda c: QueryStub(c).Metrics(MetricsRequest(), timeout=_CALL_SECONDS),
    )


def law(where: Endpoints) -> dict[tuple[str, int], dict[str, int]]:
    """Per stream and epoch, the terms of the conservation law from both services."""
    terms: dict[tuple[str, int], dict[str, int]] = {}
    # The aggregator first: what is counted in between then shows as still in flight, not twice.
    for address in (where.query, where.shuffler_status):
        status = _ask(
            address,
            where,
            lambda c: OperatorStub(c).Status(StatusRequest(), timeout=_CALL_SECONDS),
        )
        for window in status.windows:
            entry = terms.setdefault((window.stream, window.epoch), dict.fromkeys(LAW, 0))
            for term, number in window.terms.items():
                entry[term.partition(":")[0]] += number
    return dict(sorted(terms.items()))


def whole(windows: Iterable[dict[str, int]]) -> dict[str, int]:
    """The terms of the law over all these windows."""
    terms = dict.fromkeys(LAW, 0)
    for window in windows:
        for term in LAW:
            terms[term] += window[term]
    return terms


def _ask(address: str, where: Endpoints, call: Callable[[grpc.Channel], _Answer]) -> _Answer:
    options = [("grpc.max_receive_message_length", LARGEST_MESSAGE_BYTES)]
    if where.tls is None:
        check_plain(address)
        channel = grpc.insecure_channel(address, options=options)
    else:
        credentials = TlsFolder(Path(where.tls), "analyst").channel_credentials()
        channel = grpc.secure_channel(address, credentials, options=options)
    try:
        return call(channel)
    except grpc.RpcError as error:
        if error.code() in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED}:
            raise ServiceUnavailable(
                f"{address} does not answer: {error.details()}; is it running, and at this address?"
            ) from error
        raise HubbubError(error.details()) from error
    finally:
        channel.close()
