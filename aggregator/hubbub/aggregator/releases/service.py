"""Releases over gRPC."""

from dataclasses import asdict

from hubbub.aggregator.access.grpc_door import Context, GrpcDoor
from hubbub.aggregator.query import QueryEngine
from hubbub.aggregator.releases.releasing import ReleaseQuery, Releases
from hubbub.wire.v1.services_pb2 import (
    ListReleasesRequest,
    ListReleasesResponse,
    PurposeBudget,
    ReleasedValue,
    ReleaseRecord,
    ReleaseRequest,
    ReleaseResponse,
)
from hubbub.wire.v1.services_pb2_grpc import ReleasesServicer


class ReleasesService(ReleasesServicer):
    """Makes releases, and tells what was released."""

    def __init__(self, releases: Releases, query: QueryEngine, door: GrpcDoor) -> None:
        self._releases = releases
        self._query = query
        self._door = door

    async def Release(self, request: ReleaseRequest, context: Context) -> ReleaseResponse:
        """One release; asked twice, the same answer."""
        async with self._door.answering(context, request) as caller:
            caller.check("publisher", request.metric)
            releases = self._releases.seen_by(caller, self._query.seen_by(caller).collected)
            ask = ReleaseQuery(
                metric=request.metric,
                query=request.query,
                value=request.value,
                epochs=tuple(request.epochs),
                purpose=request.purpose,
                by=request.by,
                dates=request.dates,
            )
            made = await releases.release(ask)
        return ReleaseResponse(
            record=ReleaseRecord(**self._releases.dated(made.entry)),
            values=[ReleasedValue(**asdict(value)) for value in made.entry.answer],
            again=made.again,
            epsilon_left=made.budget_left.epsilon_left,
            delta_left=made.budget_left.delta_left,
        )

    async def ListReleases(
        self, request: ListReleasesRequest, context: Context
    ) -> ListReleasesResponse:
        """The releases that the caller sees, without answers, and what every purpose has left."""
        async with self._door.answering(context, request) as caller:
            caller.check("publisher")
            releases = self._releases.seen_by(caller, self._query.seen_by(caller).collected)
            entries, purposes = await releases.record()
        return ListReleasesResponse(
            records=[ReleaseRecord(**self._releases.dated(entry)) for entry in entries],
            purposes=[PurposeBudget(**asdict(one)) for one in purposes],
            unreadable=entries.unreadable,
        )
