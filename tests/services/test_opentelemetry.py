"""OpenTelemetry: an app's instruments become private reports; estimates become metrics."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

from hubbub.aggregator.publishing.otlp import collector
from hubbub.aggregator.publishing.publisher import DeliveryLog, EpochPublisher
from hubbub.aggregator.query.epoch_range import EpochRange
from hubbub.aggregator.query.estimating import EstimateQuery
from hubbub.client import Outcome
from hubbub.client.opentelemetry import Named, PrivateMetricExporter
from hubbub.client.testing import memory_client
from hubbub.errors import BadParameter
from hubbub.runtime.redis.command_sender import MemoryServer
from tests.support import web
from tests.support.alerting_metrics import engine_of, signed_in
from tests.support.bundles import Signed


class Receiver(BaseHTTPRequestHandler):
    """A collector's receiver of metrics: takes what OTLP's own messages can read."""

    requests: list[ExportMetricsServiceRequest] = []  # noqa: RUF012 one server at a time
    refusals = 0

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        assert self.headers["Content-Type"] == "application/x-protobuf"
        if Receiver.refusals:
            Receiver.refusals -= 1
            self.send_response(503)
        else:
            Receiver.requests.append(ExportMetricsServiceRequest.FromString(body))
            self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


@contextmanager
def _receiver() -> Iterator[str]:
    Receiver.requests, Receiver.refusals = [], 0
    with web.serving(Receiver) as place:
        yield f"http://{place}/v1/metrics"


def test_a_collector_receives_the_estimates_of_every_closed_epoch_once(tmp_path: Path) -> None:
    signed, delivery_log = signed_in(tmp_path), DeliveryLog(MemoryServer())

    async def body(url: str) -> Any:
        query = await engine_of(signed, 3, np.random.default_rng(6), {"shape": [0.1, 0.9]})
        publisher = EpochPublisher(query, [collector(url, delivery_log)])
        Receiver.refusals = 1
        first = await publisher.publish_closed()
        assert await publisher.publish_closed() == 1, "what was refused is sent again"
        assert await publisher.publish_closed() == 0
        newest = EstimateQuery(range=EpochRange(epochs="closed"))
        return first + 1, await query.estimate("shape", newest)

    with _receiver() as url:
        number, answer = asyncio.run(body(url))
        requests = Receiver.requests
    assert len(requests) == number
    points = [
        (gauge.name, point)
        for request in requests
        for gauge in request.resource_metrics[0].scope_metrics[0].metrics
        for point in gauge.gauge.data_points
    ]
    ends = int(datetime.fromisoformat(answer.until).timestamp()) * 10**9

    def figures(name: str) -> dict[str, float]:
        found = {}
        for gauge, point in points:
            of = {each.key: each.value.string_value for each in point.attributes}
            if (gauge, of["metric"], point.time_unix_nano) == (name, "shape", ends):
                found[of.get("value", "")] = point.as_double
        return found

    for name, field in {
        "hubbub.estimate": "estimate",
        "hubbub.estimate.low": "low",
        "hubbub.estimate.high": "high",
        "hubbub.share": "share",
    }.items():
        assert figures(name) == {value.value: getattr(value, field) for value in answer.values}
    assert figures("hubbub.reports") == {"": answer.reports}


def test_an_address_of_no_collector_is_refused() -> None:
    with pytest.raises(BadParameter, match="--otlp must be an address"):
        collector("nowhere", DeliveryLog(MemoryServer()))


class Reporting:
    """What an exporter asks of a client."""

    def __init__(self) -> None:
        self.reports: list[tuple[str, Any]] = []

    def report(self, metric: str, value: Any) -> Outcome:
        self.reports.append((metric, value))
        return Outcome.QUEUED

    def flush(self, seconds: float) -> bool:
        return seconds > 0


def _provider(client: Any, chosen: dict[str, str | Named]) -> MeterProvider:
    exporter = PrivateMetricExporter(client, chosen)
    reader = PeriodicExportingMetricReader(exporter, export_interval_millis=float("inf"))
    return MeterProvider(metric_readers=[reader], shutdown_on_exit=False)


def test_chosen_instruments_are_reported_and_no_others() -> None:
    client: Any = Reporting()
    chosen: dict[str, str | Named] = {
        "startup": "startup_seconds",
        "opened": "files_opened",
        "theme": Named("theme"),
        "used": Named("feature", "name"),
        "size": "window_size",
    }
    provider = _provider(client, chosen)
    meter = provider.get_meter("app")
    startup, opened = meter.create_histogram("startup"), meter.create_counter("opened")
    used, theme = meter.create_counter("used"), meter.create_counter("theme")
    size, secret = meter.create_gauge("size"), meter.create_counter("secret")
    for seconds in (1.0, 2.0, 6.0):
        startup.record(seconds, {"cold": seconds > 5})
    opened.add(2, {"kind": "image"})
    opened.add(3, {"kind": "text"})
    for name, times in (("search", 2), ("export", 5)):
        used.add(times, {"name": name})
    theme.add(1, {"theme": "dark"})
    used.add(9)
    size.set(800)
    size.set(1024)
    secret.add(1, {"who": "me"})
    assert provider.force_flush()
    assert sorted(client.reports) == [
        ("feature", "export"),
        ("files_opened", 5.0),
        ("startup_seconds", 3.0),
        ("theme", "dark"),
        ("window_size", 1024.0),
    ]
    client.reports.clear()
    opened.add(1)
    used.add(1, {"name": "search"})
    assert provider.force_flush()
    assert ("files_opened", 1.0) in client.reports, "since the last export"
    assert ("feature", "search") in client.reports
    provider.shutdown()


def test_a_refused_instrument_affects_no_other_and_no_log_has_its_value(
    signed: Signed, caplog: pytest.LogCaptureFixture
) -> None:
    client = memory_client(signed.bundle)
    chosen: dict[str, str | Named] = {
        "theme": Named("theme"),
        "nothing": "nothing",
        "editor": Named("editor"),
    }
    provider = _provider(client, chosen)
    meter = provider.get_meter("app")
    for name, value in (("theme", "sistem"), ("nothing", "x"), ("editor", "vi")):
        meter.create_counter(name).add(1, {name: value})
    assert provider.force_flush()
    assert client.outcomes == {
        Outcome.NOT_A_VALUE: 1,
        Outcome.UNKNOWN_METRIC: 1,
        Outcome.QUEUED: 1,
    }
    assert [record.getMessage() for record in caplog.records] == [
        "instrument theme is not reported: NotListed",
        "instrument nothing is not reported: UnknownMetric",
    ]
    assert "sistem" not in caplog.text
    assert '"system"' not in caplog.text
    provider.shutdown()
    client.close(0)
