"""Calls between devices and services: keys agreed upon by X25519 and ML-KEM together, over gRPC."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import grpc

from hubbub.installation.certificate_authorities import write_certificates
from hubbub.runtime.tls import TlsFolder
from tests.support.waiting import HANG_SECONDS

# X25519MLKEM768 among the groups of TLS (draft-ietf-tls-ecdhe-mlkem), and where a hello says it.
HYBRID = 0x11EC
KEY_SHARE = 51


def test_calls_over_grpc_agree_on_keys_by_both(tmp_path: Path) -> None:
    """By the server's hello on the wire: who records a call has two problems to solve one day."""
    write_certificates(tmp_path / "tls", {})
    folder = TlsFolder(tmp_path / "tls", "aggregator")
    certificate, key = (path.read_bytes() for path in folder.pair)
    server = grpc.server(ThreadPoolExecutor(1))
    credentials = grpc.ssl_server_credentials(
        [(key, certificate)], folder.authorities, require_client_auth=True
    )
    port = server.add_secure_port("127.0.0.1:0", credentials)
    server.start()
    try:
        with relayed(port) as (between, traffic):
            dialled = folder.channel_credentials("aggregator")
            with grpc.secure_channel(f"localhost:{between}", dialled) as channel:
                grpc.channel_ready_future(channel).result(HANG_SECONDS)
        assert _group(bytes(traffic)) == HYBRID
    finally:
        server.stop(0).wait()


@contextmanager
def relayed(port: int) -> Iterator[tuple[int, bytearray]]:
    """A port that hands one connection on, and what came back over it."""
    buffer = bytearray()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=_relay, args=(listening, port, buffer), daemon=True).start()
        yield listening.getsockname()[1], buffer


def _relay(listening: socket.socket, port: int, traffic: bytearray) -> None:
    with contextlib.suppress(OSError):
        near, _ = listening.accept()
        far = socket.create_connection(("127.0.0.1", port))
        back = threading.Thread(target=_hand_on, args=(far, near, traffic), daemon=True)
        back.start()
        _hand_on(near, far, bytearray())
        back.join(HANG_SECONDS)


def _hand_on(source: socket.socket, sink: socket.socket, traffic: bytearray) -> None:
    with contextlib.suppress(OSError), source, sink:
        while portion := source.recv(1 << 16):
            traffic += portion
            sink.sendall(portion)


def _group(traffic: bytes) -> int:
    """The group of a server's hello (RFC 8446, sec. 4.1.3): record, header, version and random."""
    place = 5 + 4 + 2 + 32
    place += 1 + traffic[place] + 3
    end = place + 2 + int.from_bytes(traffic[place : place + 2])
    place += 2
    while place < end:
        kind, size = (int.from_bytes(traffic[place + at : place + at + 2]) for at in (0, 2))
        if kind == KEY_SHARE:
            return int.from_bytes(traffic[place + 4 : place + 6])
        place += 4 + size
    raise AssertionError("a hello without a key share")
