"""What leaves by itself: closed epochs to a folder and a webhook; estimates to Grafana."""

import csv
import hashlib
import hmac
import io
import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import StreamRequestHandler
from typing import Any

import numpy as np
import pytest
from pyarrow import parquet

from docs.reference.prometheus import declared
from hubbub.aggregator.exported_files import Place
from hubbub.aggregator.publishing.estimates_table import EstimatesTable
from hubbub.aggregator.publishing.publisher import (
    AlertPublisher,
    Closed,
    DeliveryLog,
    EpochPublisher,
    Folder,
    webhook,
)
from hubbub.aggregator.query import QueryEngine
from hubbub.aggregator.store.redis import RedisStore
from hubbub.aggregator.web import prometheus_estimates
from hubbub.aggregator.web.prometheus_estimates import exposition
from hubbub.analysis.families import draw
from hubbub.conservation import Window
from hubbub.epochs import epoch_date
from hubbub.errors import BadParameter
from hubbub.installation.child_process import free_port
from hubbub.runtime.redis.client import connect_redis
from hubbub.runtime.redis.command_sender import MemoryServer
from tests.interfaces.running_aggregator import DAYS, House
from tests.support import web
from tests.support.alerting_metrics import engine_of, signed_in
from tests.support.bundles import DAY, make_signed
from tests.support.catalogs import catalog_toml, metric_toml
from tests.support.fakes import MemoryStore
from tests.support.pages import EPOCH

CLOSED = DAYS - 3
ROOT = Path(__file__).parents[2]


class Hook(BaseHTTPRequestHandler):
    """Keeps what it was sent; refuses as often as it was told to."""

    calls: list[tuple[dict[str, str], bytes]] = []  # noqa: RUF012 one server at a time
    refusals = 0

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if Hook.refusals:
            Hook.refusals -= 1
            self.send_response(503)
        else:
            Hook.calls.append((dict(self.headers), body))
            self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


@contextmanager
def _hook() -> Iterator[str]:
    Hook.calls, Hook.refusals = [], 0
    with web.serving(Hook) as place:
        yield f"http://{place}/closed"


async def test_every_closed_epoch_is_dropped_once_and_whole(home: House, tmp_path: Path) -> None:
    server = await connect_redis(home.redis_url)
    query = QueryEngine(home.signed.bundle, RedisStore(server))
    publisher = EpochPublisher(query, [Folder(tmp_path / "dropped")])
    # Written before files were called by dates.
    old = tmp_path / "dropped" / "hostile" / f"{home.today - DAYS + 1}.json"
    old.parent.mkdir()
    old.write_text("{}")
    assert await publisher.publish_closed() == 7 * CLOSED - 1
    assert await publisher.publish_closed() == 0
    await server.close()
    dropped = tmp_path / "dropped"
    names = {path.relative_to(dropped).as_posix() for path in dropped.rglob("*.*")}
    oldest = epoch_date(home.today - DAYS + 1, DAY)
    assert f"theme/{oldest}.json" in names
    assert f"theme/{epoch_date(home.today, DAY)}.json" not in names, "it still takes reports"
    assert f"homepage/{oldest}.csv" not in names, "nobody listed strings"
    assert not any(name.endswith(".new") for name in names)
    document = json.loads((dropped / "theme" / f"{oldest}.json").read_text())
    url = f"{home.page}/v1/metrics/theme/estimates"
    response = web.get(url, params={"epochs": oldest, "order": "listed"}).json()
    assert {name: document[name] for name in response} == response
    assert (document["id"], document["final"]) == (f"theme:{home.today - DAYS + 1}", True)
    rows = list(csv.DictReader(io.StringIO((dropped / "theme" / f"{oldest}.csv").read_text())))
    assert [float(row["low"]) for row in rows] == [value["low"] for value in response["values"]]


