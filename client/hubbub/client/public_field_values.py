"""Public values: fields of this device that an app reports in the clear, as its OS."""

from collections.abc import Callable, Mapping

from hubbub.bundles import Bundle
from hubbub.catalog import Metric, cell_of
from hubbub.errors import BadParameter

Public = Mapping[str, str | Callable[[], str]]
"""Each public field with its value; or with what tells it, which is asked at every report."""


class PublicValues:
    """The public fields of this device. Raises BadParameter unless they are texts or callables."""

    def __init__(self, public: Public | None = None) -> None:
        values: Public = {} if public is None else public
        if not isinstance(values, Mapping) or not all(
            isinstance(name, str) and (isinstance(value, str) or callable(value))
            for name, value in values.items()
        ):
            raise BadParameter(
                '"public" must be a mapping of texts, or a function that returns it, as '
                '{"os": "linux"}'
            )
        self._values = dict(values)

    def missing(self, bundle: Bundle) -> list[str]:
        """Returns the public fields that the bundle's metrics need and the app does not pass."""
        fields = {field for metric in bundle.metrics.values() for field in metric.breakdown}
        return sorted(fields - self._values.keys() - bundle.experiments.keys())

    def stream(self, metric: Metric, arms: Mapping[str, str]) -> str:
        """Returns the stream of this device's reports to a metric or tier; `arms` by experiment.

        Raises BadParameter if the app's function fails; its error is not shown.
        """
        if not metric.breakdown:
            return metric.name
        field_values = dict(arms)
        for field in metric.breakdown:
            if metric.experiment and field == metric.experiment.name:
                continue
            value = self._values.get(field)
            if callable(value):
                try:
                    value = value()
                except Exception as error:  # noqa: BLE001 the app's own, which may raise anything
                    raise BadParameter(
                        f"public: {field} raises {type(error).__name__}; pass a text, or a "
                        "function that returns a text"
                    ) from None
            if isinstance(value, str):
                field_values[field] = value
        return cell_of(metric.name, metric.breakdown, field_values)
