"""The issuer's process: `python -m hubbub.issuer`, which is what `hubbub issuer` runs."""

import sys
import time
from collections import Counter

import uvloop

from hubbub.issuer.accounts import Accounts
from hubbub.issuer.issuing import (
    ISSUED_TOKENS,
    TOKEN_REQUESTS,
    Subjects,
    TokensApp,
    read_issued_streams,
)
from hubbub.issuer.settings import Settings, parse
from hubbub.programs.issuer_key_file import read_token_key
from hubbub.runtime.http.server import public_door
from hubbub.runtime.monitoring.metric_declaration import RELOADS
from hubbub.runtime.monitoring.metrics import Metrics
from hubbub.runtime.monitoring.stages_and_traces import Stages
from hubbub.runtime.oidc_tokens import ProviderKeys
from hubbub.runtime.process import run_service, serve_until_signal
from hubbub.runtime.redis.client import connect_redis
from hubbub.runtime.redis.command_sender import Memory
from hubbub.runtime.reloading import Reloader, Take
from hubbub.runtime.rpc.rate_limiter import Limiter


async def _serve(settings: Settings) -> None:
    streams, key = read_issued_streams(settings.streams), read_token_key(settings.token_key)
    accounts = Accounts(settings.accounts)
    server = await connect_redis(settings.common.redis_url, settings.common.redis_replicas)
    limiter = Limiter(settings.peer_rate, settings.peer_burst)
    subjects = None
    if settings.provider:
        keys = ProviderKeys(settings.provider, settings.provider_roots, time.time)
        subjects = Subjects(settings.provider, keys, settings.audiences)
    app = TokensApp(streams, accounts, server, key, limiter=limiter, subjects=subjects)
    tls, proxies = settings.common.tls, settings.proxies
    door = public_door(settings.listen, app, tls=tls, proxies=proxies)
    reloads: Counter[str] = Counter(taken=0, refused=0)
    files = [path for path in (settings.streams, settings.accounts) if path]

    def read() -> Take:
        newer, newer_accounts = read_issued_streams(settings.streams), Accounts(settings.accounts)

        def take() -> dict[str, int]:
            app.use(newer, newer_accounts)
            return {"streams": len(newer.streams)}

        return take

    reloader = Reloader(lambda: files, read, reloads)
    counters = {RELOADS: reloads, TOKEN_REQUESTS: app.counts, ISSUED_TOKENS: app.tokens}
    doors = [door, Metrics(None, counters, {}, Stages()).door(settings.metrics_listen, None)]
    facts = {"devices": settings.listen, "streams": len(streams.streams)}
    await serve_until_signal(doors, [reloader.run, Memory(server).run], facts, reloader.reload)


if __name__ == "__main__":
    sys.exit(run_service("issuer", parse, _serve, lambda _: uvloop.new_event_loop))
