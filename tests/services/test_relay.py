"""A relay between devices and the HTTP door: it reads nothing, and the shuffler sees no address."""

import asyncio
from collections.abc import AsyncIterator, Callable, MutableMapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hubbub.client import Client, Outcome, TryAgain
from hubbub.client.transport.contract import SealedReport
from hubbub.client.transport.http_connection import REPORTS_PATH, REPORTS_TYPE
from hubbub.client.transport.transport_by_address import relay_to
from hubbub.errors import BadParameter, KeysUnusable
from hubbub.installation.certificate_authorities import write_certificates
from hubbub.installation.child_process import free_port
from hubbub.keys.issuer_and_gateway_keys import GATEWAY_KEY, make_gateway_key, read_gateway
from hubbub.oblivious.binary_http import Request, read_response, write_request
from hubbub.oblivious.encapsulation import encapsulate
from hubbub.oblivious.key_config import GATEWAY_PATH, KEYS_TYPE, REQUEST_TYPE
from hubbub.relay.forwarding import RelayApp
from hubbub.runtime.http.bodies_and_problems import PROBLEM_TYPE
from hubbub.runtime.rpc.rate_limiter import Limiter
from hubbub.runtime.tls import TlsFolder
from hubbub.shuffler.http_door import OhttpGateway, read_gateway_keys
from hubbub.signing.sign_bundle import sign_bundle
from hubbub.wire.v1.services_pb2 import SubmitRequest
from tests.conftest import CatalogFiles
from tests.services.test_http_door import Opening
from tests.support.relay_process import Relay
from tests.support.waiting import HANG_SECONDS


@pytest.fixture
def tls(tmp_path: Path) -> Path:
    write_certificates(tmp_path, {})
    make_gateway_key(tmp_path)
    return tmp_path


def _gateway(folder: Path, *relays: str) -> OhttpGateway:
    return OhttpGateway(read_gateway_keys(folder / GATEWAY_KEY), relays)


def _sealed(
    tls: Path,
    content: bytes,
    *headers: tuple[bytes, bytes],
    path: str = REPORTS_PATH,
    kind: str = REPORTS_TYPE,
    padded_to: int = 1,
) -> tuple[bytes, Callable[[bytes], bytes]]:
    """A sealed request of a device, and what opens its answer."""
    request = Request(
        method=b"POST",
        scheme=b"https",
        authority=b"here",
        path=path.encode(),
        headers=((b"content-type", kind.encode()), *headers),
        content=content,
    )
    return encapsulate(read_gateway(tls), write_request(request, padded_to=padded_to))


def _number(folder: Path) -> int | None:
    """Of the newest key, a byte: one other key in 256 has the same."""
    return next(iter(read_gateway(folder)), None)


def _bundle(catalog_files: CatalogFiles, folder: Path) -> Path:
    """What an app ships, with the gateway's key in it."""
    roots = (folder / "ca.pem").read_text()
    bundle = replace(catalog_files.bundle, gateway=read_gateway(folder), roots=roots)
    path = folder / "app.hubbub"
    path.write_bytes(sign_bundle(bundle, Ed25519PrivateKey.generate()))
    return path


def _reports(request: SubmitRequest) -> list[SealedReport]:
    return [
        SealedReport(stream=r.stream, epoch=r.epoch, key_id=r.key_id, sealed=r.sealed)
        for r in request.reports
    ]


