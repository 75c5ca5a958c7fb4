"""A proxy between the device and the shuffler, and none before a service of this machine."""

import asyncio
import os
import select
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from hubbub.client import transport_to
from hubbub.errors import BadParameter
from hubbub.errors.address_checks import proxy_options, proxy_parts
from hubbub.programs.http_calls import HttpCalls
from hubbub.runtime.oidc_tokens import ProviderKeys
from hubbub.runtime.rpc.server import channel
from hubbub.signing.testing import make_bundle
from tests.conftest import CATALOG
from tests.support.waiting import HANG_SECONDS


def _reports(place: str, **how: Any) -> None:
    transport_to(place, roots=None, **how).submit([], HANG_SECONDS)


async def _connects(place: str) -> None:
    async with channel(place, "aggregator", tls=None) as aggregator:
        await asyncio.wait_for(aggregator.channel_ready(), HANG_SECONDS)


WAYS: dict[str, Callable[[str], object]] = {
    "reports over gRPC": lambda place: _reports(place, insecure=True, transport="grpc"),
    "reports over gRPC and TLS": lambda place: _reports(place, transport="grpc"),
    "reports over HTTP and TLS": lambda place: _reports(f"https://{place}"),
    "a service to the next": lambda place: asyncio.run(_connects(place)),
    "a login's keys": lambda place: asyncio.run(
        ProviderKeys(f"http://{place}", None, lambda: 0).ask(f"http://{place}/keys")
    ),
    "a page, a webhook and a log": lambda place: HttpCalls(HANG_SECONDS).answer(
        urllib.request.Request(f"http://{place}/"), 1
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_this_machine_is_reached_past_any_proxy(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as proxy,
        socket.create_server(("127.0.0.1", 0)) as service,
    ):
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.getsockname()[1]}")
        monkeypatch.delenv("no_proxy", raising=False)

        def call() -> None:
            with suppress(Exception):  # nobody answers: whom it calls is looked at
                WAYS[way](f"127.0.0.1:{service.getsockname()[1]}")

        thread = threading.Thread(target=call, daemon=True)
        thread.start()
        [called], *_ = select.select([proxy, service], [], [], HANG_SECONDS)
        assert called is service
        called.accept()[0].close()


def test_grpc_uses_the_same_proxy_as_http(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example.org:3128")
    monkeypatch.setenv("NO_PROXY", ".internal.example.org")
    assert proxy_options("a.example.org:1") == (
        ("grpc.http_proxy", "http://proxy.example.org:3128"),
    )
    monkeypatch.setenv("HTTPS_PROXY", "proxy.example.org:3128")
    assert proxy_options("a.example.org:1") == (  # gRPC would take it for a scheme
        ("grpc.http_proxy", "http://proxy.example.org:3128"),
    )
    past = (("grpc.enable_http_proxy", 0),)
    for place in ("a.internal.example.org:1", "localhost:1", "127.0.0.9:1", "[::1]:1"):
        assert proxy_options(place) == past
    for name in ("HTTPS_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name)
    assert proxy_options("a.example.org:1") == ()


@pytest.mark.parametrize(
    "proxy", ["http:/h", "https:h:1", "socks5:user:S3CRET@h:1", "http://h\udcff:1", "http://h x:1"]
)
def test_a_mistyped_proxy_gets_no_request(proxy: str) -> None:
    with pytest.raises(BadParameter, match="is not supported; use http://HOST:PORT") as refused:
        proxy_parts(proxy)
    assert "S3CRET" not in str(refused.value)
    assert proxy_parts("user:a:b@h:1\n").username == "user"


@pytest.mark.slow
def test_a_proxy_of_the_environment_is_used(tmp_path: Path) -> None:
    (tmp_path / "metrics.toml").write_text(CATALOG)
    code = (
        "import sys; from hubbub.client import Client;"
        "client = Client.from_bundle(sys.argv[1], state_dir=sys.argv[2], shuffler=sys.argv[3],"
        " hold_seconds=0); client.report('theme', 'dark'); client.close(900)"
    )
    bundle = make_bundle(tmp_path / "metrics.toml")
    (tmp_path / "app.hubbub").write_bytes(bundle.signed)
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        environment = {**os.environ, "https_proxy": f"http://127.0.0.1:{proxy.getsockname()[1]}"}
        command = [sys.executable, "-c", code, "app.hubbub", "state", "shuffler.example.org:443"]
        with subprocess.Popen(command, cwd=tmp_path, env=environment) as app:
            try:
                connection, _ = proxy.accept()
                with connection, connection.makefile("rb") as request_file:
                    assert (
                        request_file.readline() == b"CONNECT shuffler.example.org:443 HTTP/1.1\r\n"
                    )
            finally:
                app.kill()
