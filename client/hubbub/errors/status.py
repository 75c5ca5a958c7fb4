"""Status: the code that an error has over HTTP, and the error that a problem's title names."""

from collections.abc import Mapping
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
    TotalsUnreadable,
    UnknownList,
    UnknownMark,
    UnknownMetric,
    ValueOutOfDomain,
)

_FAULT: Final = 500
_STATUS: Final[Mapping[type[HubbubError], int]] = {
    BadParameter: 400,
    ValueOutOfDomain: 400,
    UnknownMetric: 404,
    UnknownList: 404,
    UnknownMark: 404,
    BatchTooSmall: 409,
    TooFewEpochs: 409,
    BudgetExhausted: 409,
    AccessRefused: 403,
    MissingDependency: 501,
    ServiceUnavailable: 503,
    StoreUnavailable: 503,
    StoreFull: 503,
    TotalsUnreadable: 503,
}


def status_of(error: HubbubError) -> int:
    """The status of an error's class, or of the nearest class above it that has one.

    Any other kind is a fault of the service: 500.
    """
    return next((_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS), _FAULT)


def error_named(title: str) -> type[HubbubError] | None:
    """The error that a service names in a problem's title; None where it names no error of ours."""
    return next((kind for kind in _STATUS if kind.__name__ == title), None)
