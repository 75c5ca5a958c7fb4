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


def unreadable(subject: str, error: Exception) -> ValueOutOfDomain:
    """The error for an object of the app's that raised as it was read; it shows only the type.

    Args:
        subject: the metric or model that the object is for.
        error: what the object raised.
    """
    return ValueOutOfDomain(f"{subject}: cannot be read: {type(error).__name__}")


def _named(kind: str, known: Mapping[str, object], find: Callable[[], Read]) -> Read:
    try:
        return find()
    except Exception:  # noqa: BLE001 an object of the app's in its place may raise anything
        names = ", ".join(sorted(known)) or "none"
        raise UnknownMetric(
            f"the bundle has no {kind} of this name; it has {names}; "
            "the name goes first, then the value"
        ) from None
