"""The shuffler's process: `python -m hubbub.shuffler`, which is what `hubbub shuffler` runs."""

import sys
from typing import Final

from hubbub.runtime import (
    CLOCK_APART_SECONDS,
    REDIS_MEMORY_RATIO,
    THROTTLED_CALLS,
    Clocks,
    Limiter,
    Metrics,
    Server,
    Serves,
    Stages,
    channel,
    connect_redis,
    run_service,
    serve_until_signal,
)
from hubbub.shuffler.admission import LARGEST_SUBMIT_BYTES, Admission
from hubbub.shuffler.backpressure import Backpressure
from hubbub.shuffler.grpc_door import OperatorService, ShufflerService
from hubbub.shuffler.intake import Intake
from hubbub.shuffler.metrics import (
    BATCHES,
    BATCHES_UNDER_WAY,
    PEERS,
    POOL_REPORTS,
    POOL_REPORTS_LIMIT,
    SUBMITTED_REPORTS,
    UNWRITTEN_REPORTS,
)
from hubbub.shuffler.mixer import Mixer
from hubbub.shuffler.mixing_policy import Policy
from hubbub.shuffler.pool import Pool
from hubbub.shuffler.settings import Settings, parse
from hubbub.shuffler.streams import read_stream_table
from hubbub.wire.v1.services_pb2_grpc import (
    add_OperatorServicer_to_server,
    add_ShufflerServicer_to_server,
)

# A device needs one for seconds; who holds one to do harm begins anew.
_CONNECTION_SECONDS: Final = 300.0


async def _serve(settings: Settings) -> None:
    tls = settings.common.tls
    table = read_stream_table(settings.streams)
    server = await connect_redis(settings.common.redis_url, settings.common.redis_replicas)
    pool, clocks = Pool(server), Clocks(beside=server.times)
    await clocks.look()
    onward = [channel(address, "aggregator", tls=tls) for address in settings.aggregators]
    policy = Policy(
        reserve=settings.reserve,
        spread=settings.reserve_spread,
        delay_seconds=settings.delay,
        max_batch=settings.max_batch,
    )
    stages = Stages()
    mixer = Mixer(pool, table, onward, policy, stages=stages, clocks=clocks)
    intake = Intake(pool, stages)
    limiter = Limiter(settings.peer_rate, settings.peer_burst)
    pressure = Backpressure(
        pool,
        max_reports=settings.max_pool,
        max_memory=settings.max_memory,
        sizes={name: stream.sealed_bytes for name, stream in table.streams.items()},
    )
    admission = Admission(table, intake, mixer, limiter=limiter, pressure=pressure, clocks=clocks)
    servers: list[Serves] = [
        _for_devices(settings, admission),
        _for_operators(settings, admission, pool),
    ]
    metrics = Metrics(
        pool.report_counts,
        counters={
            SUBMITTED_REPORTS: admission.counts,
            THROTTLED_CALLS: admission.turned_away,
            BATCHES: mixer.counts,
        },
        gauges={
            POOL_REPORTS: lambda: pressure.reports,
            POOL_REPORTS_LIMIT: lambda: settings.max_pool,
            UNWRITTEN_REPORTS: lambda: intake.waiting,
            BATCHES_UNDER_WAY: lambda: mixer.under_way,
            REDIS_MEMORY_RATIO: lambda: pressure.memory,
            PEERS: lambda: len(limiter),
            CLOCK_APART_SECONDS: lambda: clocks.apart_seconds,
        },
        stages=stages,
    )
    metrics.serve(settings.common.metrics_listen, tls)
    try:
        await serve_until_signal(
            servers,
            [clocks.run(), intake.run(), mixer.run(), mixer.heartbeat(), pressure.run()],
        )
    finally:
        for one in onward:
            await one.close()


def _for_devices(settings: Settings, admission: Admission) -> Server:
    service = ShufflerService(admission)
    return Server(
        settings.listen,
        [lambda server: add_ShufflerServicer_to_server(service, server)],
        tls=settings.common.tls,
        callers=None,
        largest_message_bytes=LARGEST_SUBMIT_BYTES,
        admit=service.admit,
        connection_seconds=_CONNECTION_SECONDS,
        calls_of_peer=settings.peer_calls,
        turned_away=admission.turned_away,
        spoiled=service.spoiled,
    )


def _for_operators(settings: Settings, admission: Admission, pool: Pool) -> Server:
    return Server(
        settings.operator_listen,
        [lambda server: add_OperatorServicer_to_server(OperatorService(pool), server)],
        tls=settings.common.tls,
        callers=("analyst", "aggregator"),
        turned_away=admission.turned_away,
    )


if __name__ == "__main__":
    sys.exit(run_service("shuffler", parse, _serve))
