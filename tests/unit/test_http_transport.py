"""Reports over HTTP: what proxies answer loses none, and nothing tells one device from another."""

import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Any

import pytest

from hubbub.client import GivenUp, SealedReport, TryAgain, transport_to
from hubbub.client.transport.messages import request_of
from hubbub.errors import BadParameter
from hubbub.installation.certificate_authorities import write_certificates
from hubbub.signing.testing import make_bundle
from hubbub.wire.v1.services_pb2 import Reason, Refusal, SubmitResponse
from tests.conftest import CATALOG
from tests.support.http_shuffler import HttpShuffler, http_shuffler
from tests.support.waiting import HANG_SECONDS, eventually

REPORTS = [SealedReport(stream="theme", epoch=20_000, key_id=7, sealed=b"\0sealed")]
BRIEFLY = 0.2  # too short only if the answer were to end
DRIP = 0.01
PAGE = b"<html>log in to the hotel's network</html>"


@pytest.fixture
def server() -> Iterator[HttpShuffler]:
    with http_shuffler() as shuffler:
        yield shuffler


@pytest.mark.parametrize(
    ("status", "headers", "body"),
    [
        (200, {"Content-Type": "text/html"}, PAGE),
        (200, {"Content-Type": "application/protobuf"}, PAGE),
        (204, {}, b""),
        (301, {"Location": "http://127.0.0.1:1/v1/reports"}, b""),
        (307, {"Location": "http://127.0.0.1:1/v1/reports"}, b""),
        (400, {}, PAGE),
        (400, {"Hubbub-Refused": "yes"}, PAGE),
        (403, {}, PAGE),
        (404, {"Hubbub-Refused": "for-good"}, PAGE),
        (407, {}, PAGE),
        (413, {}, PAGE),
        (500, {}, PAGE),
        (502, {}, PAGE),
        (504, {}, PAGE),
    ],
)
def test_a_proxys_answer_loses_no_report(
    server: HttpShuffler, status: int, headers: dict[str, str], body: bytes
) -> None:
    server.answers.append((status, headers, body))
    transport = transport_to(server.address, roots=None)
    with pytest.raises(TryAgain) as caught:
        transport.submit(REPORTS, HANG_SECONDS)
    assert caught.value.after_seconds is None
    assert transport.submit(REPORTS, HANG_SECONDS).results == [None]
    assert server.calls == 2  # a redirect was not followed
    transport.close()


