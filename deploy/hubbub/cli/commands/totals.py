"""`hubbub totals`: files of totals beside the aggregator's Redis: written, compared, estimated."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from hubbub.aggregator.exported_files import Place
from hubbub.aggregator.publishing.estimates_table import EstimatesTable
from hubbub.aggregator.publishing.publisher import EpochPublisher
from hubbub.aggregator.publishing.totals_writer import TotalsWriter
from hubbub.aggregator.query import QueryEngine
from hubbub.aggregator.query.totals import TotalsByEpoch
from hubbub.aggregator.store.files import LISTED_SECONDS, FileTotals
from hubbub.aggregator.store.redis import RedisStore
from hubbub.aggregator.web.answers_from_totals_files import totals_at
from hubbub.bundles import Bundle
from hubbub.cli.terminal.output import say
from hubbub.errors.message_words import several
from hubbub.installation.totals_connection import EPILOG, RedisOptions, in_totals_redis
from hubbub.programs.command_line import command
from hubbub.programs.option_parsing import argument, option
from hubbub.runtime.clocks import Clocks
from hubbub.runtime.redis.command_sender import RedisServer

# A disk synchronizes several files in the time of one, and an object store takes several at once.
_METRICS_AT_ONCE: Final = 8
_PLACE: Final = "the folder, or an address such as s3://BUCKET/PREFIX"
DESCRIPTION: Final = "Does once, by hand, what `hubbub aggregator --totals PLACE` does by itself."


@command(
    "totals write",
    text="write every closed window that is in Redis but not in PLACE",
    epilog=EPILOG,
)
def _write(redis: RedisOptions, place: str = argument(_PLACE)) -> int:
    async def write(writer: TotalsWriter) -> int:
        new_count = await writer.look()
        closed = len([window async for window, _ in writer.closed_windows()])
        if not closed:
            say(f"{place}: nothing written; {await writer.first_closing()}")
        elif new_count == closed:
            say(f"{place}: {several(new_count, 'window')} written")
        else:
            say(
                f"{place}: {several(new_count, 'window')} written of {closed:,} closed; "
                "hubbub totals verify reads the files of the others"
            )
        return 0

    return _with_redis(redis, place, write)


@command(
    "totals verify",
    text="compare every file with Redis; exit code 1 if they differ",
    epilog=EPILOG,
)
def _verify(redis: RedisOptions, place: str = argument(_PLACE)) -> int:
    async def verify(writer: TotalsWriter) -> int:
        windows, intact, differences = await writer.compare()
        for sentence in differences:
            say(sentence)
        if windows or intact or differences:
            say(
                f"{place}: {several(windows, 'window')} of Redis compared, "
                f"{several(intact, 'file')} intact"
            )
        else:
            say(f"{place} has no totals; {await writer.first_closing()}")
        return int(bool(differences))

    return _with_redis(redis, place, verify)


@command("totals estimates", text="make the table of estimates from files of totals, without Redis")
def _estimates(
    place: str = argument("the folder or address of totals"),
    to: str = argument("the folder or address of the table of estimates"),
    bundle: Path | None = option("bundle that defines the metrics (the newest in PLACE)"),
) -> int:
    # Each epoch is a separate query, and listing a year of files takes longer than one.
    files, its_bundle = totals_at(place, bundle, fresh_seconds=LISTED_SECONDS)
    query = QueryEngine(its_bundle, files)
    table = EstimatesTable(Place.of(to), query.collected)
    number, missed = asyncio.run(EpochPublisher(query, [table], _METRICS_AT_ONCE).give_closed())
    say(f"{to}: {several(number, 'file')} written")
    for sentence in missed:
        say(f"skipped: {sentence}")
    return int(bool(missed))


def _with_redis(
    redis: RedisOptions, address: str, work: Callable[[TotalsWriter], Awaitable[int]]
) -> int:
    """Calls `work` with a writer that drops nothing from Redis; returns the exit code."""
    place = Place.of(address)

    async def run(server: RedisServer, bundle: Bundle) -> int:
        clocks = Clocks(beside=server.times)
        await clocks.look()
        store = RedisStore(server)
        collected = TotalsByEpoch(bundle, store, clocks=clocks)
        files = FileTotals(place, lambda: bundle, fresh_seconds=LISTED_SECONDS)
        return await work(TotalsWriter(collected, store, files))

    return in_totals_redis(redis, run)
