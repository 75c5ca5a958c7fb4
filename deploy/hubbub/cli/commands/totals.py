"""`hubbub totals`: files of totals beside the aggregator's Redis: written, compared, estimated."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from hubbub.aggregator.place import Place
from hubbub.aggregator.publishing.estimates_table import EstimatesTable
from hubbub.aggregator.publishing.publisher import EpochPublisher
from hubbub.aggregator.publishing.totals_writer import TotalsWriter
from hubbub.aggregator.query import QueryEngine
from hubbub.aggregator.query.totals import TotalsByEpoch
from hubbub.aggregator.store.files import LISTED_SECONDS, FileTotals
from hubbub.aggregator.store.redis import RedisStore
from hubbub.aggregator.web.offline import totals_at
from hubbub.bundles import read_bundle
from hubbub.cli.installation import OPERATORS
from hubbub.cli.local.embedded_redis import aggregators_redis
from hubbub.cli.terminal.output import say, several
from hubbub.programs.command_line import Command
from hubbub.programs.options import argument, option, options
from hubbub.runtime import Clocks, connect_redis

DESCRIPTION: Final = "What `hubbub aggregator --totals PLACE` does by itself, once and by hand."
_REDIS: Final = (
    "The URL of the aggregator's Redis comes from HUBBUB_REDIS_URL, if it is set and --home is not "
    "given; for a folder of `hubbub up` it is known."
)


@options
class RedisOptions:
    """Options of `hubbub totals write` and `verify`."""

    place: str = argument("the folder, or an address such as s3://BUCKET/PREFIX")
    home: Path | None = option("folder of `hubbub up` (.hubbub)", default=None)
    bundle: Path | None = option(
        f"that defines the metrics ({OPERATORS}, of --home or here)", default=None
    )


@options
class EstimatesOptions:
    """Options of `hubbub totals estimates`."""

    place: str = argument("the folder or address of totals")
    to: str = argument("the folder or address of the table of estimates")
    bundle: Path | None = option("that defines the metrics (the newest in PLACE)", default=None)


def _write(options: RedisOptions) -> int:
    async def write(writer: TotalsWriter) -> int:
        number = await writer.look()
        closed = len([window async for window, _ in writer.closed()])
        if not closed:
            say(f"{options.place}: nothing written; {await writer.first_closing()}")
        elif number == closed:
            say(f"{options.place}: {several(number, 'window')} written")
        else:
            say(
                f"{options.place}: {several(number, 'window')} written of {closed:,} closed; "
                "hubbub totals verify reads the files of the others"
            )
        return 0

    return _with_redis(options, write)


def _verify(options: RedisOptions) -> int:
    async def verify(writer: TotalsWriter) -> int:
        windows, whole, differences = await writer.compare()
        for sentence in differences:
            say(sentence)
        if windows or whole or differences:
            say(
                f"{options.place}: {several(windows, 'window')} of Redis compared, "
                f"{several(whole, 'file')} whole"
            )
        else:
            say(f"{options.place} has no totals; {await writer.first_closing()}")
        return int(bool(differences))

    return _with_redis(options, verify)


def _estimates(options: EstimatesOptions) -> int:
    files, bundle = totals_at(options.place, options.bundle)
    query = QueryEngine(bundle, files)
    publisher = EpochPublisher(query, [EstimatesTable(Place.at(options.to), query.collected)])
    number, missed = asyncio.run(publisher.give_closed())
    say(f"{options.to}: {several(number, 'file')} written")
    for sentence in missed:
        say(f"skipped: {sentence}")
    return int(bool(missed))


def _with_redis(options: RedisOptions, work: Callable[[TotalsWriter], Awaitable[int]]) -> int:
    """Do something with a writer that drops nothing from Redis: the exit code."""
    home, url = aggregators_redis(options.home)
    bundle = read_bundle(options.bundle or (home or Path()) / OPERATORS)
    place = Place.at(options.place)

    async def run() -> int:
        server = await connect_redis(url)
        try:
            clocks = Clocks(beside=server.times)
            await clocks.look()
            store = RedisStore(server)
            collected = TotalsByEpoch(bundle, store, clocks=clocks)
            files = FileTotals(place, lambda: bundle, fresh_seconds=LISTED_SECONDS)
            return await work(TotalsWriter(collected, store, files))
        finally:
            await server.close()

    return asyncio.run(run())


COMMANDS: Final = (
    Command(
        name="totals write",
        run=_write,
        text="write every closed window that Redis has and the place has not",
        epilog=_REDIS,
    ),
    Command(
        name="totals verify",
        run=_verify,
        text="compare every file with Redis; exit code 1 where they differ",
        epilog=_REDIS,
    ),
    Command(
        name="totals estimates",
        run=_estimates,
        text="make the table of estimates from files of totals, without Redis",
    ),
)
