"""The shuffler's HTTP door: gRPC's answers in HTTP's words, and strangers who do not get on."""

import asyncio
import http.client
import json
import logging
import os
import socket
import ssl
from base64 import b64decode
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import uvloop

from hubbub.errors import BadParameter, KeysUnusable, ServiceUnavailable, StoreUnavailable
from hubbub.installation.certificate_authorities import write_certificates
from hubbub.installation.child_process import free_port
from hubbub.runtime.http.connection_limit import OpenConnections
from hubbub.runtime.http.server import HttpDoor, _listening
from hubbub.runtime.http.timed_connection import OF_DEVICES, TimeLimits
from hubbub.runtime.rpc.rate_limiter import Limiter
from hubbub.runtime.tls import TlsFolder
from hubbub.shuffler.admission import LARGEST_SUBMIT_BYTES
from hubbub.shuffler.http_door import OhttpGateway, ReportsApp
from hubbub.shuffler.public_files import BundleFile
from hubbub.shuffler.token_checks import Paid, Redeemer
from hubbub.wire.v1.services_pb2 import Reason, SubmitRequest, SubmitResponse
from tests.conftest import CatalogFiles
from tests.services.test_guards import Front, serving_front
from tests.support.waiting import HANG_SECONDS, eventually_async

TYPE = {"Content-Type": "application/protobuf"}


