"""Calls to servers that may be anybody's, over sockets of this machine."""

import socket
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from hubbub.errors import BadParameter, HubbubError, ServiceUnavailable
from hubbub.notebook import connect
from hubbub.programs.http_calls import Answer, HttpCalls
from tests.support.waiting import HANG_SECONDS

PLAIN = "secret"
OK = b"HTTP/1.1 200 OK\r\n"


@contextmanager
def _server(*parts: bytes, every_seconds: float = 0.0) -> Iterator[str]:
    """Answers one call with these parts, the last of them again and again where it drips."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(HANG_SECONDS)

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(1 << 16)
                for part in parts:
                    connection.sendall(part)
                try:
                    while every_seconds and not over.wait(every_seconds):
                        connection.sendall(parts[-1])
                except OSError:
                    pass

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        over.set()
        thread.join(HANG_SECONDS)


def _answer(url: str, seconds: float = HANG_SECONDS, most_bytes: int = 1000) -> Answer:
    request = urllib.request.Request(url)  # noqa: S310 of a server of this file
    return HttpCalls(seconds).answer(request, most_bytes)


def test_an_answer_of_any_status_is_complete() -> None:
    with _server(b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone") as url:
        assert _answer(url) == Answer(404, "Not Found", b"none")


def test_a_redirect_is_not_followed() -> None:
    location = b"Location: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n"
    with _server(b"HTTP/1.1 302 Found\r\n", location) as url:
        answer = _answer(url)
    assert answer.status == 302
    assert not answer.is_success


@pytest.mark.parametrize("head", [b"", b"Content-Length: 100000\r\n"])
def test_a_slow_body_is_abandoned_in_time(head: bytes) -> None:
    with (
        _server(OK + head + b"\r\n", b"a", every_seconds=0.02) as url,
        pytest.raises(TimeoutError, match=r"no whole answer within 0\.3 s"),
    ):
        _answer(url, seconds=0.3, most_bytes=1 << 20)


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        ([OK + b"\r\n", b"a" * 1001], "larger than 1,000 bytes"),
        ([OK + b"Content-Length: 1001\r\n\r\n", b"a" * 1001], "larger than 1,000 bytes"),
        ([OK + b"Content-Length: 9\r\n\r\n", b"half"], "the answer is incomplete"),
        ([b"SSH-2.0-OpenSSH_9.2\r\n"], "not HTTP"),
    ],
)
def test_a_large_cut_off_or_foreign_answer_is_refused(sent: list[bytes], message: str) -> None:
    with _server(*sent) as url, pytest.raises(OSError, match=message):
        _answer(url)


def test_a_server_that_closes_the_connection_counts_as_unreachable() -> None:
    with _server() as url, pytest.raises(ConnectionError, match="closed connection"):
        _answer(url)


@pytest.mark.parametrize(
    "url",
    [
        "http://user:secret@127.0.0.1:1/",
        "http://127.0.0.1:1/caf\u00e9",
        "http://127.0.0.1:1/a b",
        "http://127.0.0.1:1/\n",
        "ftp://127.0.0.1/",
        "http://127.0.0.1:99999/",
        "",
    ],
)
def test_an_invalid_server_address_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(ServiceUnavailable, match="is not an address of a service") as refusal:
        connect(url)
    assert "secret" not in str(refusal.value)
    assert str(refusal.value).isascii()


def test_a_token_is_taken_without_the_end_of_its_line_and_never_shown() -> None:
    with _server(OK + b"Content-Length: 14\r\n\r\n", b'{"metrics":[]}') as url:
        assert connect(url, token=f"{PLAIN}\n").service.ask("/ready") == {"metrics": []}
    for token in (f"{PLAIN}\nX: y", f"{PLAIN}\u20ac"):
        with pytest.raises(BadParameter, match="hubbub keys token") as refusal:
            connect("http://127.0.0.1:1", token=token)
        assert PLAIN not in str(refusal.value)


def test_an_address_with_an_unexpected_answer_is_named_with_a_check() -> None:
    location = b"Location: /\r\nContent-Length: 0\r\n\r\n"
    with _server(b"HTTP/1.1 302 Found\r\n" + location) as url:
        with pytest.raises(HubbubError, match=r"answered 302 Found.*is the address right\?"):
            connect(url).metrics()
        with pytest.raises(BadParameter, match="name is empty"):
            connect(url).model("")


def test_no_proxy_is_asked_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9/")
    with _server(OK + b"Content-Length: 2\r\n\r\nhi") as url:
        assert _answer(url).body == b"hi"
