"""What is left behind by a whole run of the demo's catalog: nothing about anyone."""

import base64
import json
import os
import re
import ssl
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest
import redis

from hubbub.cli.commands.demo import candidates, close_epochs, people
from hubbub.cli.commands.up import demo_catalog
from hubbub.client import Client, MemoryState, transport_to
from hubbub.conservation import balances
from hubbub.installation.local_run import LocalRun, Ports
from tests.support.client_parts import drawn_reports
from tests.support.law_terms import report_counts
from tests.support.waiting import HANG_SECONDS, eventually

pytestmark = pytest.mark.thorough

DEVICES = 150


class WithoutKeptEstimates(LocalRun):
    """Finished estimates have every listed value's name, whoever holds it."""

    def _service(self, role: str, *arguments: str, redis_url: str) -> None:
        none_kept = ("--kept-epochs", "0") if role == "aggregator" else ()
        super()._service(role, *arguments, *none_kept, redis_url=redis_url)


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[bytes], list[bytes]]:
    """A run of some devices: its folder, the two Redis dumps, and every payload sent."""
    home, catalog = tmp_path_factory.mktemp("whole") / "home", demo_catalog()
    for name, declared in catalog.metrics.items():
        catalog.metrics[name] = replace(declared, min_batch=100)
    os.environ["PYTHONPROFILEIMPORTTIME"] = "1"  # every import of a service goes to its log
    try:
        with WithoutKeptEstimates(home, catalog, Ports.free()) as run:
            transport = transport_to(run.bundle.shuffler, roots=run.bundle.roots)
            payloads = []
            for person in people(DEVICES):
                client = Client(run.bundle, MemoryState(), transport, hold_seconds=None)
                for metric, value in person.items():
                    client.report(metric, value)
                payloads += [
                    drawn.payload
                    for _, drawn in drawn_reports(client)
                    if drawn.stream == "homepage"
                ]
                assert client.flush(HANG_SECONDS)
            transport.close()
            close_epochs(run.shuffler_redis)

            def counted() -> bool:
                windows = report_counts(run.endpoints).values()
                total = sum(window["counted"] for window in windows)
                return total == 5 * DEVICES and all(map(balances, windows))

            eventually(counted)
            dumps = [_dump(run.shuffler_redis), _dump(run.aggregator_redis)]
            for port in (run.ports.shuffler_metrics, run.ports.aggregator_metrics):
                (home / "log" / f"{port}.metrics").write_bytes(_metrics(home / "tls", port))
    finally:
        del os.environ["PYTHONPROFILEIMPORTTIME"]
    return home, dumps, payloads


def _metrics(tls: Path, port: int) -> bytes:
    context = ssl.create_default_context(cafile=str(tls / "ca.pem"))
    context.load_cert_chain(tls / "analyst.pem", tls / "analyst.key")
    with urllib.request.urlopen(f"https://127.0.0.1:{port}/metrics", context=context) as answer:
        body: bytes = answer.read()
        return body


def _dump(url: str) -> bytes:
    with redis.Redis.from_url(url) as client:
        parts = []
        for key in sorted(client.keys("*")):
            kind = client.type(key)
            if kind == b"none":  # listed, and let go since: a lease, say
                continue
            parts.append(key)
            if kind == b"string":
                parts.append(client.get(key))
            elif kind == b"set":
                parts += sorted(client.smembers(key))
            elif kind == b"hash":
                parts += [part for item in client.hgetall(key).items() for part in item]
            else:
                raise AssertionError(f"a kind of key that nothing should write: {kind!r}")
        return b"\n".join(parts)


def _said_values() -> list[bytes]:
    """Values long and rare enough not to stand in a log by chance."""
    census = [b"Some-college", b"Prof-specialty", b"Adm-clerical", b"Bachelors", b"45-54"]
    return census + [domain.encode() for domain in candidates()[:50]]


def test_redis_holds_no_payload_value_or_peer_after_the_run(
    whole_run: tuple[Path, list[bytes], list[bytes]],
) -> None:
    home, dumps, payloads = whole_run
    assert len(payloads) == DEVICES
    assert b"aggregator:totals:{homepage:" in dumps[1]
    logged = [path.read_bytes() for path in home.glob("redis-*/**/*") if path.is_file()]
    for content in (*dumps, *logged):
        for payload in payloads:
            assert payload not in content
        for value in _said_values():
            # Five bytes stand in a megabyte of sealed ones once in a million runs.
            assert len(value) < 6 or value not in content
    for dump in dumps:
        assert b"127.0.0.1" not in dump
        assert b"pool:" not in dump
        assert b"batch:" not in dump


def test_logs_and_metrics_hold_no_value_payload_secret_or_peer(
    whole_run: tuple[Path, list[bytes], list[bytes]],
) -> None:
    home, _, payloads = whole_run
    log_files = sorted((home / "log").glob("*"))
    assert len(log_files) == 4
    secrets = [
        entry["private"] for entry in json.loads((home / "keys/opening.keys.json").read_bytes())
    ]
    for conf in home.glob("redis-*/redis.conf"):
        secrets += re.findall(r"^requirepass (\S+)$", conf.read_text(), re.MULTILINE)
    assert len(secrets) > 2
    for path in log_files:
        # A start says where the service listens: its own addresses, and nobody's else.
        text, starts = re.subn(rb" hubbub\.runtime started: .*", b"", path.read_bytes())
        assert starts == (path.suffix == ".log")
        for secret in (
            *_said_values(),
            *payloads,
            *(payload.hex().encode() for payload in payloads),
            *(base64.b64encode(payload) for payload in payloads),
            *(secret.encode() for secret in secrets),
            b"127.0.0.1",
            b"::1",
            b"ipv4:",
        ):
            assert secret not in text, path.name
    metrics = b"".join(path.read_bytes() for path in log_files if path.suffix == ".metrics")
    assert b'state="acknowledged"' in metrics
    assert b'state="counted"' in metrics


def test_the_shuffler_process_never_imports_mechanisms_or_catalog(
    whole_run: tuple[Path, list[bytes], list[bytes]],
) -> None:
    log = (whole_run[0] / "log" / "shuffler.log").read_text()
    assert "hubbub.shuffler.mixer" in log, "imports are logged"
    for forbidden in ("mechanisms", "catalog", "analysis", "aggregator", "client", "cli"):
        assert f"hubbub.{forbidden}\n" not in log
        assert f"hubbub.{forbidden}." not in log
    for package in ("numpy", "mmh3", "hazmat.primitives.hpke"):
        assert package not in log