async def test_reports_go_through_a_relay_that_knows_none_of_them(
    catalog_files: CatalogFiles, opening: Opening, tls: Path
) -> None:
    """And past the limit of one address, which the relay alone holds its people to."""
    limiter, gateway = Limiter(0.001, 1), _gateway(tls, "127.0.0.1")
    view = TlsFolder(tls, "shuffler")
    async with opening(tls=view, limiter=limiter, gateway=gateway) as door:
        relay = Relay(tls, f"https://127.0.0.1:{door.port}", free_port())
        request = door.front.request(3)
        late = request.reports.add()
        late.CopyFrom(request.reports[0])
        late.key_id += 1
        reports = _reports(request)

        def send_reports() -> None:
            with relay.running():
                transport = relay.transport(read_gateway(tls))
                for _ in range(3):
                    results = transport.submit(reports, HANG_SECONDS).results
                    assert results == [None, None, None, "refused_wrong_key"]
                # A shuffler's own word ends a report; whatever a relay says does not.
                transport.close()
                assert relay.ask(b"no request") == (400, "application/problem+json")
                assert relay.ask(b"", "text/plain") == (415, "application/problem+json")
                assert relay.ask(bytes(3 << 20)) == (413, "application/problem+json")
                # A key that is not the gateway's any more.
                while _number(tls / "other") in {None, _number(tls)}:
                    make_gateway_key(tls / "other")
                other = relay.transport(read_gateway(tls / "other"))
                with pytest.raises(TryAgain, match="relay_http_422"):
                    other.submit(reports, HANG_SECONDS)
                other.close()
                # The SDK, by the key that its bundle signs.
                options: Any = {"state_dir": tls / "device", "relay": relay.url}
                with Client.from_bundle(_bundle(catalog_files, tls), **options) as client:
                    assert client.report("theme", "dark") is Outcome.QUEUED
                    assert client.flush(HANG_SECONDS)

        await asyncio.to_thread(send_reports)
        assert door.front.admission.counts == {"taken": 10, "wrong_key": 3}
        assert len(limiter) == 0
        # It says that it starts and stops, and nothing of who came with what.
        assert [line for line in relay.said.splitlines() if "theme" in line] == []
        assert len(relay.said.splitlines()) == 3, relay.said
        # Without a relay the same door holds this address to its limit.
        assert (await door.ask(body=request.SerializeToString())).status == 200
        assert (await door.ask(body=request.SerializeToString())).status == 429
        keys = await door.ask("GET", GATEWAY_PATH, headers={})
        assert (keys.status, keys.headers["content-type"]) == (200, KEYS_TYPE)
        assert keys.body[2:] == read_gateway(tls)


async def test_a_sender_that_is_no_relay_has_the_limit_of_its_address(
    opening: Opening, tls: Path
) -> None:
    gateway = _gateway(tls)
    limiter = Limiter(0.001, 1)
    async with opening(limiter=limiter, gateway=gateway) as door:
        relay = Relay(tls, f"http://127.0.0.1:{door.port}", free_port())
        reports = _reports(door.front.request(2))

        def send_reports() -> None:
            with relay.running("--peer-rate", "0.001", "--peer-burst", "2"):
                transport = relay.transport(read_gateway(tls))
                assert transport.submit(reports, HANG_SECONDS).results == [None, None]
                for _ in range(2):  # the gateway's word, which the relay passes on
                    with pytest.raises(TryAgain, match="relay_resource_exhausted") as again:
                        transport.submit(reports, HANG_SECONDS)
                    assert again.value.after_seconds
                with pytest.raises(TryAgain, match="relay_resource_exhausted"):  # its own
                    transport.submit(reports, HANG_SECONDS)
                transport.close()

        await asyncio.to_thread(send_reports)


@pytest.mark.parametrize("length", [b"many", b"-1", b"99999999999", b""])
async def test_the_length_in_a_sealed_request_is_not_trusted(
    opening: Opening, tls: Path, length: bytes
) -> None:
    async with opening(gateway=_gateway(tls)) as door:
        content = door.front.request(2).SerializeToString()
        message, opened = _sealed(tls, content, (b"content-length", length))
        answer = await door.ask("POST", GATEWAY_PATH, message, {"Content-Type": REQUEST_TYPE})
        assert answer.status == 200
        assert read_response(opened(answer.body)).status == 200
        assert door.front.admission.counts == {"taken": 2}