async def test_strings_that_a_tree_finds_are_exported(tmp_path: Path) -> None:
    tree = 'mechanism = "tree"\ndomain = "string"\nbits = 34'
    catalog = catalog_toml(metric_toml("words", tree, epsilon=4.0, min_batch=1000))
    signed = make_signed(tmp_path, catalog, start=EPOCH * DAY)
    counts = {
        f"{first}{last}": number
        for last, number in (("ing", 900), ("ed", 500), ("er", 450), ("est", 400))
        for first in ("walk", "pl", "need", "th", "st", "mist", "car", "bel", "fin", "for", "sp")
    }
    totals = draw(
        signed.bundle.metric("words").randomizer,
        list(counts),
        list(counts.values()),
        np.random.default_rng(1),
    )
    store = MemoryStore()
    await store.count(Window("words", EPOCH), totals)
    query = QueryEngine(signed.bundle, store, clock=lambda: (EPOCH + 4.0) * DAY)
    table = EstimatesTable(Place.of(str(tmp_path / "files")), query.collected)
    assert await EpochPublisher(query, [Folder(tmp_path), table]).publish_closed() == 2
    date = epoch_date(EPOCH, DAY)
    document = json.loads((tmp_path / "words" / f"{date}.json").read_text())
    words = {value["value"] for value in document["values"]}
    assert set(document["beginnings"]) < words
    rows = parquet.read_table(tmp_path / "files" / "estimates" / "words" / f"{date}.parquet")
    exported = set(rows.column("value").to_pylist())
    assert exported == words - set(document["beginnings"])
    assert len(exported & set(counts)) > 5


async def test_a_webhook_gets_an_alert_once_and_prometheus_while_it_is_newest(
    tmp_path: Path,
) -> None:
    signed, delivery_log = signed_in(tmp_path), DeliveryLog(MemoryServer())
    query = await engine_of(signed, 3, np.random.default_rng(6), {"shape": [0.1, 0.9]})
    with _hook() as url:
        publisher = AlertPublisher(query, webhook(url, b"secret", delivery_log))
        Hook.refusals = 1
        assert await publisher.publish_due() == 0, "it was refused, and waits"
        assert await publisher.publish_due() == 1
        assert await publisher.publish_due() == 0
        [(headers, text)] = Hook.calls
    prometheus_estimates = (await exposition(query, {})).decode()
    told_of = json.loads(text)
    assert (told_of["id"], told_of["kind"]) == ("alert:shape:20002", "alert")
    assert (told_of["metric"], told_of["date"], told_of["values"]) == ("shape", "2024-10-06", ["x"])
    assert headers["X-Hubbub-Id"] == told_of["id"]
    signature = hmac.new(b"secret", text, hashlib.sha256).hexdigest()
    assert headers["X-Hubbub-Signature"] == f"sha256={signature}"
    of_day = 'date="2024-10-06",metric="{}",when="{}"'
    assert (
        f"hubbub_alert{{{of_day.format('shape', 'share of x above .3')}}} 1.0"
        in prometheus_estimates
    )
    assert f"hubbub_alert{{{of_day.format('colour', 'change')}}} 0.0" in prometheus_estimates


@pytest.mark.parametrize("backend", [pytest.param("memory", marks=pytest.mark.thorough), "redis"])
async def test_a_webhook_gets_every_epoch_until_it_answers(home: House, backend: str) -> None:

    with _hook() as url:
        server = await connect_redis(home.redis_url)
        clock = [1e9]
        delivery_log = DeliveryLog(
            MemoryServer() if backend == "memory" else server, lambda: clock[0]
        )
        query = QueryEngine(home.signed.bundle, RedisStore(server))
        publisher = EpochPublisher(query, [webhook(url, b"secret", delivery_log)])
        Hook.refusals = 2
        if backend == "redis":
            others = DeliveryLog(server, lambda: clock[0])
            assert await others.claim(f"theme:{home.today - DAYS + 1}")
            assert await publisher.publish_closed() == 7 * CLOSED - 3, (
                "one is another's for a while"
            )
            clock[0] += 601
            assert await publisher.publish_closed() == 3
        else:
            assert await publisher.publish_closed() == 7 * CLOSED - 2
            assert await publisher.publish_closed() == 2
        assert await publisher.publish_closed() == 0
        await server.close()
    ids = [headers["X-Hubbub-Id"] for headers, _ in Hook.calls]
    assert len(ids) == len(set(ids)) == 7 * CLOSED
    for headers, sent in Hook.calls:
        signed = hmac.new(b"secret", sent, hashlib.sha256).hexdigest()
        assert headers["X-Hubbub-Signature"] == f"sha256={signed}"
        assert json.loads(sent)["id"] == headers["X-Hubbub-Id"]


