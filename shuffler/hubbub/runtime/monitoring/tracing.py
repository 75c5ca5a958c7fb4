"""OpenTelemetry traces, if OTEL_EXPORTER_OTLP_ENDPOINT names a collector; otherwise does nothing.

A batch's trace follows it from shuffler to aggregator in the header `traceparent`. That header is
never read from devices: it would follow a report through the mix.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from hubbub.errors import MissingDependency
from hubbub.errors.message_words import install_with

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
