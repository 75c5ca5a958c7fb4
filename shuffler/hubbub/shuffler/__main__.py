"""The shuffler's process: `python -m hubbub.shuffler`, which is what `hubbub shuffler` runs."""

import asyncio
import hashlib
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import uvloop

from hubbub.programs.issuer_key_file import read_token_key
from hubbub.runtime.clocks import Clocks
from hubbub.runtime.http.connection_limit import OpenConnections
from hubbub.runtime.http.server import HttpDoor
from hubbub.runtime.monitoring.metric_declaration import (
    CLOCK_APART_SECONDS,
    REDIS_MEMORY_RATIO,
    RELOADS,
    THROTTLED_CALLS,
)
from hubbub.runtime.monitoring.metrics import Metrics
from hubbub.runtime.monitoring.stages_and_traces import Stages
from hubbub.runtime.process import certificates_until, day_of, run_service, serve_until_signal
from hubbub.runtime.redis.client import connect_redis
from hubbub.runtime.reloading import Reloader, Take
from hubbub.runtime.rpc.rate_limiter import Limiter
from hubbub.runtime.rpc.server import Server, channel
from hubbub.runtime.tls import TlsFolder
from hubbub.shuffler import prometheus_metrics
from hubbub.shuffler.admission import (
    LARGEST_SUBMIT_BYTES,
    MAX_SUBMIT_FIELDS,
    Admission,
    Backpressure,
)
from hubbub.shuffler.group_commit import Intake
from hubbub.shuffler.grpc_door import OperatorService, ShownCounts, ShufflerService
from hubbub.shuffler.http_door import OhttpGateway, ReportsApp, read_gateway_keys
from hubbub.shuffler.mixer import Mixer
from hubbub.shuffler.mixing_policy import Policy
from hubbub.shuffler.pool import Pool
from hubbub.shuffler.public_files import BundleFile, SignedFiles, read_signed
from hubbub.shuffler.settings import Settings, limited, parse
from hubbub.shuffler.stream_table import StreamTable, read_stream_table
from hubbub.shuffler.token_checks import Redeemer, refuse_untaken

if TYPE_CHECKING:
    import grpc.aio

# A device needs a connection for seconds; an attacker who holds one must reconnect.
_CONNECTION_SECONDS: Final = 300.0
# Over HTTP, at about 50 KB each: above this number the longest idle one is closed.
_CONNECTIONS: Final = 4096
# Over gRPC, where none is closed: ten thousand idle ones leave room for others.
_GRPC_CONNECTIONS: Final = 16_384
# Operators' requests have no fields.
_LARGEST_QUESTION_BYTES: Final = 16 << 10
# A running delivery over a former connection ends earlier.
_FORMER_SECONDS: Final = 90.0


