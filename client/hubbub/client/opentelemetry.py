"""Reports chosen OpenTelemetry instruments of an app as private reports.

    exporter = PrivateMetricExporter(client, {"startup": "startup", "themes": Named("theme")})
    reader = PeriodicExportingMetricReader(exporter, export_interval_millis=86_400_000)
    provider = MeterProvider(metric_readers=[reader, *other_readers])

Each export is one report per instrument, so set the interval to the metric's epoch: reports above
the metric's limits are not sent. Other instruments never leave the device.
"""

import logging
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.sdk import metrics as instruments
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    MetricExporter,
    MetricExportResult,
    MetricsData,
)

from hubbub.fields.frozen import frozen

if TYPE_CHECKING:
    from hubbub.client.client import Client

__all__ = ["Named", "PrivateMetricExporter"]

_log: Final = logging.getLogger("hubbub.client")

_DELTA: Final[dict[type, AggregationTemporality]] = {
    instruments.Counter: AggregationTemporality.DELTA,
    instruments.Histogram: AggregationTemporality.DELTA,
    instruments.ObservableCounter: AggregationTemporality.DELTA,
}


@frozen()
class Named:
    """Reports an attribute of the measurements instead of their number.

    Args:
        metric: name in the catalog.
        attribute: its most frequent value is reported; "" for the attribute named as the metric.
    """

    metric: str
    attribute: str = ""


class PrivateMetricExporter(MetricExporter):
    """An OpenTelemetry exporter that reports through a client, and sends nothing else.

    For the measurements since the last export it reports

    - the sum of a counter, the mean of a histogram, the newest value of a gauge;
    - with Named, the attribute's most frequent value.

    Args:
        client: stays the app's to close.
        metrics: metric to report, by the name of an instrument.
    """

    def __init__(self, client: "Client", metrics: Mapping[str, str | Named]) -> None:
        super().__init__(preferred_temporality=_DELTA)
        self._client = client
        self._metrics = dict(metrics)

    def export(
        self, metrics_data: MetricsData, timeout_millis: float = 10_000, **_: Any
    ) -> MetricExportResult:
        """Reports the measurements, without network I/O; the client counts what is not sent.

        An instrument that a strict client refuses is logged, and the others are reported.
        """
        del timeout_millis
        for resource in metrics_data.resource_metrics:
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    try:
                        if metric.name in self._metrics:
                            self._report(self._metrics[metric.name], metric.data)
                    except Exception as error:  # noqa: BLE001 it must not cost the other instruments
                        # PRIVACY: a strict client's message has a hint near the value.
                        problem = type(error).__name__
                        _log.error("instrument %s is not reported: %s", metric.name, problem)
        return MetricExportResult.SUCCESS

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        """Sends what waits; returns whether all of it was sent in time."""
        return self._client.flush(timeout_millis / 1000)

    def shutdown(self, timeout_millis: float = 30_000, **_: Any) -> None:
        """Does nothing: the client works until the app closes it."""

    def _report(self, chosen: str | Named, data: Any) -> None:
        if not isinstance(chosen, Named):
            if data.data_points:
                self._client.report(chosen, _figure(data))
            return
        counts = Counter[str]()
        for point in data.data_points:
            text = point.attributes.get(chosen.attribute or chosen.metric)
            if text is not None:
                # How often the point was counted or measured; 1 for a gauge.
                is_sum = hasattr(data, "is_monotonic")
                counts[str(text)] += int(getattr(point, "count", point.value if is_sum else 1))
        for text, number in counts.most_common(1):
            if number > 0:
                self._client.report(chosen.metric, text)


def _figure(data: Any) -> float:
    """Returns the combined value of all points of an instrument."""
    points = data.data_points
    if hasattr(data, "is_monotonic"):
        return float(sum(point.value for point in points))
    if hasattr(points[0], "count"):
        return float(sum(point.sum for point in points) / sum(point.count for point in points))
    newest: Any = max(points, key=lambda point: point.time_unix_nano)
    return float(newest.value)
