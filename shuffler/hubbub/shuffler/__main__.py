"""The shuffler's process: `python -m hubbub.shuffler`, which is what `hubbub shuffler` runs."""

import sys
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

import uvloop

from hubbub.runtime.clocks import Clocks
from hubbub.runtime.http.connections import OpenConnections
from hubbub.runtime.http.server import HttpDoor
from hubbub.runtime.monitoring.declaration import (
    CLOCK_APART_SECONDS,
    REDIS_MEMORY_RATIO,
    RELOADS,
    THROTTLED_CALLS,
    MetricDeclaration,
)
from hubbub.runtime.monitoring.metrics import Metrics
from hubbub.runtime.monitoring.stages import Stages
from hubbub.runtime.process import run_service, serve_until_signal
from hubbub.runtime.redis.client import connect_redis
from hubbub.runtime.reloading import Reloader
from hubbub.runtime.rpc.limiter import Limiter
from hubbub.runtime.rpc.server import Server
from hubbub.shuffler.admission import LARGEST_SUBMIT_BYTES, MAX_SUBMIT_FIELDS, Admission
from hubbub.shuffler.backpressure import Backpressure
from hubbub.shuffler.bundle_file import BundleFile
from hubbub.shuffler.grpc_door import OperatorService, ShufflerService
from hubbub.shuffler.http_door import ReportsApp
from hubbub.shuffler.intake import Intake
from hubbub.shuffler.metrics import (
    BATCHES,
    BATCHES_UNDER_WAY,
    GRPC_CONNECTIONS,
    GRPC_CONNECTIONS_LIMIT,
    PEERS,
    POOL_REPORTS,
    POOL_REPORTS_LIMIT,
    SUBMITTED_REPORTS,
    UNWRITTEN_REPORTS,
)
from hubbub.shuffler.mixer import Mixer
from hubbub.shuffler.mixing_policy import Policy
from hubbub.shuffler.ohttp_gateway import OhttpGateway, read_gateway_keys
from hubbub.shuffler.pool import Pool
from hubbub.shuffler.redeeming import Redeemer, refuse_untaken
from hubbub.shuffler.reload import (
    Parts,
    describe,
    files,
    folders,
    open_channels,
    reading,
)
from hubbub.shuffler.settings import Settings, limited, parse
from hubbub.shuffler.shown_counts import ShownCounts
from hubbub.shuffler.signed_files import SignedFiles, read_signed
from hubbub.shuffler.streams import StreamTable, read_stream_table
from hubbub.tokens import read_token_key

# A device needs a connection for seconds; an attacker who holds one must reconnect.
_CONNECTION_SECONDS: Final = 300.0
# Over HTTP, at about 50 KB each: above this number the longest idle one is closed.
_CONNECTIONS: Final = 4096
# Over gRPC, where none is closed: ten thousand idle ones leave room for others.
_GRPC_CONNECTIONS: Final = 16_384
# Operators' requests have no fields.
_LARGEST_QUESTION_BYTES: Final = 16 << 10


async def _serve(settings: Settings) -> None:
    settings = limited(settings)
    table = read_stream_table(settings.streams)
    table.refuse_elsewhere(development=settings.common.development, path=settings.streams)
    server = await connect_redis(settings.common.redis_url, settings.common.redis_replicas)
    pool, clocks = Pool(server, settings.shards), Clocks(beside=server.times)
    await pool.check()
    await clocks.look()
    onward = open_channels(settings)
    stages = Stages()
    mixer = Mixer(pool, table, onward, _policy(settings), stages=stages, clocks=clocks)
    intake, limiter = Intake(pool, stages), Limiter(settings.peer_rate, settings.peer_burst)
    pressure = _pressure(settings, pool, table)
    redeemer = _redeemer(settings, table)
    beside: Any = {"limiter": limiter, "pressure": pressure, "clocks": clocks, "redeemer": redeemer}
    admission = Admission(table, intake, mixer, **beside)
    admission.use(table, signed := read_signed(settings.notice, settings.models))
    for_devices = _for_devices(settings, admission)
    development = settings.common.development
    counts = ShownCounts(pool, lambda: admission.streams, development=development)
    for_operators = _for_operators(settings, admission, counts)
    http_door = _http_door(settings, admission) if settings.http.listen else None
    reloads: Counter[str] = Counter(taken=0, refused=0)
    counters = {
        RELOADS: reloads,
        SUBMITTED_REPORTS: admission.counts,
        THROTTLED_CALLS: admission.refusals,
        BATCHES: mixer.counts,
    }
    gauges = {
        **_gauges_of(pressure, intake, mixer, limiter, clocks),
        GRPC_CONNECTIONS: for_devices.connections,
        GRPC_CONNECTIONS_LIMIT: lambda: _GRPC_CONNECTIONS,
    }
    metrics = _metrics(settings, counts, table, stages, counters=counters, gauges=gauges)
    parts = Parts(
        table=table,
        channels=onward,
        mixer=mixer,
        admission=admission,
        pressure=pressure,
        limiter=limiter,
        for_devices=for_devices,
        for_operators=for_operators,
        http_door=http_door,
        metrics=metrics,
        redeemer=redeemer,
    )
    reloader = Reloader(lambda: files(settings), reading(settings, parts), reloads)
    try:
        await serve_until_signal(
            [door for door in (for_devices, for_operators, http_door) if door],
            [clocks.run, intake.run, mixer.run, mixer.heartbeat, pressure.run, reloader.run],
            _start_fields(settings, table, signed),
            reloader.reload,
        )
    finally:
        for channel in parts.channels:
            await channel.close()


