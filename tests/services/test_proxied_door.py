"""The HTTP door behind the operator's proxy: HAProxy as the documentation has it, and worse."""

import asyncio
import os
import re
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import uvloop

from hubbub.errors import ServiceUnavailable
from hubbub.installation.certificate_authorities import write_certificates
from hubbub.installation.child_process import Child, free_port
from hubbub.runtime.http import proxy_header
from hubbub.runtime.rpc.rate_limiter import Limiter
from hubbub.runtime.tls import TlsFolder
from tests.services.test_http_door import TYPE, Opening, leaves_no_ticket
from tests.support.waiting import eventually, eventually_async

_PAGE: Final = Path(__file__).parents[2] / "docs/operate/proxy.md"
# Debian's is where the PATH of a user does not look.
_BINARY: Final = shutil.which("haproxy", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
CONFIGURATIONS: Final = re.findall(r"```haproxy\n(.*?)```", _PAGE.read_text(), re.DOTALL)
"""Of the page: with the PROXY protocol, and with X-Forwarded-For."""
_SHUFFLER: Final = _PAGE.read_text().partition("server shuffler ")[2].split()[0]
_TICKETS: Final = re.findall(r"```ini\n(.*?)```", _PAGE.read_text(), re.DOTALL)

# The loop that a shuffler with this door has.
pytestmark = pytest.mark.loop(factory=uvloop.new_event_loop)
needs_haproxy = pytest.mark.skipif(_BINARY is None, reason="no haproxy: install haproxy")
PROXY = "127.0.0.1/32"
HEALTH = b"GET /health HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"
HEADER = b"PROXY TCP4 192.0.2.1 127.0.0.1 4321 443\r\n"
BELIEVED: list[dict[str, Any]] = [{"header_proxies": (PROXY,)}, {"proxies": (PROXY,)}]
# A configuration of the documentation, and what the shuffler is told beside it.
both_ways = pytest.mark.parametrize(
    "setup", list(zip(CONFIGURATIONS, BELIEVED, strict=True)), ids=["PROXY", "X-Forwarded-For"]
)


@contextmanager
def haproxy(folder: Path, configuration: str, shuffler_port: int) -> Iterator[int]:
    """One before this port, with the certificates of this folder: where it listens."""
    assert _BINARY
    port = free_port()
    here = {
        ":443": f"127.0.0.1:{port}",
        _SHUFFLER: f"127.0.0.1:{shuffler_port}",
        "/etc/haproxy/": f"{folder}/",
    }
    for there, instead in here.items():
        assert there in configuration
        configuration = configuration.replace(there, instead)
    pair = [(folder / name).read_text() for name in ("shuffler.pem", "shuffler.key")]
    (folder / "reports.pem").write_text("".join(pair))
    path = folder / "haproxy.cfg"
    path.write_text(configuration)
    [no_tickets] = _TICKETS
    openssl = folder / "openssl.cnf"
    openssl.write_text(no_tickets)
    command = [_BINARY, "-db", "-f", str(path)]
    child = Child("haproxy", command, {"OPENSSL_CONF": str(openssl)}, folder / "haproxy.log")

    def listens() -> bool:
        child.check()
        socket.create_connection(("127.0.0.1", port)).close()
        return True

    try:
        eventually(listens, child.log.read_text, although=(ConnectionError,))
        yield port
    finally:
        child.stop()


@needs_haproxy
@both_ways
async def test_devices_behind_haproxy_are_limited_separately_and_never_logged(
    opening: Opening,
    tmp_path: Path,
    setup: tuple[str, dict[str, Any]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    write_certificates(tmp_path, {"shuffler": ["shuffler"]})
    configuration, believed = setup

    options: dict[str, Any] = {"tls": TlsFolder(tmp_path, "shuffler"), "limiter": Limiter(0.001, 1)}
    async with opening(**options, **believed) as door:
        with haproxy(tmp_path, configuration, door.port) as port:
            request = door.front.request(40).SerializeToString()
            for source, status in (("127.0.0.2", 200), ("127.0.0.2", 429), ("127.0.0.3", 200)):
                lie = {**TYPE, "X-Forwarded-For": "198.51.100.7"}
                answer = await door.ask(body=request, headers=lie, source=source, proxy_port=port)
                assert answer.status == status
        assert not door.front.admission.refusals["no_proxy_header"]
    for named in ("127.0.0.2", "127.0.0.3", "198.51.100"):
        assert named not in caplog.text + (tmp_path / "haproxy.log").read_text()


@needs_haproxy
@both_ways
async def test_haproxy_as_documented_gives_devices_no_linkable_state(
    opening: Opening, tmp_path: Path, setup: tuple[str, dict[str, Any]]
) -> None:
    write_certificates(tmp_path, {"shuffler": ["shuffler"]})
    configuration, believed = setup

    tls = TlsFolder(tmp_path, "shuffler")
    async with opening(tls=tls, **believed) as door:
        with haproxy(tmp_path, configuration, door.port) as port:
            await leaves_no_ticket(door, port)


async def test_a_proxy_without_its_promised_header_is_refused_and_logged_once(
    opening: Opening,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with opening(header_proxies=(PROXY,)) as door:
        assert b"200 OK" in await door.response_bytes(HEADER + HEALTH)
        assert b"200 OK" in await door.response_bytes(b"PROXY UNKNOWN\r\n" + HEALTH)
        for refused in (HEALTH, b"PROXY TCP4 192.0.2.1\r\n" + HEALTH):
            assert await door.response_bytes(refused) == b""
        with monkeypatch.context() as hurried:
            hurried.setattr(proxy_header, "_HEADER_SECONDS", 0.05)
            assert await door.response_bytes(b"PROXY TCP4 192") == b"", "its end never comes"
        await door.has("no_proxy_header", 3)
        assert b"200 OK" in await door.response_bytes(HEADER + HEALTH)
        assert door.front.admission.refusals["no_proxy_header"] == 3
    assert caplog.text.count("does not begin with a PROXY header") == 1
    assert "192.0.2" not in caplog.text
    assert "127.0.0" not in caplog.text


@pytest.mark.parametrize("believed", [{}, {"header_proxies": (PROXY,)}], ids=["off", "on"])
async def test_a_header_from_an_address_that_is_no_proxy_is_refused(
    opening: Opening, believed: dict[str, Any]
) -> None:
    limiter = Limiter(0.001, 1)
    async with opening(limiter=limiter, **believed) as door:
        assert b"200 OK" in await door.response_bytes(HEALTH, source="127.0.0.9")
        for header in (HEADER, b"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c" + bytes(12)):
            assert b"200 OK" not in await door.response_bytes(header + HEALTH, source="127.0.0.9")
        request = door.front.request(40).SerializeToString()
        for claimed, status in (("192.0.2.1", 200), ("192.0.2.2", 429)):
            by = {**TYPE, "X-Forwarded-For": claimed}
            answer = await door.ask(body=request, headers=by, source="127.0.0.9")
            assert answer.status == status


async def test_connections_of_one_address_are_limited_also_behind_a_proxy(
    opening: Opening,
) -> None:
    async with opening(header_proxies=(PROXY,), max_per_address=2) as door:
        opened = []
        for device in (1, 1, 2, 1):
            header = HEADER.replace(b"192.0.2.1", b"192.0.2.%d" % device)
            reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
            opened.append((reader, writer))
            writer.write(header)
            await eventually_async(lambda: door.lines._number == min(len(opened), 3))
        await door.has("gave_way", 1)
        assert await opened[0][0].read() == b""
        for reader, writer in opened[1:]:
            writer.write(HEALTH)
            assert b"200 OK" in await reader.read()
        for _, writer in opened:
            writer.close()


async def test_a_server_closed_at_once_releases_its_address(
    opening: Opening,
) -> None:
    async with opening(header_proxies=(PROXY,)) as door:
        await door.server.stop(0)

        async def opens_again() -> bool:
            await door.server.start()
            return True

        await eventually_async(opens_again, although=(ServiceUnavailable,))
        assert b"200 OK" in await door.response_bytes(HEADER + HEALTH)