class _Service:
    """The parts of a running shuffler, and what a reload changes of them."""

    def __init__(self, settings: Settings, table: StreamTable, pool: Pool, clocks: Clocks) -> None:
        """Builds the parts, which do nothing before `run`. Raises HubbubError."""
        self._settings, self._table, self._clocks = settings, table, clocks
        self._stages = Stages()
        self._channels, self._closing = _open_channels(settings), set[asyncio.Task[None]]()
        policy = Policy(
            reserve=settings.reserve,
            spread=settings.reserve_spread,
            delay_seconds=settings.delay,
            max_batch=settings.max_batch,
        )
        channels, stages = self._channels, self._stages
        self._mixer = Mixer(pool, table, channels, policy, stages=stages, clocks=clocks)
        self._pressure = Backpressure(
            pool,
            max_reports=settings.max_pool,
            max_memory=settings.max_memory,
            sizes=table.sizes,
        )
        self._intake = Intake(pool, self._stages)
        self._limiter = Limiter(settings.peer_rate, settings.peer_burst)
        path = settings.token_key
        self._redeemer = Redeemer(read_token_key(path)) if path and path.exists() else None
        refuse_untaken(table, self._redeemer)
        self._admission = Admission(
            table,
            self._intake,
            self._mixer,
            limiter=self._limiter,
            pressure=self._pressure,
            clocks=clocks,
            redeemer=self._redeemer,
        )
        self._signed = read_signed(settings.notice, settings.models)
        self._admission.use(table, self._signed)
        development = settings.common.development
        self._counts = ShownCounts(pool, lambda: self._admission.streams, development=development)
        self._reloads: Counter[str] = Counter(taken=0, refused=0)
        self._for_devices, self._for_operators = self._grpc_doors()
        self._http_door = self._http() if settings.http.listen else None
        self._metrics = self._metrics_door()

    async def run(self) -> None:
        """Serves until a signal."""
        settings = self._settings
        doors = [self._for_devices, self._for_operators, self._http_door, self._metrics]
        reloader = Reloader(self._files, self._load, self._reloads)
        loops = [self._clocks.run, self._intake.run, self._mixer.run, self._mixer.heartbeat]
        try:
            await serve_until_signal(
                [door for door in doors if door],
                [*loops, self._pressure.run, reloader.run, self._for_devices.end_floods],
                _start_fields(settings, self._table, self._signed),
                reloader.reload,
            )
        finally:
            for channel in self._channels:
                await channel.close()

    def _grpc_doors(self) -> tuple[Server, Server]:
        settings, service = self._settings, ShufflerService(self._admission)
        for_devices = Server(
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
            refusals=self._admission.refusals,
            spoiled=service.spoiled,
            trailers=service.trailers,
        )
        for_operators = Server(
            settings.operator_listen,
            {"Operator": OperatorService(self._counts, settings.reserve)},
            tls=settings.common.tls,
            callers=("analyst", "aggregator"),
            largest_message_bytes=_LARGEST_QUESTION_BYTES,
            refusals=self._admission.refusals,
        )
        return for_devices, for_operators

    def _http(self) -> HttpDoor:
        settings = self._settings.http
        connections = OpenConnections(
            settings.proxies,
            self._admission.refusals,
            most=_CONNECTIONS,
            max_per_address=self._settings.peer_calls,
            relays=settings.relays,
        )
        keys = read_gateway_keys(settings.gateway_key) if settings.gateway_key else []
        gateway = OhttpGateway(keys, settings.relays) if keys else None
        bundle = BundleFile(settings.bundle) if settings.bundle else None
        return HttpDoor(
            settings.listen,
            ReportsApp(self._admission, connections, bundle, gateway),
            tls=settings.tls,
            connections=connections,
            header_proxies=settings.header_proxies,
            shared=settings.shared,
        )

    def _metrics_door(self) -> HttpDoor:
        metrics = Metrics(
            self._counts.windows,
            counters={
                RELOADS: self._reloads,
                prometheus_metrics.SUBMITTED_REPORTS: self._admission.counts,
                THROTTLED_CALLS: self._admission.refusals,
                prometheus_metrics.BATCHES: self._mixer.counts,
            },
            gauges={
                prometheus_metrics.UNWRITTEN_REPORTS: lambda: self._intake.waiting,
                prometheus_metrics.BATCHES_UNDER_WAY: lambda: self._mixer.under_way,
                prometheus_metrics.PEERS: lambda: len(self._limiter),
                CLOCK_APART_SECONDS: lambda: self._clocks.apart_seconds,
                prometheus_metrics.POOL_REPORTS: lambda: self._pressure.reports,
                prometheus_metrics.POOL_REPORTS_LIMIT: lambda: self._pressure.max_reports,
                REDIS_MEMORY_RATIO: lambda: self._pressure.memory,
                prometheus_metrics.GRPC_CONNECTIONS: self._for_devices.connections,
                prometheus_metrics.GRPC_CONNECTIONS_LIMIT: lambda: _GRPC_CONNECTIONS,
            },
            stages=self._stages,
            date_of=self._table.date_of,
            certificates=_folders(self._settings),
        )
        return metrics.door(self._settings.metrics_listen, self._settings.common.tls)

    def _files(self) -> list[Path]:
        """The files to watch for changes."""
        settings = self._settings
        tls = [path for folder in _folders(settings) for path in folder.files]
        optional = (settings.limits, settings.notice, settings.models)
        return [settings.streams, *tls, *filter(None, optional)]

    def _load(self) -> Take:
        """Reads and checks all files, for the Reloader."""
        table, limits = _read_table(self._settings), limited(self._settings)
        table.check_follows(self._table)
        refuse_untaken(table, self._redeemer)
        signed = read_signed(limits.notice, limits.models)
        for folder in _folders(limits):
            folder.server_context(mutual=folder is limits.common.tls)  # raises if they do not fit

        def take() -> Mapping[str, Any]:
            self._take(limits, table, signed)
            return _describe(limits, table, signed)

        return take

    def _take(self, limits: Settings, table: StreamTable, signed: SignedFiles) -> None:
        if tls := limits.common.tls:
            former, self._channels = self._channels, _open_channels(limits)
            self._for_devices.renew(tls)
            self._for_operators.renew(tls)
            self._metrics.renew()
            for client in former:
                closing = asyncio.create_task(client.close(_FORMER_SECONDS))
                self._closing.add(closing)
                closing.add_done_callback(self._closing.discard)
        self._table = table
        self._mixer.use(table, self._channels)
        self._admission.use(table, signed)
        self._pressure.use(limits.max_pool, limits.max_memory, table.sizes)
        self._limiter.allow(limits.peer_rate, limits.peer_burst)
        self._for_devices.calls.of_peer = limits.peer_calls
        if self._http_door:
            self._http_door.renew()
            self._http_door.connections.max_per_address = limits.peer_calls


