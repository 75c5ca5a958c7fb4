"""What the command says where a service says that it cannot answer, and where none is."""

import asyncio
import fcntl
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hubbub.aggregator.query import QueryEngine
from hubbub.aggregator.releases.releasing import Releases
from hubbub.aggregator.settings import HttpSettings, parse
from hubbub.aggregator.web.app import HttpServer
from hubbub.conservation import Window
from hubbub.errors import BadParameter, HubbubError, ServiceUnavailable, StoreUnavailable
from hubbub.installation.child_process import free_port
from hubbub.installation.running_endpoints import Endpoints, read_endpoints
from hubbub.notebook.http_client import Service
from hubbub.programs.http_calls import HttpCalls
from tests.conftest import CatalogFiles
from tests.support.commands import refusal_of
from tests.support.fakes import MemoryReleaseLog, MemoryStore
from tests.support.waiting import eventually_async

AWAY = "Redis at 127.0.0.1:9: it does not answer; start it"


class Away(MemoryStore):
    """A store whose Redis is away."""

    async def report_counts(self) -> Mapping[Window, Mapping[str, int]]:
        """Nothing: it raises."""
        raise StoreUnavailable(AWAY)


@pytest.mark.parametrize(
    ("home", "nobody"),
    [
        ("here", "nothing runs in here"),
        ("", "does not answer as hubbub does: "),
    ],
)
async def test_a_service_without_its_redis_is_not_called_absent(
    catalog_files: CatalogFiles, home: str, nobody: str
) -> None:
    address = f"127.0.0.1:{free_port()}"
    where = Endpoints(page=f"http://{address}", home=home)

    def error_text() -> str:
        with pytest.raises(HubbubError) as caught:
            where.connection.metrics()
        return str(caught.value)

    assert nobody in await asyncio.to_thread(error_text)
    query = QueryEngine(catalog_files.bundle, Away())
    server = HttpServer(
        HttpSettings(listen=address, rate=0.0),
        query,
        Releases(query.collected, MemoryReleaseLog()),
    )
    await server.start()

    async def away() -> bool:
        return await asyncio.to_thread(error_text) == AWAY

    await eventually_async(away)
    await server.stop(0)


@pytest.mark.parametrize(
    "words",
    [["query", "theme"], ["status"], ["release"], ["candidates", "list"], ["model", "churn"]],
)
@pytest.mark.parametrize(
    "old", [["--query", "aggregator:9"], ["--query=[::1]:9"], ["--tls", "tls"]]
)
def test_a_grpc_address_in_place_of_http_is_refused_with_the_right_one(
    words: list[str], old: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    errors = refusal_of(capsys, *words, *old)
    assert errors.count("\n") == 1
    assert "no longer exists: analysts query over HTTP; give --url https://HOST:PORT" in errors


def test_the_folder_of_an_earlier_version_is_read_only_while_it_runs(tmp_path: Path) -> None:
    of_before = {"query": "127.0.0.1:9", "tls": "tls", "page": "http://127.0.0.1:9/"}
    (tmp_path / "endpoints.json").write_text(json.dumps(of_before))
    with (tmp_path / "endpoints.json").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        endpoints = read_endpoints(tmp_path)
        with pytest.raises(ServiceUnavailable, match="hubbub up is starting or ending in"):
            endpoints.connection.metrics()
    assert (endpoints.page, endpoints.home) == ("http://127.0.0.1:9/", str(tmp_path))
    Endpoints(page="http://127.0.0.1:9/", development=True).write(tmp_path).close()
    with pytest.raises(ServiceUnavailable, match=r"nothing runs in .*: start it with: .* --dev"):
        read_endpoints(tmp_path)  # another installation may use the address now


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--query-listen", "127.0.0.1:9", "no longer exists: analysts query over HTTP"),
        ("--http-command", "hubbub {} --query HOST:9", "no longer exists: the page shows commands"),
    ],
)
def test_a_setting_of_grpc_is_refused_with_the_remedy(
    option: str,
    value: str,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("HUBBUB_REDIS_URL", "redis://127.0.0.1/0")
    words = ["--bundle", "b", "--keys", "k", "--insecure", option, value]
    with pytest.raises((SystemExit, BadParameter)) as caught:
        parse(words)
    assert message in capsys.readouterr().err + str(caught.value)


def test_pages_of_an_answer_that_changes_meanwhile_are_read_again() -> None:
    """The first page of the first reading is of 10 reports, all others of 11."""
    offsets: list[int] = []

    class Changing(Service):
        def ask(self, path: str, parameters: Any = None, body: Any = None, **more: Any) -> Any:
            del path, body, more
            offsets.append(parameters["first"])
            value = {"value": f"{parameters['first']}"}
            return {"reports": min(9 + len(offsets), 11), "total": 2, "values": [value]}

    whole = Changing("http://127.0.0.1:1", None, HttpCalls(1.0)).pages("/", {}, None, "values", 1)
    assert offsets == [0, 1, 0, 1]
    assert whole == {"reports": 11, "total": 2, "values": [{"value": "0"}, {"value": "1"}]}
