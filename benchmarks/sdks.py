"""What an SDK costs the app that embeds it: hubbub's beside Sentry's, Glean's, OpenTelemetry's."""

import http.server
import json
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from benchmarks.host import busy_bundle
from hubbub.client.testing import FakeServer
from hubbub.installation.certificate_authorities import write_certificates
from hubbub.signing.sign_bundle import sign_bundle

HEADER: Final = (
    "SDK",
    "import: processor, memory",
    "and first record",
    "record: median, p99",
    "after sending",
    "threads",
)
_ROOT: Final = Path(__file__).parents[1]
_PYTHON: Final = _ROOT / "build" / "peers" / "bin" / "python"
_SDKS: Final = (
    "hubbub, HTTP",
    "its libraries alone, HTTP",
    "hubbub, HTTPS",
    "hubbub, gRPC",
    "Sentry",
    "Glean",
    "OpenTelemetry",
)
_ROUNDS: Final = 5
_GLEAN: Final = {
    "metrics.yaml": """$schema: moz://mozilla.org/schemas/glean/metrics/2-0-0
app:
  busy:
    type: counter
    description: Counts.
    bugs: [https://example.org/1]
    data_reviews: [https://example.org/1]
    notification_emails: [bench@example.org]
    expires: never
    send_in_pings: [usage]
""",
    "pings.yaml": """$schema: moz://mozilla.org/schemas/glean/pings/2-0-0
usage:
  description: Counts.
  include_client_id: false
  bugs: [https://example.org/1]
  data_reviews: [https://example.org/1]
  notification_emails: [bench@example.org]
""",
}


def sdks() -> Iterator[Sequence[str]]:
    """A row each, the median of several processes; none without the peers' environment."""
    if not _PYTHON.exists():
        print("The peers could not be installed here.", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as folder:  # as devices have it: one folder, compiled
        build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
        subprocess.run(build, cwd=_ROOT / "client", check=True, capture_output=True)
        uv = [str(Path(sys.executable).with_name("uv")), "pip", "install", "--quiet", "--no-deps"]
        into = ["--python", str(_PYTHON), "--compile-bytecode", "--reinstall"]
        subprocess.run([*uv, *into, *map(str, Path(folder).glob("*.whl"))], check=True)
    with tempfile.TemporaryDirectory() as folder:
        yield from _rows(Path(folder))


def _rows(certificates: Path) -> Iterator[Sequence[str]]:
    write_certificates(certificates, {})
    roots = (certificates / "ca.pem").read_text()
    for name in _SDKS:
        secured = certificates if "HTTPS" in name else None
        with FakeServer() as grpc_server, _server(secured) as http_address:
            address = grpc_server.address if "gRPC" in name else http_address
            runs = [_figures(name, address, roots) for _ in range(_ROUNDS)]
        median = {key: statistics.median(run[key] for run in runs) for key in runs[0]}
        yield (
            name,
            f"{median['import_ms']:.0f} ms, {median['import_mb']:.1f} MB",
            f"{median['ready_ms']:.0f} ms, {median['ready_mb']:.1f} MB",
            f"{median['median_us']:.0f} us, {median['p99_us']:.0f} us",
            f"{median['sent_mb']:.1f} MB",
            f"{median['threads']:.0f}",
        )


def _figures(name: str, address: str, roots: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        if name.startswith("hubbub"):
            bundle = replace(busy_bundle(Path(folder)).bundle, roots=roots)
            signed = sign_bundle(bundle, Ed25519PrivateKey.generate())
            (Path(folder) / "app.hubbub").write_bytes(signed)
        for file, content in _GLEAN.items() if name == "Glean" else ():
            (Path(folder) / file).write_text(content)
        script = Path(__file__).with_name("sdk_figures.py")
        command = [str(_PYTHON), str(script), name, address, folder]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
        figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        return figures


class _Accepts(http.server.BaseHTTPRequestHandler):
    """Takes whatever is posted; an empty answer is a shuffler's that refuses no report."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Read it all, and answer."""
        self.rfile.read(int(self.headers["Content-Length"] or 0))
        self.send_response_only(200)
        self.send_header("Content-Type", "application/protobuf")
        self.send_header("Content-Length", "0")
        self.end_headers()


@contextmanager
def _server(certificates: Path | None) -> Iterator[str]:
    """A server's address, over TLS if there is a folder of certificates."""
    server, scheme = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Accepts), ""
    if certificates:
        scheme, context = "https://", ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates / "shuffler.pem", certificates / "shuffler.key")
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"{scheme}127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
