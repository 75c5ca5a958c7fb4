"""The aggregator's process: `python -m hubbub.aggregator`, as `hubbub aggregator` runs it."""

import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hubbub.aggregator.access.audit_trail import AuditTrail
from hubbub.aggregator.access.callers import Access, access_of
from hubbub.aggregator.access.sessions import EndedSessions
from hubbub.aggregator.housekeeping import Housekeeping
from hubbub.aggregator.ingest.arrivals import Arrivals
from hubbub.aggregator.ingest.intake import Intake
from hubbub.aggregator.ingest.opener import Opener
from hubbub.aggregator.ingest.window_room import Room
from hubbub.aggregator.learning.learner import ModelLearner
from hubbub.aggregator.metrics import BATCHES, OPENING_KEY_DAYS_LEFT, UNREADABLE_TOTALS
from hubbub.aggregator.object_storage import Place
from hubbub.aggregator.publishing.answer_refresher import EstimateKeeper
from hubbub.aggregator.publishing.estimates_table import EstimatesTable
from hubbub.aggregator.publishing.otlp import collector
from hubbub.aggregator.publishing.publisher import (
    AlertPublisher,
    DeliveryLog,
    EpochPublisher,
    Folder,
    Sink,
    webhook,
)
from hubbub.aggregator.publishing.totals_writer import TotalsWriter
from hubbub.aggregator.query import QueryEngine
from hubbub.aggregator.query.answer_store import AnswerStore
from hubbub.aggregator.query.report_counts import Shuffler
from hubbub.aggregator.releases.release_log import ReleaseLog
from hubbub.aggregator.releases.releasing import Releases
from hubbub.aggregator.reload import (
    Parts,
    access_file,
    bundle_of,
    check_fits,
    describe,
    files,
    reading,
)
from hubbub.aggregator.retention import Retention
from hubbub.aggregator.service import IngestService
from hubbub.aggregator.settings import Settings, limited, parse
from hubbub.aggregator.store.contract import DeletableTotals
from hubbub.aggregator.store.files import LISTED_SECONDS, FileTotals
from hubbub.aggregator.store.redis import RedisStore
from hubbub.aggregator.store.redis_and_files import FiledStore
from hubbub.bundles import Bundle
from hubbub.errors.development_messages import NOTICES
from hubbub.keys.opening_keys import read_opening_keys
from hubbub.runtime.clocks import Clocks
from hubbub.runtime.monitoring.declaration import (
    CLOCK_APART_SECONDS,
    REDIS_MEMORY_RATIO,
    RELOADS,
    THROTTLED_CALLS,
    MetricDeclaration,
)
from hubbub.runtime.monitoring.metrics import Metrics
from hubbub.runtime.monitoring.stages import Stages
from hubbub.runtime.process import Loop, run_service, serve_until_signal
from hubbub.runtime.redis.client import connect_redis
from hubbub.runtime.redis.command_lists import Memory, RedisServer
from hubbub.runtime.reloading import Reloader
from hubbub.runtime.rpc.server import Server

if TYPE_CHECKING:
    from hubbub.aggregator.web.server import HttpServer
    from hubbub.runtime.process import Serves

# After this time a shuffler reconnects, and so finds an added aggregator.
_CONNECTION_SECONDS: Final = 60.0
# A batch may be of 64 MiB; a shuffler gives up its call after as much.
_BATCH_SECONDS: Final = 60.0


def _opener(settings: Settings, bundle: Bundle, clocks: Clocks) -> Opener:
    keys = read_opening_keys(settings.keys)
    check_fits(bundle, keys, clocks.now(), settings.keys)
    return Opener(keys, settings.processes)


async def _serve(settings: Settings) -> None:
    settings, tls = limited(settings), settings.common.tls
    bundle = bundle_of(settings)
    server, store, clocks, memory = await _redis(settings)
    opener = _opener(settings, bundle, clocks)
    stages, room = Stages(), Room(store, settings.max_window)
    # PRIVACY: no single report of production is stored.
    arrivals = Arrivals() if settings.common.development else None
    intake = Intake(bundle, opener, store, stages, clocks=clocks, room=room, arrivals=arrivals)
    upstream = Shuffler(settings.shuffler_status, tls) if settings.shuffler_status else None
    totals, totals_files = _totals(settings, store, lambda: query.collected.bundle)
    query = QueryEngine(
        bundle, totals, upstream, stages=stages, clocks=clocks, server=server, arrivals=arrivals
    )
    refusals, reloads = Counter[str](), Counter[str](taken=0, refused=0)
    access = access_of(settings.http.tokens, access_file(settings), EndedSessions(server))
    http = _http(settings, query, server, access, refusals=refusals)
    loops = _outlets(settings, query, server, intake.changed)
    if totals_files:
        days = settings.outlets.redis_days
        loops.append(TotalsWriter(query.collected, store, totals_files, days).run)
    keeping = Housekeeping(
        settings.keys, bundle, opener, store=store, clocks=clocks, served=intake.served
    )
    shufflers = _for_shufflers(settings, intake, refusals)
    metrics = Metrics(
        totals.report_counts,
        counters={BATCHES: intake.counts, THROTTLED_CALLS: refusals, RELOADS: reloads},
        gauges=_gauges(keeping, memory, clocks, store),
        stages=stages,
        date_of=query.collected.date_of,
        certificates=[tls, settings.http.tls],
    ).door(settings.metrics_listen, tls)
    retention = Retention(bundle, totals, server, clocks, changed=intake.changed)
    parts = Parts(
        bundle=bundle,
        intake=intake,
        opener=opener,
        room=room,
        query=query,
        keeping=keeping,
        retention=retention,
        clocks=clocks,
        shufflers=shufflers,
        metrics=metrics,
        upstream=upstream,
        http=http,
        access=access,
    )
    reloader = Reloader(lambda: files(settings), reading(settings, parts), reloads)
    loops.append(ModelLearner(lambda: parts.bundle, totals, query.rounds, clocks).run)
    try:
        loops += [clocks.run, memory.run, keeping.run, reloader.run, retention.run]
        faces: list[Serves] = [shufflers, *([http] if http else []), metrics]
        await serve_until_signal(faces, loops, _start_fields(settings, bundle), reloader.reload)
    finally:
        opener.close()
        if upstream:
            await upstream.close()