@pytest.mark.parametrize(
    ("retry_after", "after_seconds"),
    [("7", 7.0), ("Fri, 31 Dec 2027 23:59:59 GMT", None), ("-1", None), ("9" * 30, None)],
)
def test_every_servers_valid_delay_is_respected(
    server: HttpShuffler, retry_after: str, after_seconds: float | None
) -> None:
    server.answers.append((429, {"Retry-After": retry_after}, b"no JSON"))
    transport = transport_to(server.address, roots=None)
    with pytest.raises(TryAgain, match="resource_exhausted") as caught:
        transport.submit(REPORTS, HANG_SECONDS)
    assert caught.value.after_seconds == after_seconds
    server.answers.append((413, {"Hubbub-Refused": "for-good"}, b""))
    with pytest.raises(GivenUp):
        transport.submit(REPORTS, HANG_SECONDS)
    transport.close()


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/protobuf\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
FIELD = SubmitResponse(refused=[Refusal(reason=Reason.REASON_EXPIRED)]).SerializeToString()


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        (HEAD + b"Content-Length: 0\r\n\r\n", None),
        (HEAD.replace(b"1.1", b"1.0").replace(b"\r", b"") + b"Content-Length: 0\n\n", None),
        (b"HTTP/1.1 100 Go on\r\n\r\n" + HEAD + b"Content-Length: 0\r\n\r\n", None),
        (
            HEAD + b" charset=none\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"2;of=2\r\n\x18\0\r\n0\r\nTrailer: 1\r\n\r\n",
            None,
        ),
        (HEAD + b"Content-Length: %d\r\n\r\n" % len(FIELD), "is incomplete"),
        (HEAD + b"Content-Length: %d\r\n\r\n" % (2 * len(FIELD)) + FIELD, "is incomplete"),
        (
            HEAD + b"Content-Length: %d\r\n\r\n" % (3 << 20) + FIELD * ((2 << 20) // len(FIELD)),
            "is incomplete",
        ),
        (HEAD + b"Connection: close\r\n\r\n" + FIELD, "is incomplete"),
        (CHUNKED + b"%x\r\n" % len(FIELD) + FIELD + b"\r\n", "server closed the connection"),
        (CHUNKED + b"200000\r\n", "is incomplete"),
        (CHUNKED + b"-2\r\n\x18\0", "is not HTTP"),
        (HEAD + b"Content-Length: 0\r\n" * 2 + b"\r\n", None),
        (HEAD + b"Content-Length: 0\r\nContent-Length: 2\r\n\r\n\x18\0", "is not HTTP"),
        (HEAD + b"Content-Length: 0, 0\r\n\r\n", "is incomplete"),
        (HEAD + b"Content-Length: +0\r\n\r\n", "is incomplete"),
        (HEAD + b"Content-Length: -1\r\n\r\n" + FIELD, "is incomplete"),
        (HEAD + b"Content-Length: %s\r\n\r\n" % (b"9" * 30), "is incomplete"),
        (HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "is not HTTP"),
        (CHUNKED.replace(b"\r\n\r\n", b"\r\nContent-Length: 0\r\n\r\n0\r\n\r\n"), "is not HTTP"),
        (HEAD + b"Content-Length: 0\r\n 2\r\n\r\n", "is not HTTP"),
        (
            CHUNKED + b"1\r\n" + FIELD + b"\r\n0\r\n\r\n",
            "is not HTTP",
        ),
        (CHUNKED + b"9\r\n" + FIELD + b"\r\n", "is incomplete"),
        (CHUNKED + b"0\r\n" + b"a: b\r\n" * 20_000, "is not HTTP"),
        (b"HTTP/1.1 103 Wait\r\n\r\n" * 4_000 + HEAD + b"Content-Length: 0\r\n\r\n", "is not HTTP"),
        (HEAD + b"a: b\r\n" * 20_000, "is not HTTP"),
        (HEAD + b" folded\r\n" * 20_000, "is not HTTP"),
        (HEAD + b"a: " + b"b" * 70_000, "is not HTTP"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "is not HTTP"),
        (b"", "server closed the connection"),
    ],
)
def test_an_answer_counts_once_it_is_complete(answer: bytes, cause: str | None) -> None:
    """Part of an answer, cut between two fields, may look whole, and lack refusals."""
    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as aside:

        def answers() -> None:
            connection, _ = listening.accept()
            with connection, connection.makefile("rb") as request:
                _read_request(request)
                with suppress(OSError):  # of a client that reads no more
                    connection.sendall(answer)
                    connection.shutdown(socket.SHUT_WR)

        answering = aside.submit(answers)
        transport = transport_to(f"http://127.0.0.1:{listening.getsockname()[1]}", roots=None)
        if cause is None:
            assert transport.submit(REPORTS, HANG_SECONDS).results == [None]
        else:
            with pytest.raises(TryAgain, match=cause):
                transport.submit(REPORTS, HANG_SECONDS)
        transport.close()
        answering.result()


def _read_request(request: IO[bytes]) -> None:
    while request.readline() != b"\r\n":
        pass
    request.read(len(request_of(REPORTS)))


