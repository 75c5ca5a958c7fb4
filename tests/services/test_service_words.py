"""What the command says where a service says that it cannot answer, and where none is."""

import asyncio
from collections.abc import Mapping
from functools import partial

import pytest

from hubbub.aggregator.access.callers import Access
from hubbub.aggregator.access.grpc_door import GrpcDoor
from hubbub.aggregator.query import QueryEngine
from hubbub.aggregator.service import QueryService
from hubbub.cli.local.ports import free_port
from hubbub.cli.terminal.service_client import Endpoints, ask
from hubbub.conservation import Window
from hubbub.errors import ServiceUnavailable, StoreUnavailable
from hubbub.runtime.rpc.server import Server
from hubbub.wire.v1.services_pb2 import MetricsRequest
from hubbub.wire.v1.services_pb2_grpc import add_QueryServicer_to_server
from tests.conftest import Made
from tests.support.fakes import MemoryStore

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
        ("", "is asked with --tls FOLDER"),
    ],
)
def test_a_service_without_its_redis_is_not_taken_for_none(
    made: Made, home: str, nobody: str
) -> None:
    # Two addresses: gRPC remembers for a while that nothing answered at one.
    where, empty = (Endpoints(f"127.0.0.1:{free_port()}", home=home) for _ in range(2))
    service = QueryService(QueryEngine(made.bundle, Away()), GrpcDoor(Access(), secured=False))

    async def said(where: Endpoints) -> str:
        with pytest.raises(ServiceUnavailable) as caught:
            await asyncio.to_thread(ask, where, "Metrics", MetricsRequest())
        return str(caught.value)

    async def body() -> None:
        assert nobody in await said(empty)
        add = partial(add_QueryServicer_to_server, service)
        server = Server(where.query, [add], tls=None, callers=None)
        await server.start()
        assert await said(where) == AWAY
        await server.stop(0)

    asyncio.run(body())