class Stranger(StreamRequestHandler):
    """Answers every call with what is no HTTP."""

    def handle(self) -> None:
        self.rfile.readline()
        self.wfile.write(b"hello\r\n\r\n")


async def test_a_failing_webhook_is_tried_again_and_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    signed, delivery_log = signed_in(tmp_path), DeliveryLog(MemoryServer())
    query = await engine_of(signed, 3, np.random.default_rng(6), {"shape": [0.1, 0.9]})
    with web.serving(Stranger) as place, _hook() as url:
        nobody, stranger = f"http://127.0.0.1:{free_port()}/closed", f"http://{place}/closed"
        for address, alarms, epochs in ((nobody, 0, 0), (stranger, 0, 0), (url, 1, 9)):
            hook = webhook(address, b"", delivery_log)
            assert await AlertPublisher(query, hook).publish_due() == alarms
            assert await EpochPublisher(query, [hook]).publish_closed() == epochs
        assert len(Hook.calls) == 10
    messages = [record.getMessage() for record in caplog.records]
    again = "the alert of shape, 2024-10-06, was not sent and will be sent again: the webhook"
    refused = f"{again} does not answer: [Errno 111] Connection refused"
    away = "could not be published and will be tried again; the first: "
    assert messages[0] == refused
    assert messages[1].startswith(f"1 closed epochs {away}colour of 2024-10-04: ")
    assert messages[1].endswith("Connection refused, and none after it was tried")
    assert messages[2] == f"{again}'s answer is not HTTP: BadStatusLine"
    assert messages[3].startswith(f"9 closed epochs {away}")


@contextmanager
def _dripping(answer: bytes) -> Iterator[str]:
    """Answers every call a byte at a time, and never comes to an end; HOST:PORT."""

    class Dripping(StreamRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                self.wfile.write(answer)
                while True:
                    self.wfile.write(b"a")
                    time.sleep(0.02)

    with web.serving(Dripping) as place:
        yield place


@pytest.mark.parametrize(
    ("scheme", "answer"),
    [
        ("http", b"HTTP/1.1 2"),
        ("http", b"HTTP/1.1 200 OK\r\nX-Never: "),
        ("https", b"\x16\x03\x03\x40\x00"),  # a record of TLS, of 16 KiB
    ],
)
async def test_a_slow_webhook_is_abandoned_and_called_again(scheme: str, answer: bytes) -> None:
    closed = Closed(metric="shape", date="2024-10-06", document={"id": "shape:7"})
    with _dripping(answer) as address:
        url = f"{scheme}://{address}/closed"
        hook = webhook(url, b"", DeliveryLog(MemoryServer()), seconds=0.5)
        for _ in range(2):
            assert await hook.wants("shape", 7, closed.date)
            with pytest.raises(ConnectionError, match=r"no whole answer within|timed out"):
                await hook.take(closed)


def test_a_webhook_has_an_address() -> None:
    with pytest.raises(BadParameter, match="--webhook must be an address"):
        webhook("file:///etc/passwd", b"", DeliveryLog(MemoryServer()))


def metrics_of(dashboard: dict[str, Any]) -> set[str]:
    """The metrics that its panels ask Prometheus for."""
    return {
        name
        for panel in dashboard["panels"]
        for target in panel["targets"]
        for name in re.findall(r"\b(?:hubbub|process)_\w+", target["expr"])
    }


def test_prometheus_shows_exactly_the_declared_metrics_of_estimates(home: House) -> None:
    response = web.get(f"{home.page}/metrics").text
    types = {tuple(line.split()[2:]) for line in response.splitlines() if line.startswith("# TYPE")}
    every = [*declared(prometheus_estimates), *prometheus_estimates.estimate_columns().values()]
    assert types == {(estimate.name, estimate.kind) for estimate in every}


def test_the_dashboard_shows_what_is_exposed(home: House) -> None:
    dashboard: dict[str, Any] = json.loads((ROOT / "deploy/grafana/hubbub.json").read_text())
    panel_metrics = metrics_of(dashboard)
    response = web.get(f"{home.page}/metrics").text
    exposed = set(re.findall(r"^# TYPE (\S+)", response, re.MULTILINE))
    # At --metrics-listen of both.
    of_services = {"hubbub_reports", "hubbub_pool_reports", "hubbub_store_up"}
    assert panel_metrics - of_services <= exposed
    assert of_services <= panel_metrics
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(ids) == len(set(ids))
