"""Estimates as OpenTelemetry metrics, sent to a collector over OTLP/HTTP.

Every closed epoch yields a gauge per figure: hubbub.estimate, hubbub.estimate.low, .high and
.stderr, and hubbub.share, with a data point per value and the attributes `metric`, `value` and
`unit`; and hubbub.reports per metric. The times of a point are those of its epoch.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from hubbub.aggregator.publishing.publisher import Closed, DeliveryLog, HttpReceiver
from hubbub.errors.message_words import needs
from hubbub.runtime.version import VERSION

_FIGURES: Final = {
    "estimate": "hubbub.estimate",
    "low": "hubbub.estimate.low",
    "high": "hubbub.estimate.high",
    "stderr": "hubbub.estimate.stderr",
    "share": "hubbub.share",
}


def collector(url: str, delivery_log: DeliveryLog) -> HttpReceiver:
    """An OpenTelemetry collector, to which every closed epoch is sent until it is accepted.

    `url` is that of its metrics, such as http://127.0.0.1:4318/v1/metrics.

    Raises:
        BadParameter: no http or https address.
        MissingDependency: OpenTelemetry is not installed.
    """
    export_request({})  # fails now, if OpenTelemetry is missing

    def encode(closed: Closed) -> tuple[Mapping[str, str], bytes] | None:
        if "values" not in closed.document:
            return None
        return {"Content-Type": "application/x-protobuf"}, export_request(closed.document)

    return HttpReceiver(
        url=url,
        delivery_log=delivery_log,
        setting="--otlp",
        name="collector",
        encode=encode,
        kind="otlp:",
    )


def export_request(document: Mapping[str, Any]) -> bytes:
    """An epoch's answer as an ExportMetricsServiceRequest; empty for an empty document."""
    with needs("--otlp needs OpenTelemetry", "tracing"):
        from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (  # noqa: PLC0415 optional
            ExportMetricsServiceRequest,
        )
    request = ExportMetricsServiceRequest()
    if not document:
        return b""
    resource = request.resource_metrics.add()
    _add_attributes(resource.resource.attributes, {"service.name": "hubbub"})
    scope = resource.scope_metrics.add()
    scope.scope.name, scope.scope.version = "hubbub", VERSION
    begin, end = (
        int(datetime.fromisoformat(document[name]).timestamp()) * 10**9
        for name in ("since", "until")
    )
    for name, points in _gauges(document):
        metric = scope.metrics.add(name=name)
        for figure, attributes in points:
            point = metric.gauge.data_points.add(
                as_double=figure, start_time_unix_nano=begin, time_unix_nano=end
            )
            _add_attributes(point.attributes, attributes)
    content: bytes = request.SerializeToString()
    return content


def _gauges(
    document: Mapping[str, Any],
) -> Iterator[tuple[str, list[tuple[float, dict[str, str]]]]]:
    """Each gauge's name and points, each a figure with its attributes."""
    head = {"metric": document["metric"]}
    if document["notice"]:
        head["notice"] = document["notice"]
    yield "hubbub.reports", [(document["reports"], head)]
    for field, name in _FIGURES.items():
        points = [
            (value[field], {**head, "value": value["value"], "unit": document["unit"] or "reports"})
            for value in document["values"]
            if value[field] is not None
        ]
        if points:
            yield name, points


def _add_attributes(attributes: Any, values: Mapping[str, str]) -> None:
    for key, text in values.items():
        attributes.add(key=key).value.string_value = text
