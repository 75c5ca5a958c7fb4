"""What the command says where a service says that it cannot answer, and where none is."""

import asyncio
from collections.abc import Mapping

import pytest

from hubbub.aggregator.query import QueryEngine
from hubbub.aggregator.releases.releasing import Releases
from hubbub.aggregator.web.server import HttpServer
from hubbub.cli.local.ports import free_port
from hubbub.cli.main import main
from hubbub.cli.terminal.service_client import Endpoints
from hubbub.conservation import Window
from hubbub.errors import HubbubError, StoreUnavailable
from hubbub.runtime.process import end_tasks
from tests.conftest import Made
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
def test_a_service_without_its_redis_is_not_taken_for_none(
    made: Made, home: str, nobody: str
) -> None:
    address = f"127.0.0.1:{free_port()}"
    where = Endpoints(page=f"http://{address}", home=home)

    def said() -> str:
        with pytest.raises(HubbubError) as caught:
            where.connection.metrics()
        return str(caught.value)

    async def body() -> None:
        assert nobody in await asyncio.to_thread(said)
        query = QueryEngine(made.bundle, Away())
        server = HttpServer(address, query, Releases(query.collected, MemoryReleaseLog()))
        serving = asyncio.create_task(server.run())

        async def away() -> bool:
            return await asyncio.to_thread(said) == AWAY

        await eventually_async(away)
        await end_tasks([serving])

    asyncio.run(body())


@pytest.mark.parametrize(
    "words",
    [["query", "theme"], ["status"], ["release"], ["candidates", "list"], ["model", "churn"]],
)
@pytest.mark.parametrize(
    "old", [["--query", "aggregator:7072"], ["--query=[::1]:7072"], ["--tls", "tls"]]
)
def test_an_address_of_grpc_is_answered_by_one_line_that_says_what_to_write(
    words: list[str], old: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, *old]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "is gone: analysts ask over HTTP; give --url https://HOST:PORT" in said
