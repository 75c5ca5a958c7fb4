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
    return _named("metric", bundle.metrics, lambda: bundle.metric(name))


def named_model(bundle: Bundle, name: str) -> Learning:
    """What the reports of this metric teach. Raises UnknownMetric, which does not show the name."""
    return _named("model", bundle.models, lambda: bundle.model(name))


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
    except Exception as error:  # noqa: BLE001 the app's own may raise anything
        wrong = f"{whose}: cannot be read: {type(error).__name__}"
        raise ValueOutOfDomain(wrong) from None


def _named(kind: str, known: Mapping[str, object], find: Callable[[], Read]) -> Read:
    try:
        return find()
    except Exception:  # noqa: BLE001 an object of the app's in its place may raise anything
        names = ", ".join(sorted(known)) or "none"
        raise UnknownMetric(
            f"the bundle has no {kind} of this name; it has {names}; "
            "the name goes first, then the value"
        ) from None
