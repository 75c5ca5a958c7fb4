"""Maps errors to HTTP status codes, and titles of problems back to errors."""

from collections.abc import Mapping
from typing import Final

from hubbub import errors
from hubbub.errors import HubbubError

_FAULT: Final = 500
_STATUS: Final[Mapping[type[HubbubError], int]] = {
    errors.BadParameter: 400,
    errors.ValueOutOfDomain: 400,
    errors.UnknownMetric: 404,
    errors.UnknownList: 404,
    errors.UnknownMark: 404,
    errors.BatchTooSmall: 409,
    errors.TooFewEpochs: 409,
    errors.BudgetExhausted: 409,
    errors.AccessRefused: 403,
    errors.MissingDependency: 501,
    errors.ServiceUnavailable: 503,
    errors.StoreUnavailable: 503,
    errors.StoreFull: 503,
    errors.TotalsUnreadable: 503,
}


def status_of(error: HubbubError) -> int:
    """The HTTP status of an error's class or nearest base class; 500 for a fault of the service."""
    return next((_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS), _FAULT)


def error_named(title: str) -> type[HubbubError] | None:
    """The error class for a problem's title; None if it is not one of ours."""
    return next((kind for kind in _STATUS if kind.__name__ == title), None)
