"""Status: what an error is called over gRPC and over HTTP, the same for every door."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hubbub.errors import (
    AccessRefused,
    BadParameter,
    BatchTooSmall,
    BudgetExhausted,
    HubbubError,
    MissingDependency,
    ServiceUnavailable,
    StoreFull,
    StoreUnavailable,
    TooFewEpochs,
    UnknownList,
    UnknownMark,
    UnknownMetric,
    ValueOutOfDomain,
)


@dataclass(frozen=True, slots=True)
class Status:
    """grpc: the name of a status code of gRPC. http: a status code of HTTP."""

    grpc: str
    http: int


NAMED: Final = "hubbub-error"
"""Of gRPC's trailing metadata: the error's class, which no proxy would say."""

# Of any other kind it is a fault of ours.
_FAULT: Final = Status("INTERNAL", 500)
_STATUS: Final[Mapping[type[Exception], Status]] = {
    BadParameter: Status("INVALID_ARGUMENT", 400),
    ValueOutOfDomain: Status("INVALID_ARGUMENT", 400),
    UnknownMetric: Status("NOT_FOUND", 404),
    UnknownList: Status("NOT_FOUND", 404),
    UnknownMark: Status("NOT_FOUND", 404),
    BatchTooSmall: Status("FAILED_PRECONDITION", 409),
    TooFewEpochs: Status("FAILED_PRECONDITION", 409),
    BudgetExhausted: Status("FAILED_PRECONDITION", 409),
    AccessRefused: Status("PERMISSION_DENIED", 403),
    MissingDependency: Status("UNIMPLEMENTED", 501),
    ServiceUnavailable: Status("UNAVAILABLE", 503),
    StoreUnavailable: Status("UNAVAILABLE", 503),
    StoreFull: Status("RESOURCE_EXHAUSTED", 503),
}


def status_of(error: HubbubError) -> Status:
    """The status of an error's class, or of the nearest class above it that has one."""
    return next((_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS), _FAULT)