def _totals(
    settings: Settings, store: RedisStore, bundle: Callable[[], Bundle]
) -> tuple[DeletableTotals, FileTotals | None]:
    """The totals for queries, and their files if the settings request any."""
    if not settings.outlets.totals:
        return store, None
    files = FileTotals(Place.at(settings.outlets.totals), bundle, fresh_seconds=LISTED_SECONDS)
    return FiledStore(store, files), files


async def _redis(settings: Settings) -> tuple[RedisServer, RedisStore, Clocks, Memory]:
    """Redis, the totals in it, and monitors of its clock and memory, once all have answered."""
    server = await connect_redis(settings.common.redis_url, settings.common.redis_replicas)
    store, clocks, memory = (
        RedisStore(server, settings.shards),
        Clocks(beside=server.times),
        Memory(server),
    )
    await store.check()
    await clocks.look()
    await memory.look()
    return server, store, clocks, memory


def _gauges(
    keeping: Housekeeping, memory: Memory, clocks: Clocks, store: RedisStore
) -> dict[MetricDeclaration, Callable[[], float]]:
    return {
        OPENING_KEY_DAYS_LEFT: lambda: keeping.days_left,
        REDIS_MEMORY_RATIO: lambda: memory.ratio,
        CLOCK_APART_SECONDS: lambda: clocks.apart_seconds,
        UNREADABLE_TOTALS: lambda: len(store.unreadable),
    }


def _start_fields(settings: Settings, bundle: Bundle) -> dict[str, Any]:
    """Fields of the log line at the start."""
    return {
        "shufflers": settings.listen,
        "http": settings.http.listen or "off",
        "metrics": settings.metrics_listen,
        "processes": settings.processes,
        **describe(settings, bundle),
    }


def _for_shufflers(settings: Settings, intake: Intake, refusals: Counter[str]) -> Server:
    return Server(
        settings.listen,
        {"Ingest": IngestService(intake)},
        tls=settings.common.tls,
        callers=("shuffler",),
        connection_seconds=_CONNECTION_SECONDS,
        arrive_seconds=_BATCH_SECONDS,
        refusals=refusals,
    )


def _http(
    settings: Settings,
    query: QueryEngine,
    server: RedisServer,
    access: Access,
    *,
    refusals: Counter[str],
) -> "HttpServer | None":
    """The HTTP server, if the settings request it."""
    if not settings.http.listen:
        return None
    from hubbub.aggregator.web.server import HttpServer  # noqa: PLC0415 a web framework

    audit = None
    if settings.http.audit:
        path = None if settings.http.audit == "-" else Path(settings.http.audit)
        audit = AuditTrail(path, lambda: set(query.collected.bundle.streams), time.time)
    return HttpServer(
        settings.http,
        query,
        Releases(query.collected, ReleaseLog(server)),
        access=access,
        audit=audit,
        refusals=refusals,
        notice=f"{NOTICES[settings.common.development]} {settings.http.notice}".strip(),
    )


def _outlets(
    settings: Settings, query: QueryEngine, server: RedisServer, changed: set[str]
) -> list[Loop]:
    """Loops that publish answers, if the settings request any."""
    loops: list[Loop] = []
    if settings.kept_epochs:
        answers = AnswerStore(server)
        loops.append(EstimateKeeper(query, answers, changed, settings.kept_epochs).run)
    sinks: list[Sink] = []
    if settings.export_dir:
        sinks.append(Folder(settings.export_dir))
    if settings.outlets.estimates:
        sinks.append(EstimatesTable(Place.at(settings.outlets.estimates), query.collected))
    if settings.outlets.otlp:
        sinks.append(collector(settings.outlets.otlp, DeliveryLog(server)))
    if settings.webhook:
        hook = webhook(settings.webhook, settings.webhook_secret, DeliveryLog(server))
        sinks.append(hook)
        loops.append(AlertPublisher(query, hook).run)
    if sinks:
        loops.append(EpochPublisher(query, sinks).run)
    return loops


if __name__ == "__main__":
    sys.exit(run_service("aggregator", parse, _serve))