class Answer(NamedTuple):
    """A response, whole."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def problem(self) -> dict[str, Any]:
        assert self.headers["content-type"] == "application/problem+json"
        document: dict[str, Any] = json.loads(self.body)
        assert document["status"] == self.status
        return document


class Door:
    """An HTTP door before a front, on a port of this machine."""

    def __init__(
        self,
        front: Front,
        *,
        tls: TlsFolder | None,
        bundle: Path | None,
        header_proxies: tuple[str, ...] = (),
        gateway: OhttpGateway | None = None,
        times: TimeLimits = OF_DEVICES,
        **lines: Any,
    ) -> None:
        self.front, self.port = front, free_port()
        counted = OpenConnections(refusals=front.admission.refusals, **lines)
        self.lines = counted
        served = BundleFile(bundle) if bundle else None
        app = ReportsApp(front.admission, counted, served, gateway)
        self.server = HttpDoor(
            f"127.0.0.1:{self.port}",
            app,
            tls=tls,
            connections=counted,
            limits=times,
            header_proxies=header_proxies,
        )
        self.trust = tls and ssl.create_default_context(cafile=str(tls.folder / "ca.pem"))

    async def ask(
        self,
        method: str = "POST",
        path: str = "/v1/reports",
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
        *,
        source: str = "127.0.0.1",
        proxy_port: int = 0,
    ) -> Answer:
        """source: the address to ask from. proxy_port: of a proxy that is asked instead."""

        def get_answer() -> Answer:
            place: tuple[str, int] = "127.0.0.1", proxy_port or self.port
            more: dict[str, Any] = {"timeout": HANG_SECONDS, "source_address": (source, 0)}
            connection = (
                http.client.HTTPSConnection(*place, context=self.trust, **more)
                if self.trust
                else http.client.HTTPConnection(*place, **more)
            )
            connection.request(method, path, body, headers if headers is not None else TYPE)
            response = connection.getresponse()
            response_headers = {name.lower(): value for name, value in response.getheaders()}
            answer = Answer(response.status, response_headers, response.read())
            connection.close()
            return answer

        return await asyncio.to_thread(get_answer)

    async def send(self, request: SubmitRequest) -> SubmitResponse:
        answer = await self.ask(body=request.SerializeToString())
        assert (answer.status, answer.headers["content-type"]) == (200, "application/protobuf")
        return SubmitResponse.FromString(answer.body)

    async def response_bytes(self, *parts: bytes, source: str = "127.0.0.1") -> bytes:
        """All that is answered to these parts from an address; nothing if the line is cut."""
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", self.port, ssl=self.trust, local_addr=(source, 0), family=socket.AF_INET
        )
        try:
            for part in parts:
                writer.write(part)
                await writer.drain()
            return await asyncio.wait_for(reader.read(), HANG_SECONDS)
        except ConnectionError:
            return b""
        finally:
            writer.close()

    async def has(self, reason: str, number: int) -> None:
        await eventually_async(lambda: self.front.admission.refusals[reason] >= number)


@asynccontextmanager
async def open_door(
    catalog_files: CatalogFiles,
    redis_url: str,
    *,
    tls: TlsFolder | None = None,
    bundle: Path | None = None,
    limiter: Limiter | None = None,
    redeemer: Redeemer | None = None,
    **lines: Any,
) -> AsyncIterator[Door]:
    async with serving_front(catalog_files, redis_url, limiter=limiter, redeemer=redeemer) as front:
        door = Door(front, tls=tls, bundle=bundle, **lines)
        await door.server.start()
        try:
            yield door
        finally:
            await door.server.stop(1)


Opening = Callable[..., AbstractAsyncContextManager[Door]]
"""Opens a door with these options of `open_door`."""


async def test_reports_are_taken_over_tls_once_they_are_durable(
    opening: Opening, tmp_path: Path
) -> None:
    write_certificates(tmp_path, {})
    tls = TlsFolder(tmp_path, "shuffler")
    async with opening(tls=tls) as door:
        request = door.front.request(3)
        late = request.reports.add()
        late.CopyFrom(request.reports[0])
        late.key_id += 1
        answer = await door.send(request)
        [window, *others] = (await door.front.pool.report_counts()).items()
        assert not others
        assert window[1]["pooled"] == 3
        [refusal] = answer.refused
        assert (refusal.index, refusal.reason) == (3, Reason.REASON_WRONG_KEY)
        counted = dict(door.front.admission.counts)
        assert counted == {"taken": 3, "wrong_key": 1}
        door.server.renew()
        assert not (await door.send(request)).refused[1:]


async def test_no_report_is_acknowledged_before_it_is_in_the_pool(door: Door) -> None:
    intake, may_write = door.front.intake, asyncio.Event()
    add = intake._pool.add

    async def delayed_add(*arguments: Any) -> frozenset[Paid]:
        await may_write.wait()
        return await add(*arguments)

    intake._pool.add = delayed_add  # type: ignore[method-assign, assignment]
    sent = asyncio.create_task(door.send(door.front.request(2)))
    await eventually_async(lambda: intake.waiting == 2)
    assert not sent.done()
    may_write.set()
    assert not (await sent).refused
    [terms] = (await door.front.pool.report_counts()).values()
    assert terms["pooled"] == 2


async def leaves_no_ticket(door: Door, port: int) -> None:
    """By this port the door speaks the newest TLS alone, and hands out nothing to resume it by."""
    trust = door.trust
    assert isinstance(trust, ssl.SSLContext)
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust)
    writer.write(b"GET /health HTTP/1.1\r\nhost: a\r\n\r\n")
    assert await reader.readuntil(b"ok\n")
    spoken = writer.get_extra_info("ssl_object")
    assert spoken.version() == "TLSv1.3"
    assert not spoken.session.has_ticket
    writer.close()
    trust.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await asyncio.open_connection("127.0.0.1", port, ssl=trust)


async def test_tls_leaves_nothing_that_links_two_visits(opening: Opening, tmp_path: Path) -> None:
    write_certificates(tmp_path, {})
    async with opening(tls=TlsFolder(tmp_path, "shuffler")) as door:
        await leaves_no_ticket(door, door.port)


async def test_only_requests_that_can_never_be_accepted_are_marked_so(door: Door) -> None:
    request_bytes = door.front.request(1).SerializeToString()
    many = SubmitRequest(reports=[*door.front.request(1).reports] * 1001)
    for never in (b"\xff", request_bytes + b"\x9a\x06\x02id", many.SerializeToString()):
        answer = await door.ask(body=never)
        assert answer.status == 400
        assert answer.headers["hubbub-refused"] == "for-good"
        assert answer.problem["title"] == "Bad Request"
    for status, pending in {
        404: door.ask(path="/"),
        405: door.ask("GET"),
        415: door.ask(body=request_bytes, headers={"Content-Type": "text/plain"}),
    }.items():
        answer = await pending
        assert answer.status == status
        assert "hubbub-refused" not in answer.headers
        assert answer.problem
    assert door.front.admission.counts["taken"] == 0


async def test_a_refused_http_caller_gets_the_retry_time_as_over_grpc(opening: Opening) -> None:
    async with opening(limiter=Limiter(1, 1)) as door:
        admission, request = door.front.admission, door.front.request(40)
        admission.notice = b"signed\n"
        await door.send(request)
        answer = await door.ask(body=request.SerializeToString())
        hint = answer.problem["retry_after_ms"] / 1000
        assert answer.status == 429
        assert 0 < hint <= int(answer.headers["retry-after"]) + 0.001
        assert hint < 2 * 40
        assert b64decode(answer.problem["notice"]) == b"signed\n"
        assert admission.refusals["peer_limit"] == 1
        door.front.admission._limiter.allow(0, 1)

        async def away(*_: Any) -> None:
            raise StoreUnavailable("it is away")

        door.front.intake.add = away  # type: ignore[assignment,method-assign]
        answer = await door.ask(body=request.SerializeToString())
        assert answer.status == 503
        assert "retry-after" not in answer.headers
        assert "retry_after_ms" not in answer.problem
        assert b64decode(answer.problem["notice"]) == b"signed\n"


async def test_any_page_may_send_and_its_browsers_headers_are_ignored(
    opening: Opening, caplog: pytest.LogCaptureFixture
) -> None:
    headers = {
        "Cookie": "id=mallory",
        "Origin": "https://mallory.example",
        "Referer": "https://mallory.example/page",
        "User-Agent": "mallory/1",
    }

    with caplog.at_level(logging.DEBUG):
        async with opening() as door:
            preflight = await door.ask("OPTIONS", headers=headers)
            assert preflight.status == 204
            assert preflight.headers["access-control-max-age"] == "86400"
            assert "content-type" in preflight.headers["access-control-allow-headers"]
            request = door.front.request(1).SerializeToString()
            answers = [preflight, await door.ask(body=request, headers={**TYPE, **headers})]

            def broken(*_: object) -> float:
                raise RuntimeError("of mallory")

            door.front.admission.wait_seconds = broken  # type: ignore[assignment,method-assign]
            answers.append(await door.ask(body=request, headers={**TYPE, **headers}))
            assert [answer.status for answer in answers] == [204, 200, 500]
            for answer in answers:
                assert answer.headers["access-control-allow-origin"] == "*"
                assert "access-control-allow-credentials" not in answer.headers
                assert "set-cookie" not in answer.headers
    assert "a request of HTTP failed: RuntimeError" in caplog.text
    assert "mallory" not in caplog.text


def _head(length: int | None) -> bytes:
    size = b"transfer-encoding: chunked" if length is None else b"content-length: %d" % length
    kind = b"content-type: application/protobuf"
    return b"\r\n".join((b"POST /v1/reports HTTP/1.1", b"host: a", kind, size, b"", b""))


async def test_a_body_that_is_too_large_is_refused_before_it_arrives(door: Door) -> None:
    over = LARGEST_SUBMIT_BYTES + 1
    assert (await door.response_bytes(_head(over))).startswith(b"HTTP/1.1 413 ")
    chunk = b"10000\r\n" + b"x" * (1 << 16) + b"\r\n"
    reply = await door.response_bytes(_head(None), chunk * (over // (1 << 16)), b"1\r\nx\r\n")
    assert reply.startswith(b"HTTP/1.1 413 ")
    lines = b"x: " + b"y" * 8000 + b"\r\n"
    reply = await door.response_bytes(b"GET /health HTTP/1.1\r\n" + lines * 3)
    assert reply.startswith(b"HTTP/1.1 431 ")
    assert (await door.response_bytes(b"\x16\x03\x01 no HTTP\r\n\r\n")).startswith(b"HTTP/1.1 400 ")
    await door.send(door.front.request(1))


GET = b"GET /health HTTP/1.1\r\nhost: a\r\n\r\n"


@pytest.mark.parametrize(
    "rest",
    [
        pytest.param(b"0\r\nx-forwarded-for: 192.0.2.1\r\n\r\n", id="a trailer"),
        pytest.param(b"0\r\n" + b"x: y\r\n" * 50_000, id="trailers"),
        pytest.param(b"0\r\nx: " + b"y" * (1 << 18), id="a trailer without an end"),
        pytest.param(b"0\r\n" + b"y" * (1 << 18), id="a trailer's name without an end"),
        pytest.param(b"1;" + b"y" * (1 << 18), id="an extension of a chunk without an end"),
        pytest.param(b"1\r\ny\r\n" * 50_000, id="chunks of a byte without an end"),
    ],
)
async def test_a_request_with_a_trailer_is_refused(door: Door, rest: bytes) -> None:
    """A trailer would join the headers, and name the caller, before the application reads them."""
    message = door.front.request(1).SerializeToString()
    chunk = b"%x\r\n%s\r\n" % (len(message), message)
    answer = await door.response_bytes(_head(None) + chunk + rest)
    assert answer[:12] in {b"", b"HTTP/1.1 400", b"HTTP/1.1 431"}
    assert door.front.admission.counts["taken"] == 0
    await door.send(door.front.request(1))


async def test_a_head_that_others_may_read_differently_is_refused(door: Door) -> None:
    host, coding = "\r\nhost: x:1", "\r\ntransfer-encoding: "
    valid = "1.0", f"1.0{host}", f"1.1{host}", f"1.1{host}{coding}Chunked"
    forbidden = "1.1", f"1.1{host}{host}", f"1.0{host}{host}", f"0.9{host}", f"2.0{host}"
    odd = f"1.1{host} y", f"1.1{host}@y", f"1.1{host}{coding}gzip, chunked", f"1.0{coding}chunked"
    for status, heads in ((200, valid), (400, forbidden + odd)):
        for head in heads:
            request = f"GET /health HTTP/{head}\r\nconnection: close\r\n\r\n".encode()
            answer = await door.response_bytes(request, b"0\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 %d " % status), head


async def test_thousands_of_chunks_are_counted_as_one_part_of_a_body(
    opening: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The count looks at every other connection's body, so chunks of a byte kept the door busy."""
    sizes: list[int] = []
    monkeypatch.setattr(OpenConnections, "receive", lambda _lines, _line, size: sizes.append(size))
    head = b"POST /v1/reports HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
    async with opening() as door:
        answer = await door.response_bytes(
            head + b"Connection: close\r\n\r\n" + b"1\r\nx\r\n" * 1000 + b"0\r\n\r\n"
        )
        assert answer.startswith(b"HTTP/1.1 4")
    assert (sum(sizes), len(sizes) < 10) == (1000, True)


