"""What an app tells of: a metric's or a model's name, and what it says of a person.

PRIVACY: what is no name may be a value in the wrong place, and what cannot be read may raise with a
value in its text; so neither is ever shown.
"""

from collections.abc import Callable, Mapping
from typing import TypeVar

from hubbub.catalog import Bundle, Metric
from hubbub.catalog.models.learning import Learning
from hubbub.errors import UnknownMetric, ValueOutOfDomain

Read = TypeVar("Read")


def named_metric(bundle: Bundle, name: str) -> Metric:
    """The metric of this name. Raises UnknownMetric, which does not show the name."""
    try:
        return bundle.metric(name)
    except Exception:  # noqa: BLE001 an object of the app's in its place may raise anything
        raise _no_such("metric", bundle.metrics) from None


def named_model(bundle: Bundle, name: str) -> Learning:
    """What the reports of this metric teach. Raises UnknownMetric, which does not show the name."""
    try:
        return bundle.model(name)
    except Exception:  # noqa: BLE001 as above
        raise _no_such("model", bundle.models) from None


def read(whose: str, reading: Callable[[], Read]) -> Read:
    """What `reading` says of the app's objects, which may raise anything.

    Args:
        whose: what it is of, for the error.
        reading: looks at the objects.

    Raises:
        ValueOutOfDomain: as `reading` does; or it raised something else, of which the type is told.
    """
    try:
        return reading()
    except ValueOutOfDomain:
        raise
    except Exception as error:  # noqa: BLE001 as said
        wrong = f"{whose}: cannot be read: {type(error).__name__}"
        raise ValueOutOfDomain(wrong) from None


def _no_such(kind: str, known: Mapping[str, object]) -> UnknownMetric:
    names = ", ".join(sorted(known)) or "none"
    return UnknownMetric(
        f"the bundle has no {kind} of this name; it has {names}; "
        "the name goes first, then the value"
    )
