"""Tools that watch an app add the ids of its traces to requests: to none of the client's."""

import functools
import http.client
from pathlib import Path
from typing import Any

import grpc
import pytest

from hubbub.client import Client, transport_to
from hubbub.client.testing import FakeServer
from tests.support.bundles import Signed
from tests.support.http_shuffler import http_shuffler
from tests.support.waiting import HANG_SECONDS

TRACE = "sentry-trace"


def test_no_trace_of_another_tool_goes_with_reports_over_http(
    signed: Signed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sentry and Datadog add the ids of an app's traces, and what page a person is on."""
    begin = http.client.HTTPConnection.putrequest

    def traced(connection: Any, *arguments: Any, **more: Any) -> None:
        begin(connection, *arguments, **more)
        connection.putheader(TRACE, "9cf359b248404f12a2f1119af8b19f85")

    monkeypatch.setattr(http.client.HTTPConnection, "putrequest", traced)
    with http_shuffler() as server:
        client = Client.from_bundle(
            signed.path, state_dir=tmp_path / "state", shuffler=server.address, hold_seconds=None
        )
        client.report("theme", "dark")
        assert client.close(HANG_SECONDS)
        [head] = server.heads
    assert TRACE not in {name.lower() for name in head}


def test_no_tool_that_wraps_grpc_is_asked_for_a_channel(monkeypatch: pytest.MonkeyPatch) -> None:
    @functools.wraps(grpc.insecure_channel)
    def traced(*_arguments: Any, **_more: Any) -> None:
        pytest.fail("a channel with another tool's ids")

    monkeypatch.setattr(grpc, "insecure_channel", traced)
    with FakeServer() as server:
        transport = transport_to(server.address, roots=None, insecure=True, transport="grpc")
        assert not transport.submit([], HANG_SECONDS).results
        transport.close()