def _redeemer(settings: Settings, table: StreamTable) -> Redeemer | None:
    path = settings.token_key
    redeemer = Redeemer(read_token_key(path)) if path and path.exists() else None
    refuse_untaken(table, redeemer)
    return redeemer


def _pressure(settings: Settings, pool: Pool, table: StreamTable) -> Backpressure:
    return Backpressure(
        pool,
        max_reports=settings.max_pool,
        max_memory=settings.max_memory,
        sizes=table.sizes,
    )


def _metrics(
    settings: Settings,
    counts: ShownCounts,
    table: StreamTable,
    stages: Stages,
    *,
    counters: Mapping[MetricDeclaration, Mapping[str, int]],
    gauges: Mapping[MetricDeclaration, Callable[[], float]],
) -> Metrics:
    metrics = Metrics(
        counts.windows,
        counters=counters,
        gauges=gauges,
        stages=stages,
        date_of=table.date_of,
        certificates=list(folders(settings)),
    )
    metrics.serve(settings.metrics_listen, settings.common.tls)
    return metrics


def _gauges_of(
    pressure: Backpressure, intake: Intake, mixer: Mixer, limiter: Limiter, clocks: Clocks
) -> dict[MetricDeclaration, Callable[[], float]]:
    return {
        UNWRITTEN_REPORTS: lambda: intake.waiting,
        BATCHES_UNDER_WAY: lambda: mixer.under_way,
        PEERS: lambda: len(limiter),
        CLOCK_APART_SECONDS: lambda: clocks.apart_seconds,
        POOL_REPORTS: lambda: pressure.reports,
        POOL_REPORTS_LIMIT: lambda: pressure.max_reports,
        REDIS_MEMORY_RATIO: lambda: pressure.memory,
    }


def _policy(settings: Settings) -> Policy:
    return Policy(
        reserve=settings.reserve,
        spread=settings.reserve_spread,
        delay_seconds=settings.delay,
        max_batch=settings.max_batch,
    )


def _start_fields(settings: Settings, table: StreamTable, signed: SignedFiles) -> dict[str, Any]:
    """The facts in the log line of the start."""
    return {
        "devices": settings.listen,
        "http": settings.http.listen or "off",
        "operators": settings.operator_listen,
        "metrics": settings.metrics_listen,
        "aggregators": list(settings.aggregators),
        **describe(settings, table, signed),
    }


def _for_devices(settings: Settings, admission: Admission) -> Server:
    service = ShufflerService(admission)
    return Server(
        settings.listen,
        {"Shuffler": service},
        tls=settings.common.tls,
        callers=None,
        largest_message_bytes=LARGEST_SUBMIT_BYTES,
        max_fields=MAX_SUBMIT_FIELDS,
        admit=service.admit,
        connection_seconds=_CONNECTION_SECONDS,
        calls_of_peer=settings.peer_calls,
        connections=_GRPC_CONNECTIONS,
        refusals=admission.refusals,
        spoiled=service.spoiled,
        trailers=service.trailers,
    )


def _http_door(settings: Settings, admission: Admission) -> HttpDoor:
    http_settings = settings.http
    connections = OpenConnections(
        http_settings.proxies,
        admission.refusals,
        most=_CONNECTIONS,
        of_address=settings.peer_calls,
        relays=http_settings.relays,
    )
    keys = read_gateway_keys(http_settings.gateway_key) if http_settings.gateway_key else []
    gateway = OhttpGateway(keys, http_settings.relays) if keys else None
    bundle = BundleFile(http_settings.bundle) if http_settings.bundle else None
    return HttpDoor(
        http_settings.listen,
        ReportsApp(admission, connections, bundle, gateway),
        tls=http_settings.tls,
        connections=connections,
        proxies=http_settings.proxies,
        header_proxies=http_settings.header_proxies,
        shared=http_settings.shared,
    )


def _for_operators(settings: Settings, admission: Admission, counts: ShownCounts) -> Server:
    return Server(
        settings.operator_listen,
        {"Operator": OperatorService(counts, settings.reserve)},
        tls=settings.common.tls,
        callers=("analyst", "aggregator"),
        largest_message_bytes=_LARGEST_QUESTION_BYTES,
        refusals=admission.refusals,
    )


if __name__ == "__main__":
    sys.exit(
        run_service(
            "shuffler",
            parse,
            _serve,
            # TLS on Python's own loop costs a third more, which a device pays over HTTP.
            lambda settings: uvloop.new_event_loop if settings.http.listen else None,
        )
    )
