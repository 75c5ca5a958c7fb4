"""Connects commands that read or change totals to the aggregator's Redis."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, TypeVar

from hubbub.bundles import Bundle, read_bundle
from hubbub.errors import BadParameter, ServiceUnavailable, StoreUnavailable
from hubbub.installation.embedded_redis import url_of
from hubbub.installation.keys_and_bundles import OPERATORS
from hubbub.installation.running_endpoints import HOME, nothing_runs
from hubbub.programs.option_parsing import option, options
from hubbub.runtime.redis.client import connect_redis
from hubbub.runtime.redis.command_sender import RedisServer
from hubbub.runtime.service_options import redis_url

_SETTING: Final = "HUBBUB_REDIS_URL"
EPILOG: Final = f"Without --home, {_SETTING} (if set) is the URL of the aggregator's Redis."

Result = TypeVar("Result")


@options
class RedisOptions:
    """Options that locate the aggregator's Redis and its bundle."""

    home: Path | None = option(f"folder of `hubbub up` ({HOME})")
    bundle: Path | None = option(
        f"bundle that defines the metrics ({OPERATORS}, of --home or here)"
    )


def in_totals_redis(
    options: RedisOptions, work: Callable[[RedisServer, Bundle], Awaitable[Result]]
) -> Result:
    """Calls `work` with the aggregator's Redis and the bundle; returns its result.

    Raises:
        ServiceUnavailable: there is neither a folder of `hubbub up` nor a URL, or nothing runs in
            the folder.
        StoreUnavailable: the URL's server does not answer.
        BundleRefused: the bundle is invalid.
    """
    home = options.home
    try:
        # Without --home, the environment's URL comes before the usual folder.
        url = None if home else redis_url(_SETTING)
    except BadParameter:
        home = HOME
    if home:
        url = url_of(home, "aggregator")
    if url is None:
        raise ServiceUnavailable(
            f"{home}: no `hubbub up` runs there; give --home FOLDER of a running one, or --bundle "
            f"and the URL of the aggregator's Redis in {_SETTING}"
        )
    bundle = read_bundle(options.bundle or (home or Path()) / OPERATORS)

    async def run() -> Result:
        try:
            server = await connect_redis(url)
        except StoreUnavailable as error:
            raise (ServiceUnavailable(nothing_runs(home)) if home else error) from error
        async with server:
            return await work(server, bundle)

    return asyncio.run(run())
