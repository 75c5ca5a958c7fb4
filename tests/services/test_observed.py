"""What an operator sees of every stage: histograms, JSON logs, traces; and of nobody anything."""

import gzip
import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

import hubbub.aggregator.prometheus_metrics
import hubbub.shuffler.prometheus_metrics
from docs.reference.prometheus import declared
from hubbub.authoring import Catalog
from hubbub.cli.commands.demo import close_epochs
from hubbub.cli.main import main
from hubbub.client import Client, MemoryState, transport_to
from hubbub.errors import MissingDependency
from hubbub.installation.local_run import LocalRun, Ports
from hubbub.runtime.monitoring import metric_declaration
from hubbub.runtime.monitoring.stages_and_traces import start_tracing
from hubbub.runtime.version import VERSION
from tests.conftest import CatalogFiles
from tests.interfaces.test_exports import metrics_of
from tests.support import web
from tests.support.law_terms import total_counts
from tests.support.programs import run_program
from tests.support.prometheus_scrape import scraped
from tests.support.waiting import HANG_SECONDS, eventually

ROOT = Path(__file__).parents[2]
PEOPLE = 60


class JsonRun(LocalRun):
    """As everybody's, with logs for machines."""

    def _service(self, role: str, *arguments: str, redis_url: str) -> None:
        super()._service(role, *arguments, "--log-format", "json", redis_url=redis_url)


