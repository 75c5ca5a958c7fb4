"""Stages: how long each step of a service takes, shown at `/metrics`, and as traces if requested.

PRIVACY: what is traced are batches and questions. There is no trace of a submission, nor of the
write to the pool that follows it at once: its time, kept anywhere, is an arrival time, and the
network's watcher knows whose.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final

from prometheus_client import Histogram

from hubbub.runtime.monitoring import tracing
from hubbub.runtime.monitoring.declaration import BATCH_REPORTS, STAGE_SECONDS

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
            if tracing.tracer is None:
                yield
                return
            with tracing.tracer.start_as_current_span(stage, record_exception=False) as step:
                if reports:
                    step.set_attribute("hubbub.reports", reports)
                yield

    def timed(self, stage: str) -> AbstractContextManager[object]:
        """Times a stage that directly follows a submission, without tracing it."""
        return self._seconds.labels(stage).time()

    def batch(self, reports: int) -> None:
        """Records the size of a batch."""
        self._reports.observe(reports)
