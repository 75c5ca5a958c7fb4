"""The relay's process: `python -m hubbub.relay`, which is what `hubbub relay` runs."""

import logging
import sys

import httpx2
import uvloop

from hubbub.errors.tls_authorities import trusting_file
from hubbub.relay.forwarding import RELAYED_REQUESTS, RelayApp
from hubbub.relay.settings import Settings, parse
from hubbub.runtime.http.server import public_door
from hubbub.runtime.monitoring.metrics import Metrics
from hubbub.runtime.monitoring.stages_and_traces import Stages
from hubbub.runtime.process import run_service, serve_until_signal
from hubbub.runtime.rpc.rate_limiter import Limiter


async def _serve(settings: Settings) -> None:
    # PRIVACY: it would log each request, and so its time.
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    # Ignores proxies of the environment and redirects, which would send requests elsewhere.
    trust = trusting_file(settings.roots)
    async with httpx2.AsyncClient(verify=trust, timeout=None, trust_env=False) as client:
        limiter = Limiter(settings.peer_rate, settings.peer_burst)
        app = RelayApp(settings.gateway, client, limiter)
        tls, proxies = settings.common.tls, settings.proxies
        door = public_door(settings.listen, app, tls=tls, proxies=proxies)
        metrics = Metrics(None, {RELAYED_REQUESTS: app.counts}, {}, Stages())
        doors = [door, metrics.door(settings.metrics_listen, None)]
        facts = {"devices": settings.listen, "gateway": settings.gateway}
        await serve_until_signal(doors, [], facts)


if __name__ == "__main__":
    sys.exit(run_service("relay", parse, _serve, lambda _: uvloop.new_event_loop))
