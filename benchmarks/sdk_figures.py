"""Figures of one SDK in a process of its own, as JSON; runs in the peers' environment.

python sdk_figures.py SDK ADDRESS FOLDER: imports it, records, sends to a server on this machine.
"""

import json
import os
import resource
import sys
import time

RECORDS = 400


def hubbub(address, folder, transport="http"):
    from hubbub.client import Client

    yield
    client = Client.from_bundle(
        f"{folder}/app.hubbub",
        state_dir=f"{folder}/state",
        shuffler=address,
        transport=transport,
        insecure=not address.startswith("https:"),
    )
    yield lambda: client.report("busy", "light")
    yield lambda: client.flush(10)


def over_grpc(address, folder):
    yield from hubbub(address, folder, "grpc")


def libraries(address, folder):
    """What hubbub's client loads of others for HTTP, used once, without hubbub."""
    import base64  # noqa: F401 here and below: their memory is the figure
    import dataclasses  # noqa: F401
    import datetime as dt  # noqa: F401
    import fractions  # noqa: F401
    import logging  # noqa: F401
    import threading

    import mmh3  # noqa: F401

    yield
    import sqlite3

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    key.public_key().verify(key.sign(b"bundle"), b"bundle")
    database = sqlite3.connect(f"{folder}/state", check_same_thread=False)
    database.execute("CREATE TABLE reports (sealed BLOB)")
    yield lambda: os.urandom(8)

    def send():
        import socket

        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
        from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

        suite = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_128_GCM)
        sealed = suite.encrypt(b"light", X25519PublicKey.from_public_bytes(b"9" * 32))
        database.execute("INSERT INTO reports VALUES (?)", (sealed,))
        database.commit()
        host, _, port = address.partition(":")
        with socket.create_connection((host.encode(), int(port))) as connection:
            head = f"POST / HTTP/1.1\r\nContent-Length: {len(sealed)}\r\n\r\n"
            connection.sendall(head.encode() + sealed)
            connection.recv(1 << 16)

    def in_background():
        thread = threading.Thread(target=send)
        thread.start()
        thread.join()

    yield in_background


def sentry(address, folder):
    import sentry_sdk

    yield
    sentry_sdk.init(dsn=f"http://key@{address}/1")
    yield lambda: sentry_sdk.capture_message("light")
    yield lambda: sentry_sdk.flush(10)


def glean(address, folder):
    from glean import Configuration, Glean, load_metrics, load_pings

    yield
    Glean.initialize(
        application_id="bench",
        application_version="1",
        upload_enabled=True,
        data_dir=f"{folder}/glean",
        configuration=Configuration(
            server_endpoint=f"http://{address}", allow_multiprocessing=False
        ),
    )
    pings = load_pings(f"{folder}/pings.yaml", config={"allow_reserved": True})
    metrics = load_metrics(f"{folder}/metrics.yaml")
    yield lambda: metrics.app.busy.add(1)

    def send():
        pings.usage.submit()
        time.sleep(3)

    yield send


def opentelemetry(address, folder):
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

    yield
    exporter = OTLPMetricExporter(endpoint=f"http://{address}/v1/metrics")
    provider = MeterProvider(metric_readers=[PeriodicExportingMetricReader(exporter)])
    counter = provider.get_meter("bench").create_counter("busy")
    yield lambda: counter.add(1, {"theme": "light"})
    yield lambda: provider.force_flush(10_000)


def _rss_mb():
    with open("/proc/self/statm") as pages:
        return int(pages.read().split()[1]) * resource.getpagesize() / 1e6


def main(name, address, folder):
    before, start = _rss_mb(), time.process_time()
    steps = {
        "hubbub, HTTP": hubbub,
        "hubbub, HTTPS": hubbub,
        "hubbub, gRPC": over_grpc,
        "its libraries alone, HTTP": libraries,
        "Sentry": sentry,
        "Glean": glean,
        "OpenTelemetry": opentelemetry,
    }
    use = steps[name](address, folder)
    next(use)
    figures = {"import_ms": 1e3 * (time.process_time() - start), "import_mb": _rss_mb() - before}
    record = next(use)
    record()
    figures |= {"ready_ms": 1e3 * (time.process_time() - start), "ready_mb": _rss_mb() - before}
    durations = []
    for _ in range(RECORDS):
        start = time.perf_counter_ns()
        record()
        durations.append((time.perf_counter_ns() - start) / 1000)
    durations.sort()
    next(use)()
    time.sleep(0.5)
    figures |= {
        "median_us": durations[RECORDS // 2],
        "p99_us": durations[RECORDS * 99 // 100],
        "sent_mb": _rss_mb() - before,
        "threads": len(os.listdir("/proc/self/task")),
    }
    print(json.dumps(figures), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
