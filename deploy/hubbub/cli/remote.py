"""Asking running services: one call each, with errors that say what to do."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import grpc
from google.protobuf.message import Message

from hubbub.errors import HubbubError, ServiceUnavailable
from hubbub.serving import LAW, TlsFolder
from hubbub.serving.server import LARGEST_MESSAGE_BYTES
from hubbub.serving.tls import check_plain
from hubbub.wire.v1.services_pb2 import (
    RecordRequest,
    RecordResponse,
    ReleaseRequest,
    ReleaseResponse,
    StatusRequest,
)
from hubbub.wire.v1.services_pb2_grpc import OperatorStub, QueryStub, ReleasesStub

__all__ = [
    "Endpoints",
    "ask",
    "law",
    "read_endpoints",
    "release",
    "releases",
]

_CALL_SECONDS: Final = 60.0
_FILE: Final = "endpoints.json"
_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Where the query and the shuffler's status are served; `tls`: folder, or None for plain.

    page: the address of the web page and of HTTP/JSON.
    """

    query: str
    shuffler_status: str
    tls: str | None
    page: str = ""

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
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise ServiceUnavailable(
            f"nothing runs in {home}: start it with: hubbub up --home {home}; "
            "or give --query, --shuffler-status and --tls"
        ) from error


def ask(where: Endpoints, question: str, request: Message) -> Any:  # noqa: ANN401 each question's own
    """The answer to one question of the Query service."""
    return _ask(
        where.query,
        "aggregator",
        where,
        lambda c: getattr(QueryStub(c), question)(request, timeout=_CALL_SECONDS),
    )


def release(where: Endpoints, request: ReleaseRequest) -> ReleaseResponse:
    """Make a release."""
    return _ask(
        where.query,
        "aggregator",
        where,
        lambda c: ReleasesStub(c).Release(request, timeout=_CALL_SECONDS),
    )


def releases(where: Endpoints) -> RecordResponse:
    """What was released, and what is left."""
    return _ask(
        where.query,
        "aggregator",
        where,
        lambda c: ReleasesStub(c).Record(RecordRequest(), timeout=_CALL_SECONDS),
    )


def law(where: Endpoints) -> dict[tuple[str, int], dict[str, int]]:
    """Per stream and epoch, the terms of the conservation law from both services."""
    terms: dict[tuple[str, int], dict[str, int]] = {}
    # The aggregator first: what is counted in between then shows as still in flight, not twice.
    for address, role in ((where.query, "aggregator"), (where.shuffler_status, "shuffler")):
        status = _ask(
            address,
            role,
            where,
            lambda c: OperatorStub(c).Status(StatusRequest(), timeout=_CALL_SECONDS),
        )
        for window in status.windows:
            entry = terms.setdefault((window.stream, window.epoch), dict.fromkeys(LAW, 0))
            for term, number in window.terms.items():
                entry[term.partition(":")[0]] += number
    return dict(sorted(terms.items()))


def _ask(
    address: str, role: str, where: Endpoints, call: Callable[[grpc.Channel], _Answer]
) -> _Answer:
    options = [("grpc.max_receive_message_length", LARGEST_MESSAGE_BYTES)]
    if where.tls is None:
        check_plain(address)
        channel = grpc.insecure_channel(address, options=options)
    else:
        credentials = TlsFolder(Path(where.tls), "analyst").channel_credentials(role)
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
