"""Maps errors to HTTP status codes, and titles of problems back to errors."""

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
    """The HTTP status of an error's class, or of its nearest base class with one.

    Other errors are faults of the service: 500.
    """
    return next((_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS), _FAULT)


def error_named(title: str) -> type[HubbubError] | None:
    """The error class for a problem's title; None if it is not one of ours."""
    return next((kind for kind in _STATUS if kind.__name__ == title), None)