async def test_a_request_before_the_last_answer_ends_the_connection_with_that_answer(
    door: Door,
) -> None:
    message = door.front.request(1).SerializeToString()
    request = _head(len(message)) + message
    for requests in (request + GET * 5000, request * 100, request + b"POST"):
        answer = await door.response_bytes(requests)
        assert answer.count(b"HTTP/1.1 ") == 1
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert b"connection: close" in answer
    assert door.front.admission.counts["taken"] == 3


async def test_a_kept_connection_that_sends_empty_lines_is_ended(opening: Opening) -> None:

    async with opening(times=TimeLimits(idle=0.3)) as door:
        reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
        writer.write(GET)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"\r\n")  # a server skips empty lines before a request
        await door.has("too_slow", 1)
        writer.transport.abort()


async def test_above_the_body_memory_limit_the_largest_body_is_dropped(
    opening: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hubbub.runtime.http.connection_limit._MAX_BODIES_BYTES", 1 << 20)
    async with opening() as door:
        open_ = [await asyncio.open_connection("127.0.0.1", door.port) for _ in range(20)]
        for _, writer in open_:
            writer.write(_head(1 << 20) + b"x" * (1 << 18))
        await door.has("gave_way", 16)
        assert door.lines._received.total() <= 1 << 20
        for number in range(3):
            await door.send(door.front.request(2))
            assert door.front.admission.counts["taken"] == 2 * (number + 1)
        for _, writer in open_:
            writer.transport.abort()
        await eventually_async(lambda: not door.lines._received)


async def test_above_the_unread_memory_limit_the_largest_connection_is_dropped(
    opening: Opening, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty submission gets the state of models, which TLS alone would take whole."""
    monkeypatch.setattr("hubbub.runtime.http.connection_limit._MAX_ANSWERS_BYTES", 1 << 20)
    write_certificates(tmp_path, {})

    async def unread(door: Door) -> asyncio.StreamWriter:
        place = socket.socket()
        place.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        place.setblocking(False)  # noqa: FBT003 as the standard library has it
        await asyncio.get_running_loop().sock_connect(place, ("127.0.0.1", door.port))
        options: Any = {"ssl": door.trust, "server_hostname": "127.0.0.1", "limit": 2048}
        _, writer = await asyncio.open_connection(sock=place, **options)
        writer.transport.pause_reading()  # type: ignore[attr-defined]  # its own type has it
        writer.write(_head(0))
        return writer

    async with opening(tls=TlsFolder(tmp_path, "shuffler"), max_per_address=0) as door:
        # The system itself takes the first megabytes of each.
        door.front.admission.models = models = bytes(8 << 20)
        writers = [await unread(door) for _ in range(4)]
        await door.has("gave_way", 4)
        assert door.lines._unread.total() <= 1 << 20
        door.front.admission.models = models = b"small"
        assert (await door.send(door.front.request(0))).models == models
        for writer in writers:
            writer.transport.abort()
        await eventually_async(lambda: not door.lines._unread)


async def test_a_request_that_arrives_too_slowly_is_ended(opening: Opening) -> None:
    """A head that never ends, a body that drips, a connection that says nothing."""
    async with opening(times=TimeLimits(request=0.2)) as door:
        drip = [_head(1000), b"x", b"x"]
        parts: list[list[bytes]] = [[], [b"POST /v1/reports HTTP/1.1\r\nhost:"], drip]
        assert await asyncio.gather(*(door.response_bytes(*part) for part in parts)) == [b""] * 3
        assert door.front.admission.refusals["too_slow"] == 3


@pytest.mark.parametrize("limits", [{"most": 50, "max_per_address": 0}, {"max_per_address": 50}])
async def test_idle_and_endless_connections_give_way_and_honest_ones_are_served(
    opening: Opening,
    limits: dict[str, Any],
) -> None:

    async with opening(**limits, times=TimeLimits(request=600.0)) as door:
        open_ = [await asyncio.open_connection("127.0.0.1", door.port) for _ in range(300)]
        for place, (_, writer) in enumerate(open_):
            writer.write((b"", b"POST /v1", _head(900), _head(None) + b"1\r\nx")[place % 4])
        await door.has("gave_way", 250)
        for number in range(5):
            await door.send(door.front.request(2))
            assert door.front.admission.counts["taken"] == 2 * (number + 1)
        for _, writer in open_:
            writer.transport.abort()


@pytest.mark.loop(factory=uvloop.new_event_loop)
@pytest.mark.parametrize("limits", [{"most": 50, "max_per_address": 0}, {"max_per_address": 50}])
async def test_connections_without_a_handshake_count_and_give_way_and_honest_ones_are_served(
    opening: Opening,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    limits: dict[str, Any],
) -> None:
    """Some say nothing, some begin a handshake and go on no further."""
    write_certificates(tmp_path, {"shuffler": ["shuffler"]})
    tls = TlsFolder(tmp_path, "shuffler")
    async with opening(tls=tls, **limits) as door:
        open_ = [await asyncio.open_connection("127.0.0.1", door.port) for _ in range(300)]
        for _, writer in open_[::2]:
            writer.write(b"\x16\x03\x01\x02")
        await door.has("gave_way", 250)
        for number in range(3):
            await door.send(door.front.request(2))
            assert door.front.admission.counts["taken"] == 2 * (number + 1)
        for _, writer in open_:
            writer.transport.abort()
    assert "are closed (reason gave_way" in caplog.text
    assert "127.0.0.1" not in caplog.text


async def test_a_connection_without_a_handshake_is_ended(
    opening: Opening, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hubbub.runtime.http.server._SILENT_SECONDS", 0.2)
    write_certificates(tmp_path, {"shuffler": ["shuffler"]})
    async with opening(tls=TlsFolder(tmp_path, "shuffler")) as door:
        reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
        assert await reader.read() == b""
        await door.has("too_slow", 1)
        writer.close()


async def test_the_bundle_is_the_same_bytes_for_everybody_and_known_by_its_tag(
    opening: Opening, tmp_path: Path
) -> None:
    path = tmp_path / "app.hubbub"
    path.write_bytes(b"signed")
    async with opening(bundle=path) as door:
        first = await door.ask("GET", "/v1/bundle", headers={})
        other = await door.ask("GET", "/v1/bundle", headers={"User-Agent": "x", "Cookie": "y"})
        assert first == other
        assert (first.status, first.body) == (200, b"signed")
        assert first.headers["cache-control"] == "public, max-age=300"
        headers = {"If-None-Match": first.headers["etag"]}
        any_tag = await door.ask("GET", "/v1/bundle", headers={"If-None-Match": "*"})
        again = await door.ask("GET", "/v1/bundle", headers=headers)
        assert any_tag == again
        assert (again.status, again.body) == (304, b"")
        assert "content-length" not in again.headers
        assert again.headers["access-control-allow-origin"] == "*"
        head = await door.ask("HEAD", "/v1/bundle", headers={})
        assert (head.status, head.headers["content-length"]) == (200, "6")
        path.write_bytes(b"a newer one")
        newer = await door.ask("GET", "/v1/bundle", headers=headers)
        assert (newer.status, newer.body) == (200, b"a newer one")
        path.unlink()
        assert (await door.ask("GET", "/v1/bundle", headers={})).body == b"a newer one"
        os.mkfifo(path)  # nobody writes to it: to open it would take for ever
        assert (await door.ask("GET", "/v1/bundle", headers={})).body == b"a newer one"
    with pytest.raises(BadParameter, match="--http-bundle"):
        BundleFile(path)


async def test_a_proxy_without_a_callers_address_is_logged_once(
    opening: Opening, caplog: pytest.LogCaptureFixture
) -> None:
    limiter = Limiter(0.001, 1)
    async with opening(limiter=limiter, proxies=["127.0.0.1/32"]) as door:
        request = door.front.request(40).SerializeToString()
        for _ in range(2):
            assert "X-Forwarded-For" in (await door.ask(body=request)).problem["detail"]
        assert door.front.admission.refusals["no_forwarded_for"] == 2
        for address, status in (("192.0.2.1", 200), ("192.0.2.1", 429), ("192.0.2.2", 200)):
            by = {**TYPE, "X-Forwarded-For": f"10.9.9.9, {address}"}
            assert (await door.ask(body=request, headers=by)).status == status
    assert caplog.text.count("does not name its client") == 1
    assert "192.0.2" not in caplog.text


async def test_a_server_that_cannot_listen_names_the_cause(
    opening: Opening, tmp_path: Path
) -> None:
    def door(address: str, tls: TlsFolder | None = None) -> HttpDoor:
        app: Callable[..., Any] = ReportsApp
        return HttpDoor(address, app, tls=tls, connections=OpenConnections())

    with pytest.raises(ServiceUnavailable, match=r"0\.0\.0\.0:1 is not on this machine"):
        door("0.0.0.0:1")
    with pytest.raises(KeysUnusable, match=r"cannot be read"):
        door("127.0.0.1:1", TlsFolder(tmp_path, "shuffler"))
    async with opening() as other_door:
        with pytest.raises(ServiceUnavailable, match=f"cannot listen on .*:{other_door.port}"):
            await door(f"127.0.0.1:{other_door.port}").start()


async def test_http_ports_share_an_address_if_all_have_the_option(front: Front) -> None:
    doors = [Door(front, tls=None, bundle=None) for _ in range(2)]
    for door in doors:
        door.server._shared = True
        door.server._address = f"127.0.0.1:{doors[0].port}"
        await door.server.start()
    for _ in range(8):
        await doors[0].send(front.request(1))
    await doors[0].server.stop(1)
    await doors[0].send(front.request(1))  # the other one still listens there
    assert front.admission.counts["taken"] == 9
    await doors[1].server.stop(1)


def test_only_little_unread_data_of_a_connection_waits() -> None:
    """TLS reads all that waits at once and keeps it twice, beside what is counted of bodies."""
    with _listening("127.0.0.1:0", shared=False) as listening, socket.socket() as caller:
        listening.listen()
        caller.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        caller.connect(listening.getsockname())
        caller.settimeout(0.2)
        sent = 0
        with suppress(TimeoutError):
            while sent < 1 << 20:
                sent += caller.send(bytes(4096))
        assert sent <= 64 << 10
