"""The aggregator's process: `python -m hubbub.aggregator`, as `hubbub aggregator` runs it."""

import sys
from collections import Counter
from collections.abc import Coroutine
from typing import Any, Final

from hubbub.aggregator.housekeeping import Housekeeping
from hubbub.aggregator.ingest.intake import Intake
from hubbub.aggregator.ingest.opener import Opener
from hubbub.aggregator.ingest.window_room import Room
from hubbub.aggregator.metrics import BATCHES, OPENING_KEY_DAYS_LEFT, UNREADABLE_TOTALS
from hubbub.aggregator.publishing.publisher import (
    EpochPublisher,
    Folder,
    RedisDeliveryLog,
    Sink,
    Webhook,
)
from hubbub.aggregator.query import QueryEngine
from hubbub.aggregator.query.report_counts import Shuffler
from hubbub.aggregator.releases.release_log import RedisReleaseLog
from hubbub.aggregator.releases.releasing import Releases
from hubbub.aggregator.releases.service import ReleasesService
from hubbub.aggregator.service import IngestService, OperatorService, QueryService
from hubbub.aggregator.settings import Settings, parse
from hubbub.aggregator.store.redis import RedisStore
from hubbub.catalog import read_bundle, read_opening_keys
from hubbub.runtime import (
    CLOCK_APART_SECONDS,
    REDIS_MEMORY_RATIO,
    THROTTLED_CALLS,
    Clocks,
    Memory,
    Metrics,
    RedisServer,
    Server,
    Stages,
    connect_redis,
    run_service,
    serve_until_signal,
)
from hubbub.wire.v1.services_pb2_grpc import (
    add_IngestServicer_to_server,
    add_OperatorServicer_to_server,
    add_QueryServicer_to_server,
    add_ReleasesServicer_to_server,
)

# So soon a shuffler knows of an aggregator that was added.
_CONNECTION_SECONDS: Final = 60.0
# A batch may be of 64 MiB; a shuffler gives up its call after as much.
_BATCH_SECONDS: Final = 60.0


async def _serve(settings: Settings) -> None:
    tls = settings.common.tls
    bundle = read_bundle(settings.bundle)
    keys = read_opening_keys(settings.keys)
    server = await connect_redis(settings.common.redis_url, settings.common.redis_replicas)
    store = RedisStore(server, settings.shards)
    await store.check()
    clocks = Clocks(beside=server.times)
    memory = Memory(server)
    for one in (clocks, memory):
        await one.look()
    opener = Opener(keys, settings.processes)
    stages = Stages()
    intake = Intake(
        bundle, opener, store, stages, clocks=clocks, room=Room(store, settings.max_window)
    )
    upstream = Shuffler(settings.shuffler_status, tls) if settings.shuffler_status else None
    query = QueryEngine(bundle, store, upstream, stages=stages, clocks=clocks)
    releases = Releases(query.collected, RedisReleaseLog(server))
    turned_away: Counter[str] = Counter()
    loops = _loops(settings, query, releases, server, turned_away)
    keeping = Housekeeping(
        settings.keys, bundle, opener, store=store, clocks=clocks, served=intake.served
    )
    servers = [
        _for_shufflers(settings, intake, turned_away),
        _for_people(settings, query, store, releases, turned_away),
    ]
    metrics = Metrics(
        store.report_counts,
        counters={
            BATCHES: intake.counts,
            THROTTLED_CALLS: turned_away,
        },
        gauges={
            OPENING_KEY_DAYS_LEFT: lambda: keeping.days_left,
            REDIS_MEMORY_RATIO: lambda: memory.ratio,
            CLOCK_APART_SECONDS: lambda: clocks.apart_seconds,
            UNREADABLE_TOTALS: lambda: len(store.unreadable),
        },
        stages=stages,
    )
    metrics.serve(settings.common.metrics_listen, tls)
    try:
        watching = [clocks.run(), memory.run(), keeping.run()]
        await serve_until_signal(servers, [*watching, *loops])
    finally:
        opener.close()
        if upstream:
            await upstream.close()


def _for_shufflers(settings: Settings, intake: Intake, turned_away: Counter[str]) -> Server:
    return Server(
        settings.listen,
        [lambda server: add_IngestServicer_to_server(IngestService(intake), server)],
        tls=settings.common.tls,
        callers=("shuffler",),
        connection_seconds=_CONNECTION_SECONDS,
        arrive_seconds=_BATCH_SECONDS,
        turned_away=turned_away,
    )


def _for_people(
    settings: Settings,
    query: QueryEngine,
    store: RedisStore,
    releases: Releases,
    turned_away: Counter[str],
) -> Server:
    return Server(
        settings.query_listen,
        [
            lambda server: add_QueryServicer_to_server(QueryService(query), server),
            lambda server: add_OperatorServicer_to_server(OperatorService(store), server),
            lambda server: add_ReleasesServicer_to_server(ReleasesService(releases), server),
        ],
        tls=settings.common.tls,
        callers=("analyst",),
        turned_away=turned_away,
    )


def _loops(
    settings: Settings,
    query: QueryEngine,
    releases: Releases,
    server: RedisServer,
    turned_away: Counter[str],
) -> list[Coroutine[Any, Any, None]]:
    """What runs beside the gRPC servers, if it is asked for."""
    loops: list[Coroutine[Any, Any, None]] = []
    if settings.http_listen:
        from hubbub.aggregator.web.server import HttpServer  # noqa: PLC0415 a web framework

        face = HttpServer(
            settings.http_listen,
            query,
            releases,
            tls=settings.http_tls,
            tokens=settings.http_tokens,
            rate=settings.http_rate,
            origins=settings.http_origins,
            proxies=settings.http_proxies,
            turned_away=turned_away,
        )
        loops.append(face.run())
    sinks: list[Sink] = []
    if settings.export_dir:
        sinks.append(Folder(settings.export_dir))
    if settings.webhook:
        sinks.append(Webhook(settings.webhook, settings.webhook_secret, RedisDeliveryLog(server)))
    if sinks:
        loops.append(EpochPublisher(query, sinks).run())
    return loops


if __name__ == "__main__":
    sys.exit(run_service("aggregator", parse, _serve))