def _read_table(settings: Settings) -> StreamTable:
    table = read_stream_table(settings.streams)
    table.refuse_elsewhere(development=settings.common.development, path=settings.streams)
    return table


def _folders(settings: Settings) -> list[TlsFolder]:
    tls_folders = settings.common.tls, settings.http.tls if settings.http.listen else None
    return list(dict.fromkeys(folder for folder in tls_folders if folder))


def _open_channels(settings: Settings) -> "list[grpc.aio.Channel]":
    """Opens a channel to every aggregator. Raises KeysUnusable."""
    tls = settings.common.tls
    return [channel(address, "aggregator", tls=tls) for address in settings.aggregators]


def _start_fields(settings: Settings, table: StreamTable, signed: SignedFiles) -> dict[str, Any]:
    return {
        "devices": settings.listen,
        "http": settings.http.listen or "off",
        "operators": settings.operator_listen,
        "metrics": settings.metrics_listen,
        "aggregators": list(settings.aggregators),
        **_describe(settings, table, signed),
    }


def _describe(settings: Settings, table: StreamTable, signed: SignedFiles) -> dict[str, Any]:
    """Facts about the streams, keys and signed files in use, for the log."""
    return {
        "streams": len(table.streams),
        "keys_until": day_of(table.keys_until) if table.keys else "none",
        "certificates_until": certificates_until(_folders(settings)),
        # Fields that only devices read.
        "notice": _digest(signed.notice),
        "models": _digest(signed.models),
    }


def _digest(signed: bytes) -> str:
    return hashlib.sha256(signed).hexdigest()[:8] if signed else "none"


async def _serve(settings: Settings) -> None:
    settings = limited(settings)
    table = _read_table(settings)
    server = await connect_redis(settings.common.redis_url, settings.common.redis_replicas)
    pool, clocks = Pool(server, settings.shards), Clocks(beside=server.times)
    await pool.check()
    await clocks.look()
    await _Service(settings, table, pool, clocks).run()


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
