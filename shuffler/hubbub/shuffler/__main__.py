"""The shuffler's process: `python -m hubbub.shuffler`, which is what `hubbub shuffler` runs."""

import sys

from hubbub.serving import Server, channel, connect_redis, run_service, serve_until_signal
from hubbub.shuffler.intake import Intake
from hubbub.shuffler.mixer import Mixer
from hubbub.shuffler.pool import Pool
from hubbub.shuffler.service import LARGEST_SUBMIT_BYTES, OperatorService, ShufflerService
from hubbub.shuffler.settings import Settings, parse
from hubbub.shuffler.streams import read_stream_table
from hubbub.wire.v1.services_pb2_grpc import (
    add_OperatorServicer_to_server,
    add_ShufflerServicer_to_server,
)


async def _serve(settings: Settings) -> None:
    table = read_stream_table(settings.streams)
    pool = Pool(await connect_redis(settings.redis_url), settings.redis_url)
    onward = channel(settings.aggregator, tls=settings.tls)
    mixer = Mixer(pool, table, onward, reserve=settings.reserve, max_batch=settings.max_batch)
    intake = Intake(pool)
    devices = Server(
        settings.listen,
        [lambda s: add_ShufflerServicer_to_server(ShufflerService(table, intake, mixer), s)],
        tls=settings.tls,
        mutual=False,
        largest_message_bytes=LARGEST_SUBMIT_BYTES,
    )
    operators = Server(
        settings.operator_listen,
        [lambda s: add_OperatorServicer_to_server(OperatorService(pool), s)],
        tls=settings.tls,
        mutual=True,
    )
    try:
        await serve_until_signal([devices, operators], [intake.run(), mixer.run()])
    finally:
        await onward.close()


if __name__ == "__main__":
    sys.exit(run_service("shuffler", lambda: _serve(parse())))
