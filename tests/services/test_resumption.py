"""What a device says first to a server that would know it again: nothing of a visit before."""

import socket
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import grpc
import pytest

from hubbub.client import SealedReport, transport_to
from hubbub.installation.certificate_authorities import write_certificates
from hubbub.wire.v1.services_pb2 import SubmitResponse
from tests.support.http_shuffler import HttpShuffler
from tests.support.waiting import HANG_SECONDS

REPORTS = [SealedReport(stream="theme", epoch=1, key_id=1, sealed=b"sealed")]
# RFC 8446, 4.2.11, and RFC 5077, 3.2: what offers a session of before.
PRE_SHARED_KEY, SESSION_TICKET = 41, 35


class Relay:
    """Passes connections on, and keeps what each of them said first."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.hellos: list[bytes] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listening.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self._target))
            self.hellos.append(b"")
            for source, other, place in ((near, far, len(self.hellos) - 1), (far, near, None)):
                threading.Thread(
                    target=self._pass, args=(source, other, place), daemon=True
                ).start()

    def _pass(self, source: socket.socket, other: socket.socket, place: int | None) -> None:
        try:
            while data := source.recv(1 << 16):
                if place is not None and len(self.hellos[place]) < 1 << 14:
                    self.hellos[place] += data
                other.sendall(data)
        except OSError:
            pass
        for end in (source, other):
            end.close()

    def close(self) -> None:
        self._listening.close()


def _extensions(hello: bytes) -> dict[int, bytes]:
    """Of a ClientHello (RFC 8446, 4.1.2), in its first record."""
    at = 5 + 4 + 2 + 32
    for width in (1, 2, 1):  # the session's id, ciphers, compressions
        at += width + int.from_bytes(hello[at : at + width])
    end = at + 2 + int.from_bytes(hello[at : at + 2])
    at, extensions = at + 2, {}
    while at < end:
        kind, length = (int.from_bytes(hello[at + n : at + n + 2]) for n in (0, 2))
        extensions[kind] = hello[at + 4 : at + 4 + length]
        at += 4 + length
    return extensions


@contextmanager
def _over_http(tls: Path) -> Iterator[int]:
    server = HttpShuffler()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tls / "shuffler.pem", tls / "shuffler.key")
    assert context.num_tickets, "it would know a device again"
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


@contextmanager
def _over_grpc(tls: Path) -> Iterator[int]:
    method: grpc.RpcMethodHandler[bytes, SubmitResponse] = grpc.unary_unary_rpc_method_handler(
        lambda _request, _context: SubmitResponse(),
        response_serializer=SubmitResponse.SerializeToString,
    )
    handler = grpc.method_handlers_generic_handler("hubbub.wire.v1.Shuffler", {"Submit": method})
    server = grpc.server(ThreadPoolExecutor(2), handlers=[handler])
    pair = (tls / "shuffler.key").read_bytes(), (tls / "shuffler.pem").read_bytes()
    port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([pair]))
    server.start()
    yield port
    server.stop(None).wait()


@pytest.mark.parametrize("serving", [_over_http, _over_grpc])
def test_a_device_resumes_no_session_that_a_server_offers(serving: object, tmp_path: Path) -> None:
    write_certificates(tmp_path / "tls", {})
    roots = (tmp_path / "tls" / "ca.pem").read_text()
    way = "http" if serving is _over_http else "grpc"
    assert callable(serving)
    with serving(tmp_path / "tls") as port:
        relay = Relay(port)
        for _ in range(3):
            address = f"127.0.0.1:{relay.port}"
            with closing(transport_to(address, roots=roots, transport=way)) as transport:
                assert transport.submit(REPORTS, HANG_SECONDS).results == [None]
        # That this would be seen: whoever keeps a session says so at once.
        trust = ssl.create_default_context(cadata=roots)
        trust.set_alpn_protocols(["h2"])
        trust.maximum_version = ssl.TLSVersion.TLSv1_2  # there it has one after the handshake
        session = None
        for _ in range(2):
            line = socket.create_connection(("127.0.0.1", relay.port))
            with trust.wrap_socket(line, server_hostname="127.0.0.1", session=session) as spoken:
                session, resumed = spoken.session, spoken.session_reused
        assert resumed
        relay.close()
    *devices, _, resuming = map(_extensions, relay.hellos)
    assert len(devices) == 3
    for device in devices:
        assert PRE_SHARED_KEY not in device
        assert not device.get(SESSION_TICKET)
    assert resuming[SESSION_TICKET]
