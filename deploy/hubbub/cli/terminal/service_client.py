"""Asking running services: one call each, with errors that say what to do."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final, TypeVar

import grpc
from google.protobuf.message import Message

from hubbub.conservation import TERMS
from hubbub.errors import BatchTooSmall, HubbubError, ServiceUnavailable, UnknownMetric
from hubbub.errors.status import NAMED
from hubbub.runtime import TlsFolder
from hubbub.runtime.rpc.server import LARGEST_MESSAGE_BYTES
from hubbub.runtime.tls import check_plain
from hubbub.wire.v1.services_pb2 import (
    ListReleasesRequest,
    ListReleasesResponse,
    PipelineRequest,
    PipelineStatus,
    ReleaseRequest,
    ReleaseResponse,
    ReportCounts,
)
from hubbub.wire.v1.services_pb2_grpc import QueryStub, ReleasesStub

_CALL_SECONDS: Final = 60.0
_FILE: Final = "endpoints.json"
# Who watches a metric waits for its reports, and for no metric that there is not.
_KINDS: Final = {
    grpc.StatusCode.NOT_FOUND: UnknownMetric,
    grpc.StatusCode.FAILED_PRECONDITION: BatchTooSmall,
    grpc.StatusCode.UNAVAILABLE: ServiceUnavailable,
}
# Of a service that says nothing itself.
_SILENT: Final = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED})
_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Where questions are answered; `tls`: folder, or None for plain.

    page: the address of the web page and of HTTP/JSON. home: the folder of `hubbub up` that says
    so, if one does.
    """

    query: str
    tls: str | None = None
    page: str = ""
    home: str = ""

    def write(self, home: Path) -> None:
        """Write the endpoints where `read_endpoints` looks for them."""
        (home / _FILE).write_text(json.dumps(asdict(self)))


def read_endpoints(home: Path) -> Endpoints:
    """The endpoints of what `hubbub up` runs in this folder.

    Raises:
        ServiceUnavailable: nothing was started there.
    """
    try:
        kept = {**json.loads((home / _FILE).read_bytes()), "home": str(home)}
        return Endpoints(**{field.name: kept[field.name] for field in fields(Endpoints)})
    except (OSError, ValueError, TypeError, LookupError, RecursionError) as error:
        raise ServiceUnavailable(f"{nothing_runs(home)}; or give --query and --tls") from error


def nothing_runs(home: Path | str) -> str:
    """What is said of a folder in which no `hubbub up` runs now."""
    return f"nothing runs in {home}: start it with: hubbub up --home {home}"


def ask(where: Endpoints, question: str, request: Message) -> Any:
    """The answer to one question of the Query service."""
    return _ask(
        where,
        lambda c: getattr(QueryStub(c), question)(request, timeout=_CALL_SECONDS),
    )


def release(where: Endpoints, request: ReleaseRequest) -> ReleaseResponse:
    """Make a release."""
    return _ask(
        where,
        lambda c: ReleasesStub(c).Release(request, timeout=_CALL_SECONDS),
    )


def releases(where: Endpoints) -> ListReleasesResponse:
    """What was released, and what is left."""
    return _ask(
        where,
        lambda c: ReleasesStub(c).ListReleases(ListReleasesRequest(), timeout=_CALL_SECONDS),
    )


def report_counts(where: Endpoints) -> dict[tuple[str, int], dict[str, int]]:
    """Per stream and epoch, the terms of the conservation law; what waits in production as 0.

    Raises:
        ServiceUnavailable: the shuffler did not tell its terms.
    """
    return {(line.stream, line.epoch): _terms(line) for line in _law(where).windows}


def total_counts(where: Endpoints) -> dict[str, int]:
    """The terms of the conservation law over all streams. Raises as `report_counts` does."""
    return _terms(_law(where).total)


def _terms(line: ReportCounts) -> dict[str, int]:
    return {term: getattr(line, term) for term in TERMS}


def _law(where: Endpoints) -> PipelineStatus:
    found: PipelineStatus = ask(where, "Pipeline", PipelineRequest())
    if not found.complete:
        raise ServiceUnavailable(
            f"{where.query} does not know the shuffler's terms: start it with --shuffler-status, "
            "and the shuffler too"
        )
    return found


def _ask(where: Endpoints, call: Callable[[grpc.Channel], _Answer]) -> _Answer:
    address = where.query
    options = [("grpc.max_receive_message_length", LARGEST_MESSAGE_BYTES)]
    if where.tls is None:
        check_plain(address)
        channel = grpc.insecure_channel(address, options=options)
    else:
        credentials = TlsFolder(Path(where.tls), "analyst").channel_credentials("aggregator")
        channel = grpc.secure_channel(address, credentials, options=options)
    try:
        return call(channel)
    except grpc.RpcError as error:
        said = any(one.key == NAMED for one in error.trailing_metadata() or ())
        if not said and where.home and error.code() is grpc.StatusCode.UNAVAILABLE:
            raise ServiceUnavailable(nothing_runs(where.home)) from error
        if not said and error.code() in _SILENT:
            secured = "" if where.tls else " One with certificates is asked with --tls FOLDER."
            raise ServiceUnavailable(
                f"{address} does not answer: {error.details()}; is it running, and at this "
                f"address?{secured}"
            ) from error
        raise _KINDS.get(error.code(), HubbubError)(error.details()) from error
    finally:
        channel.close()
