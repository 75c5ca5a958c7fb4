"""How long each step of a service takes, shown at `/metrics`; OpenTelemetry traces, if requested.

Without OTEL_EXPORTER_OTLP_ENDPOINT, which names a collector, nothing is traced. A batch's trace
follows it from shuffler to aggregator in the header `traceparent`. That header is never read from
devices: it would follow a report through the mix.

PRIVACY: what is traced are batches and questions. There is no trace of a submission, nor of the
write to the pool that follows it at once: its time, kept anywhere, is an arrival time, and the
network's watcher knows whose.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

from prometheus_client import Histogram

from hubbub.errors import MissingDependency
from hubbub.errors.message_words import install_with
from hubbub.runtime.monitoring.metric_declaration import BATCH_REPORTS, STAGE_SECONDS

_WHERETO: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_HEADER: Final = "traceparent"

tracer: Any = None
"""Makes spans; None unless this process is traced."""
_propagator: Any = None  # there with the tracer


def start_tracing(role: str, environment: Mapping[str, str]) -> None:
    """Starts tracing this process, if the environment names a collector.

    Raises MissingDependency if OpenTelemetry is not installed.
    """
    global tracer, _propagator
    if not any(environment.get(name) for name in _WHERETO):
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415 optional
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 as above
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 as above
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415 as above
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415 as above
    except ImportError:
        raise MissingDependency(
            f"{_WHERETO[0]} is set, and OpenTelemetry is not installed: unset it, or "
            f"{install_with('tracing')}"
        ) from None
    # Only the service's name: a collector adds data of the host if its operator wants it.
    provider = TracerProvider(resource=Resource({"service.name": f"hubbub-{role}"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    tracer, _propagator = provider.get_tracer("hubbub"), TraceContextTextMapPropagator()


def headers() -> Sequence[tuple[str, str]]:
    """The headers that make a call continue the current trace."""
    if tracer is None:
        return ()
    carrier: dict[str, str] = {}
    _propagator.inject(carrier)
    return tuple(carrier.items())


@contextmanager
def continued(metadata: Mapping[str, str]) -> Iterator[None]:
    """Continues the trace of an incoming call, which must be a shuffler's, never a device's."""
    if tracer is None or _HEADER not in metadata:
        yield
        return
    from opentelemetry import trace  # noqa: PLC0415 installed, if traced

    context = _propagator.extract({_HEADER: metadata[_HEADER]})
    with trace.use_span(trace.get_current_span(context)):
        yield


# Upper ends of the histograms' buckets.
_MS: Final = (0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000)
_REPORTS: Final = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 50_000, 200_000)


class Stages:
    """A service's histograms: `hubbub_stage_seconds{stage}` and `hubbub_batch_reports`."""

    def __init__(self) -> None:
        self._seconds = Histogram(
            STAGE_SECONDS.name,
            STAGE_SECONDS.meaning,
            STAGE_SECONDS.labels,
            registry=None,
            buckets=[milliseconds / 1000 for milliseconds in _MS],
        )
        self._reports = Histogram(
            BATCH_REPORTS.name, BATCH_REPORTS.meaning, registry=None, buckets=_REPORTS
        )

    @property
    def histograms(self) -> tuple[Histogram, ...]:
        """The histograms to register with Prometheus."""
        return self._seconds, self._reports

    @contextmanager
    def of(self, stage: str, reports: int = 0) -> Iterator[None]:
        """Times and traces a stage, also if it fails."""
        with self._seconds.labels(stage).time():
            if tracer is None:
                yield
                return
            with tracer.start_as_current_span(stage, record_exception=False) as step:
                if reports:
                    step.set_attribute("hubbub.reports", reports)
                yield

    def timed(self, stage: str) -> AbstractContextManager[object]:
        """Times a stage that directly follows a submission, without tracing it."""
        return self._seconds.labels(stage).time()

    def batch(self, reports: int) -> None:
        """Records the size of a batch."""
        self._reports.observe(reports)