@pytest.mark.parametrize("length", [b"Content-Length: 0", b"Transfer-Encoding: chunked"])
def test_no_bytes_behind_an_answer_are_read_as_the_next(length: bytes) -> None:
    """They would say that the next reports were accepted."""
    body = b"0\r\n\r\n" if b"chunked" in length else b""
    accepted = HEAD + length + b"\r\n\r\n" + body
    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as aside:

        def answers() -> None:
            for answer in (accepted * 2, b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"):
                connection, _ = listening.accept()
                with connection, connection.makefile("rb") as request:
                    _read_request(request)
                    connection.sendall(answer)
                    assert not request.read(), "nothing is sent on the connection again"

        answering = aside.submit(answers)
        transport = transport_to(f"http://127.0.0.1:{listening.getsockname()[1]}", roots=None)
        assert transport.submit(REPORTS, HANG_SECONDS).results == [None]
        with pytest.raises(TryAgain):
            transport.submit(REPORTS, HANG_SECONDS)
        transport.close()
        answering.result()


def test_a_request_has_nothing_about_its_sender(server: HttpShuffler) -> None:
    transport = transport_to(server.address, roots=None)
    for _ in range(2):
        transport.submit(REPORTS, HANG_SECONDS)
    assert server.connections == 1
    transport.close()
    assert server.heads[0] == server.heads[1]
    assert set(server.heads[0]) == {"Host", "Accept-Encoding", "Content-Length", "Content-Type"}


def test_calls_at_once_have_a_connection_each(server: HttpShuffler) -> None:
    transport = transport_to(server.address, roots=None)
    server.answers += [None, None]
    with ThreadPoolExecutor(2) as aside:
        waiting = [aside.submit(transport.submit, REPORTS, HANG_SECONDS) for _ in range(2)]
        server.ending.set()
        assert [future.result().results for future in waiting] == [[None], [None]]
    transport.close()


def test_a_connection_that_the_other_end_has_ended_costs_no_failure() -> None:
    with http_shuffler() as server:
        transport = transport_to(server.address, roots=None)
        assert transport.submit(REPORTS, HANG_SECONDS).results == [None]
        [connection] = transport._connection._exchange._idle  # type: ignore[attr-defined]
        connection.sock.shutdown(socket.SHUT_RDWR)
        assert transport.submit(REPORTS, HANG_SECONDS).results == [None]
        assert server.connections == 2
        transport.close()


def test_reports_wait_if_a_replaced_socket_raises(
    server: HttpShuffler, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbid(*_arguments: object, **_options: object) -> None:
        raise RuntimeError("a test may not use the network")  # as pytest-socket does

    transport = transport_to(server.address, roots=None)
    with monkeypatch.context() as patch:
        patch.setattr(socket, "socket", forbid)
        with pytest.raises(TryAgain, match="RuntimeError"):
            transport.submit(REPORTS, HANG_SECONDS)
    assert transport.submit(REPORTS, HANG_SECONDS).results == [None]
    transport.close()


def test_a_slow_answer_is_abandoned_after_a_limit() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        over = threading.Event()

        def drip() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 200 OK\r\n")
                while not over.wait(DRIP):
                    try:
                        connection.sendall(b"a: b\r\n")
                    except OSError:
                        return

        dripping = threading.Thread(target=drip)
        dripping.start()
        transport = transport_to(f"http://127.0.0.1:{listening.getsockname()[1]}", roots=None)
        with pytest.raises(TryAgain):
            transport.submit(REPORTS, BRIEFLY)
        over.set()
        dripping.join()


def test_silent_name_servers_delay_no_call(
    server: HttpShuffler, monkeypatch: pytest.MonkeyPatch
) -> None:
    over, ended = threading.Event(), threading.Event()

    def silent(*_place: Any, **_options: Any) -> Any:
        over.wait(HANG_SECONDS)
        ended.set()
        raise OSError

    monkeypatch.setattr(socket, "getaddrinfo", silent)
    transport = transport_to(server.address, roots=None)
    with pytest.raises(TryAgain):
        transport.submit(REPORTS, BRIEFLY)
    assert not ended.is_set()
    with ThreadPoolExecutor(1) as aside:  # nor the end of a program
        call = aside.submit(transport.submit, REPORTS, HANG_SECONDS)
        eventually(lambda: bool(transport._connection._exchange._busy))  # type: ignore[attr-defined]
        transport.close()
        assert isinstance(call.exception(), TryAgain)
    assert not ended.is_set()
    over.set()


def test_an_apps_own_name_resolver_gets_a_text_and_may_fail(
    server: HttpShuffler, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, names = socket.getaddrinfo, {"localhost": "127.0.0.1"}

    def resolve(host: str, *place: Any, **options: Any) -> Any:
        return original(names[host], *place, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    port = server.server_address[1]
    transport = transport_to(f"http://localhost:{port}", roots=None)
    assert transport.submit(REPORTS, HANG_SECONDS).results == [None]
    transport.close()
    names.clear()
    transport = transport_to(f"http://localhost:{port}", roots=None)
    with pytest.raises(TryAgain, match="unavailable"):  # and no wait until the deadline
        transport.submit(REPORTS, HANG_SECONDS)
    transport.close()


def test_a_silent_first_address_of_a_name_is_skipped(
    server: HttpShuffler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As IPv6 that leads nowhere does."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, ExitStack() as callers:
        for _ in range(2):  # who comes then is not answered
            caller = callers.enter_context(socket.socket())
            caller.settimeout(0)
            caller.connect_ex(full.getsockname())
        places = [
            (socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", port))
            for port in (full.getsockname()[1], server.server_address[1])
        ]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_place, **_options: places)
        transport = transport_to(server.address, roots=None)
        assert transport.submit(REPORTS, 4 * BRIEFLY).results == [None]
        transport.close()


def test_tls_trusts_the_bundles_roots_and_no_other(tmp_path: Path) -> None:
    write_certificates(tmp_path, {})
    with http_shuffler() as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tmp_path / "shuffler.pem", tmp_path / "shuffler.key")
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
        address = server.address.replace("http:", "https:")
        authority = (tmp_path / "ca.pem").read_text()
        transport = transport_to(address, roots=authority)
        assert transport.submit(REPORTS, HANG_SECONDS).results == [None]
        transport.close()
        transport = transport_to(
            address.removeprefix("https://"), roots=authority, transport="http"
        )
        assert transport.submit(REPORTS, HANG_SECONDS).results == [None]
        transport.close()
        with pytest.raises(TryAgain, match=r"tls_failed \(the certificate is refused: .+\)"):
            transport_to(address, roots=None).submit(REPORTS, HANG_SECONDS)
        assert server.calls == 2


def test_the_environments_proxy_is_asked_for_a_tunnel(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        place = f"http://us%65r:pass@127.0.0.1:{proxy.getsockname()[1]}"
        monkeypatch.setenv("https_proxy", place)
        monkeypatch.setenv("no_proxy", "inside.example.org")
        transport = transport_to("https://reports.example.org", roots=None)
        with ThreadPoolExecutor(1) as aside:
            sent = aside.submit(transport.submit, REPORTS, HANG_SECONDS)
            connection, _ = proxy.accept()
            with connection, connection.makefile("rb") as request_file:
                assert request_file.readline().startswith(
                    b"CONNECT reports.example.org:443 HTTP/1."
                )
                head = b"".join(iter(request_file.readline, b"\r\n"))
                assert b"Proxy-Authorization: Basic dXNlcjpwYXNz\r\n" in head
                assert b"User-Agent" not in head
                connection.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
            with pytest.raises(TryAgain, match="unavailable"):
                sent.result()


@pytest.mark.parametrize("address", ["https://reports.example.org", "reports.example.org:443"])
@pytest.mark.parametrize(
    "place",
    ["http://127.0.0.1:70000", "proxy:eighty", "http://", "https://a:b@proxy", "socks5://proxy:1"],
)
def test_an_invalid_proxy_address_is_not_bypassed(
    monkeypatch: pytest.MonkeyPatch, address: str, place: str
) -> None:
    monkeypatch.setenv("https_proxy", place)
    with pytest.raises(TryAgain, match=r"proxy_address .*use http://HOST:PORT") as refusal:
        transport_to(address, roots=None).submit(REPORTS, HANG_SECONDS)
    assert "a:b@" not in str(refusal.value)


@pytest.mark.parametrize("address", ["https://", "https://a:b", "https://u@a", "https://a:99999"])
def test_an_invalid_address_is_named(address: str) -> None:
    with pytest.raises(BadParameter, match="https://HOST:PORT"):
        transport_to(address, roots=None)


def test_unknown_transports_are_refused() -> None:
    with pytest.raises(BadParameter, match="ftp:// is not supported"):
        transport_to("ftp://a", roots=None)
    with pytest.raises(BadParameter, match="insecure is only for loopback"):
        transport_to("http://reports.example.org", roots=None)
    with pytest.raises(BadParameter, match="transport 'smoke' is not one of grpc, http"):
        transport_to("a:1", roots=None, transport="smoke")


@pytest.mark.parametrize("scheme", ["", "http://"])
@pytest.mark.slow
def test_without_grpc_an_app_reports_over_http(
    tmp_path: Path, server: HttpShuffler, scheme: str
) -> None:
    """With gRPC kept from being imported, as where it is not installed."""
    (tmp_path / "metrics.toml").write_text(CATALOG)
    (tmp_path / "app.hubbub").write_bytes(make_bundle(tmp_path / "metrics.toml").signed)
    code = f"""if True:
        import sys
        from importlib.abc import MetaPathFinder

        class NoGrpc(MetaPathFinder):
            def find_spec(self, name, path=None, target=None):
                if name.partition(".")[0] == "grpc":
                    raise ModuleNotFoundError(name)

        sys.meta_path.insert(0, NoGrpc())
        from hubbub.client import Client
        client = Client.from_bundle(
            "app.hubbub", state_dir="state", shuffler="{scheme}" + sys.argv[1],
            insecure={not scheme}, hold_seconds=0,
        )
        client.report("theme", "dark")
        client.close({HANG_SECONDS})
        assert "grpc" not in sys.modules
        """
    place = server.address.removeprefix("http://")
    subprocess.run([sys.executable, "-W", "error", "-c", code, place], cwd=tmp_path, check=True)
    [report] = server.received
    assert report.stream == "theme"