@contextmanager
def collector() -> Iterator[tuple[str, list[bytes]]]:
    """Takes OTLP over HTTP, as a collector does: its address, and what arrived."""
    arrived: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            zipped = self.headers.get("Content-Encoding") == "gzip"
            arrived.append(gzip.decompress(body) if zipped else body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing to the terminal."""

    with web.serving(Handler) as place:
        yield f"http://{place}", arrived


def _everyone_reports(run: LocalRun) -> None:
    transport = transport_to(run.bundle.shuffler, roots=run.bundle.roots)
    for _ in range(PEOPLE):
        client = Client(run.bundle, MemoryState(), transport, hold_seconds=None)
        client.report("theme", "dark")
        assert client.flush(HANG_SECONDS)
    transport.close()
    close_epochs(run.shuffler_redis)

    def counted() -> bool:
        terms = total_counts(run.endpoints)
        return terms["counted"] == PEOPLE and not terms["pooled"] + terms["in_flight"]

    eventually(counted)


def _gauges(run: LocalRun) -> dict[tuple[str, str], float]:
    of_shuffler = scraped(run, run.ports.shuffler_metrics)
    return of_shuffler | scraped(run, run.ports.aggregator_metrics)


def test_every_stage_is_timed_traced_and_logged_for_machines(
    catalog_files: CatalogFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
        ExportTraceServiceRequest,
    )

    with collector() as (whereto, arrived):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", whereto)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "200")
        catalog = Catalog(shuffler="127.0.0.1:1", metrics=dict(catalog_files.bundle.metrics))
        with JsonRun(tmp_path / "home", catalog, Ports.free()) as run:
            _everyone_reports(run)
            assert main(["query", "theme", "--home", str(run.home)]) == 0
            eventually(lambda: _gauges(run)["", "hubbub_batches_under_way"] == 0)
            samples = _gauges(run)
            redis = run.redis_servers[0].child.process
            redis.kill()  # something to say
            redis.wait()
            log = tmp_path / "home" / "log" / "shuffler.log"
            eventually(lambda: "mixing waits" in log.read_text())
        # The dashboard of operations and the alerts ask for nothing that is not there.
        dashboard = json.loads((ROOT / "deploy/grafana/operations.json").read_text())
        alerts = (ROOT / "deploy/prometheus/alerts.yml").read_text()
        metric_names = metrics_of(dashboard) | set(re.findall(r"\bhubbub_\w+", alerts))
        exposed = {name.partition("{")[0] for _, name in samples} | {"hubbub_reports"}
        # No call was throttled yet, and no metric of this catalog has an alert.
        unseen = {"hubbub_throttled_calls_total", "hubbub_alert"}
        assert metric_names - exposed <= unseen
        # Nothing is told that is not declared, and all that is declared is told.
        modules = (
            metric_declaration,
            hubbub.shuffler.prometheus_metrics,
            hubbub.aggregator.prometheus_metrics,
        )
        metrics = [metric for module in modules for metric in declared(module)]
        families = {re.sub("_(bucket|sum|count|created)$", "", name) for name in exposed}
        hubbub_families = {name for name in families if name.startswith("hubbub_")}
        assert hubbub_families == {metric.name for metric in metrics} - unseen

        # What a stage took is there for each.
        for stage in ("add", "deliver", "batch", "open", "fold", "commit", "answer"):
            count = samples["", f'hubbub_stage_seconds_count{{stage="{stage}"}}']
            assert count >= 1, stage
            assert samples["", f'hubbub_stage_seconds_sum{{stage="{stage}"}}'] > 0, stage
        assert samples["", "hubbub_batch_reports_sum"] == PEOPLE
        assert samples["", "hubbub_batches_under_way"] == 0
        assert samples["", "hubbub_unwritten_reports"] == 0

        # A batch is one trace through both services; of submissions there is none.
        spans = []
        for body in arrived:
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                [service] = [
                    attribute.value.string_value
                    for attribute in resource.resource.attributes
                    if attribute.key == "service.name"
                ]
                for scope in resource.scope_spans:
                    spans += [(service, span) for span in scope.spans]
        names = {(service, span.name) for service, span in spans}
        assert names == {
            ("hubbub-shuffler", "deliver"),
            *(
                ("hubbub-aggregator", name)
                for name in ("batch", "open", "fold", "commit", "answer")
            ),
        }
        by_trace: dict[bytes, set[str]] = {}
        for _, span in spans:
            by_trace.setdefault(span.trace_id, set()).add(span.name)
            assert {a.key for a in span.attributes} <= {"hubbub.reports"}
        assert {"deliver", "batch", "open", "fold", "commit"} in by_trace.values()
    _check_logs(tmp_path / "home" / "log", len(catalog_files.bundle.streams))


def _check_logs(folder: Path, streams: int) -> None:
    # Every line of the logs is JSON, with the same keys.
    for role in ("shuffler", "aggregator"):
        lines = (folder / f"{role}.log").read_text().splitlines()
        entries = [json.loads(line) for line in lines]
        for entry in entries:
            assert entry.keys() >= {"time", "level", "logger", "event", "message"}
        started, stopped = entries[0], entries[-1]
        assert (started["message"], started["version"]) == ("started", VERSION)
        assert started["streams"] == streams
        assert started["keys_until"] > "2026"
        assert started["certificates_until"] > "2026"
        assert stopped["message"] == "stopped"
        assert [e["why"] for e in entries if e["message"] == "stopping"] == ["SIGTERM"]
        if role == "shuffler":
            assert any(
                entry["event"] == "mixer.run" and entry["message"].startswith("mixing waits: ")
                for entry in entries
            )


def test_tracing_without_its_extra_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    start_tracing("shuffler", {})  # nothing said: nothing done
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(MissingDependency, match=r"pip install CLIENT 'PATH\[tracing\]'"):
        start_tracing("shuffler", {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"})


def test_a_service_refuses_a_log_format_that_it_does_not_have(catalog_files: CatalogFiles) -> None:
    command = [sys.executable, "-m", "hubbub.shuffler", "--streams", str(catalog_files.streams)]
    done = run_program(
        *command,
        "--insecure",
        "--log-format",
        "xml",
        env={**os.environ, "HUBBUB_REDIS_URL": "redis://127.0.0.1:1/0"},
    )
    assert done.returncode == 2
    assert "there is no 'xml'; choose from text, json" in done.stderr
