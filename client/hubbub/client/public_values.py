"""Public values: what an app says in the clear of the device that it runs on, as its OS."""

from collections.abc import Callable, Mapping
from typing import Final

from hubbub.catalog import Bundle, Metric, cell_of
from hubbub.errors import BadParameter

Public = Mapping[str, str | Callable[[], str]]
"""Each public field with its value; or with what tells it, which is asked at every report."""

_NOTHING: Final[Public] = {}


class PublicValues:
    """What the app says of this device.

    Raises:
        BadParameter: no texts or callables by name.
    """

    def __init__(self, given: Public | None = None) -> None:
        held = _NOTHING if given is None else given
        if not isinstance(held, Mapping) or not all(
            isinstance(name, str) and (isinstance(one, str) or callable(one))
            for name, one in held.items()
        ):
            raise BadParameter(
                'public must be texts by name, or what returns them, as {"os": "linux"}'
            )
        self._held = dict(held)

    def missing(self, bundle: Bundle) -> list[str]:
        """The public fields that the bundle's metrics ask for, and the app says nothing of."""
        asked = {field for metric in bundle.metrics.values() for field in metric.breakdown}
        return sorted(asked - self._held.keys())

    def stream(self, metric: Metric) -> str:
        """The stream of this device's reports to a metric, or to a tier of it.

        Raises:
            BadParameter: a callable raises; it does not show what.
        """
        if not metric.breakdown:
            return metric.name
        told = {}
        for field in metric.breakdown:
            held = self._held.get(field)
            value = _called(field, held) if callable(held) else held
            if isinstance(value, str):
                told[field] = value
        return cell_of(metric.name, metric.breakdown, told)


def _called(field: str, told: Callable[[], str]) -> str:
    try:
        return told()
    except Exception as error:  # noqa: BLE001 the app's own, which may raise anything
        raise BadParameter(
            f"public: {field} raises {type(error).__name__}; give a text, or what returns one"
        ) from None