async def test_the_length_of_a_sealed_answer_tells_a_relay_nothing_about_it(
    opening: Opening, tls: Path
) -> None:
    async with opening(gateway=_gateway(tls)) as door:
        request, lengths, statuses = door.front.request(40), set(), []
        refused = door.front.request(40)
        for report in refused.reports:
            report.key_id += 1
        for content in (request, refused, None):
            raw = content.SerializeToString() if content else b"\xff no message"
            message, opened = _sealed(tls, raw)
            answer = await door.ask("POST", GATEWAY_PATH, message, {"Content-Type": REQUEST_TYPE})
            lengths.add(len(answer.body))
            statuses.append(read_response(opened(answer.body)).status)
        assert statuses == [200, 200, 400]
        assert len(lengths) == 1
        assert door.front.admission.counts == {"taken": 40, "wrong_key": 40}


async def test_an_answers_length_depends_on_the_requests_length_alone(
    opening: Opening, tls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reports taken, all refused or none there, models, no message, another path, no more room."""
    async with opening(gateway=_gateway(tls)) as door:
        door.front.admission.notice = b"n" * 3000
        door.front.admission.models = b"m" * 5000
        valid, refused = door.front.request(7), door.front.request(7)
        for report in refused.reports:
            report.key_id += 1
        contents = [
            (REPORTS_PATH, valid.SerializeToString()),
            (REPORTS_PATH, refused.SerializeToString()),
            (REPORTS_PATH, b""),
            (REPORTS_PATH, b"no message"),
            ("/elsewhere", b""),
        ]
        lengths, statuses = set(), []
        for late in (False, True):
            for path, content in contents:
                # Within the sealed request alone: its sender has room as it comes.
                waits = [9.0, 0.0] if late else [0.0, 0.0]
                monkeypatch.setattr(
                    door.front.admission, "wait_seconds", lambda _, waits=waits: waits.pop()
                )
                message, opened = _sealed(tls, content, path=path, padded_to=4096)
                sealed = {"Content-Type": REQUEST_TYPE}
                answer = await door.ask("POST", GATEWAY_PATH, message, sealed)
                lengths.add(len(answer.body))
                statuses.append(read_response(opened(answer.body)).status)
        assert statuses == [200, 200, 200, 400, 404, 429, 429, 429, 429, 404]
        assert len(lengths) == 1


@pytest.mark.parametrize(
    "wrong", [("/elsewhere", REPORTS_TYPE, 404), (REPORTS_PATH, "text/plain", 415)]
)
async def test_a_sealed_request_that_is_not_read_is_charged_by_its_size(
    opening: Opening, tls: Path, wrong: tuple[str, str, int]
) -> None:
    limiter = Limiter(0.001, 1)
    async with opening(limiter=limiter, gateway=_gateway(tls)) as door:
        path, kind, status = wrong
        message, opened = _sealed(tls, bytes(9000), path=path, kind=kind)
        for expected in (status, 429):
            answer = await door.ask("POST", GATEWAY_PATH, message, {"Content-Type": REQUEST_TYPE})
            answer_status = (
                read_response(opened(answer.body)).status if expected == status else answer.status
            )
            assert answer_status == expected


async def test_a_request_for_an_unknown_key_is_charged_by_its_size(
    opening: Opening, tls: Path
) -> None:
    gateway = _gateway(tls)
    async with opening(limiter=Limiter(0.001, 1), gateway=gateway) as door:
        message = bytes([read_gateway(tls)[0] ^ 1]) + bytes(9000)
        for expected in (422, 429):
            answer = await door.ask("POST", GATEWAY_PATH, message, {"Content-Type": REQUEST_TYPE})
            assert answer.status == expected


async def _forwarded_head(
    gateway: Callable[[httpx2.Request], httpx2.Response],
    *headers: tuple[bytes, bytes],
    times: int = 1,
) -> tuple[int, dict[bytes, bytes]]:
    """Status and headers of a relay's answer to a sealed request with these headers, too."""
    messages: list[MutableMapping[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"sealed", "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        messages.append(message)

    async with httpx2.AsyncClient(
        transport=httpx2.MockTransport(gateway), timeout=HANG_SECONDS
    ) as client:
        app = RelayApp("https://gateway.example.org", client, Limiter(1, 9))
        every = [(b"content-type", REQUEST_TYPE.encode()), *headers]
        scope = {"method": "POST", "path": "/", "headers": every, "client": ("127.0.0.1", 1)}
        for _ in range(times):
            await app(scope, receive, send)
    return messages[0]["status"], dict(messages[0]["headers"])


def test_a_gateways_word_on_waiting_that_is_no_header_is_not_passed_on() -> None:
    def gateway(_: httpx2.Request) -> httpx2.Response:
        headers = {b"Content-Type": PROBLEM_TYPE.encode(), b"Retry-After": b"\xff7"}
        return httpx2.Response(429, headers=headers, stream=httpx2.ByteStream(b"{}"))

    status, headers = asyncio.run(_forwarded_head(gateway))
    assert status == 429
    assert b"retry-after" not in headers


def test_a_compressed_request_is_refused_and_not_passed_on() -> None:
    def gateway(_: httpx2.Request) -> httpx2.Response:
        pytest.fail("it is not for the gateway")

    status, _ = asyncio.run(_forwarded_head(gateway, (b"content-encoding", b"gzip")))
    assert status == 415


def test_no_cookie_of_the_gateways_goes_with_the_next_devices_request() -> None:
    heads: list[dict[str, str]] = []

    def gateway(request: httpx2.Request) -> httpx2.Response:
        heads.append(dict(request.headers))
        return httpx2.Response(200, headers={"Set-Cookie": "device=1; Path=/"})

    asyncio.run(_forwarded_head(gateway, (b"cookie", b"device=2"), times=2))
    host = "gateway.example.org"
    sent = {"host": host, "content-type": REQUEST_TYPE, "content-length": "6"}
    assert heads == [sent, sent]


def test_a_slow_answer_keeps_no_connection_to_the_gateway(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hubbub.relay.forwarding._GATEWAY_SECONDS", 0)

    async def drops() -> AsyncIterator[bytes]:
        for _ in range(100):
            await asyncio.sleep(0)
            yield b"x"

    def gateway(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"Content-Type": "message/ohttp-res"}, content=drops())

    status, _ = asyncio.run(_forwarded_head(gateway))
    assert status == 502


def test_reports_wait_while_the_gateway_is_unreachable(tls: Path) -> None:
    relay = Relay(tls, f"http://127.0.0.1:{free_port()}", free_port())
    with relay.running():
        transport = relay.transport(read_gateway(tls))
        with pytest.raises(TryAgain, match="relay_http_502"):
            transport.submit(
                [SealedReport(stream="theme", epoch=1, key_id=1, sealed=bytes(50))], HANG_SECONDS
            )
        transport.close()


def test_gateway_keys_are_added_in_front_and_invalid_ones_refused(tmp_path: Path) -> None:
    assert [make_gateway_key(tmp_path) for _ in range(3)] == [1, 2, 3]
    keys = read_gateway_keys(tmp_path / GATEWAY_KEY)
    configs = OhttpGateway(keys).public_keys.content
    assert configs[2 : 2 + configs[1]] == read_gateway(tmp_path)
    assert read_gateway(tmp_path / "none") == b""
    for wrong in ("no key\n", "AAAA\n"):
        (tmp_path / GATEWAY_KEY).write_text(wrong)
        with pytest.raises(KeysUnusable):
            read_gateway_keys(tmp_path / GATEWAY_KEY)
        with pytest.raises(KeysUnusable):
            make_gateway_key(tmp_path)
    (tmp_path / "gateway.pub").write_text("AAAA\n")
    with pytest.raises(KeysUnusable):
        read_gateway(tmp_path)


@pytest.mark.parametrize("relay", ["relay.example.org", "http://127.0.0.1:1", "https://"])
def test_a_relay_needs_an_address_and_the_bundle_its_gateways_key(relay: str) -> None:
    options = {"shuffler": "shuffler.example.org:443", "roots": None}
    with pytest.raises(BadParameter, match="https://HOST:PORT"):
        relay_to(relay, gateway=b"key", **options)  # type: ignore[arg-type]
    with pytest.raises(BadParameter, match="hubbub keys gateway"):
        relay_to("https://relay.example.org", gateway=b"", **options)  # type: ignore[arg-type]
