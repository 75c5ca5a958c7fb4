"""`hubbub forget`: deletes a metric's totals of before a day, in the aggregator's Redis."""

import argparse
import asyncio
import time
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final

from hubbub.aggregator.query.answer_store import RedisAnswerStore
from hubbub.aggregator.retention import delete_totals, ended_before
from hubbub.aggregator.store.redis import RedisStore
from hubbub.catalog import EPOCH_SECONDS, Metric, closing_time, epoch_start, read_bundle
from hubbub.catalog.discovery import streams_held
from hubbub.cli.installation import OPERATORS
from hubbub.cli.local.embedded_redis import url_of
from hubbub.cli.terminal.day_argument import as_day
from hubbub.cli.terminal.output import say, several
from hubbub.cli.terminal.service_client import nothing_runs
from hubbub.conservation import Window, epoch_date
from hubbub.errors import BadParameter, ServiceUnavailable, StoreUnavailable
from hubbub.runtime import connect_redis, redis_url

_HOME: Final = Path(".hubbub")
_SETTING: Final = "HUBBUB_REDIS_URL"


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `forget` to the command line."""
    forget = commands.add_parser(
        "forget",
        description="Deletes whole epochs that were over before a day (UTC). Without --yes it says "
        "what it would delete. The law still says how many reports they were; releases, exports "
        "and backups keep what they have.",
        epilog="The URL of the aggregator's Redis comes from HUBBUB_REDIS_URL, if it is set and "
        "--home is not given; for a folder of `hubbub up` it is known.",
    )
    forget.add_argument("metric", help="its name in the bundle")
    forget.add_argument(
        "--before", type=as_day, required=True, metavar="YYYY-MM-DD", help="the day"
    )
    forget.add_argument("--home", type=Path, help=f"folder of `hubbub up` ({_HOME})")
    forget.add_argument(
        "--bundle",
        type=Path,
        help=f"which says what the metric is ({OPERATORS}, of --home or here)",
    )
    forget.add_argument("--yes", action="store_true", help="do it")
    forget.set_defaults(run=_forget)


def _forget(arguments: argparse.Namespace) -> int:
    home, url = _found(arguments.home)
    bundle = arguments.bundle or (home or Path()) / OPERATORS
    metric = read_bundle(bundle).metric(arguments.metric)
    day: date = arguments.before
    before = datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()
    try:
        asyncio.run(_in_redis(url, metric, before, sure=arguments.yes))
    except StoreUnavailable as error:
        if not home:
            raise
        raise ServiceUnavailable(nothing_runs(home)) from error
    return 0


def _found(home: Path | None) -> tuple[Path | None, str]:
    """The folder of `hubbub up`, unless the environment names another Redis; and the URL of it."""
    if home is None:
        with suppress(BadParameter):
            return None, redis_url(_SETTING)
        home = _HOME
    url = url_of(home, "aggregator")
    if url is None:
        raise ServiceUnavailable(
            f"{home}: no `hubbub up` runs there; give --home FOLDER of one, or the URL of the "
            f"aggregator's Redis in {_SETTING}, and --bundle"
        )
    return home, url


async def _in_redis(url: str, metric: Metric, before: float, *, sure: bool) -> None:
    server = await connect_redis(url)
    try:
        store = RedisStore(server)
        windows = await ended_before(metric, before, store, now=time.time())
        held = await store.counted(streams_held(metric))
        number = sum(held[window].reports for window in windows)
        if not windows:
            say(f"{metric.name}: {_why_none(metric, held, before)}")
            return
        dates = sorted(epoch_date(w.epoch, EPOCH_SECONDS[metric.epoch]) for w in windows)
        what = f"{metric.name}: {several(number, 'report')}, of {dates[0]} to {dates[-1]}"
        if not sure:
            say(f"{what}, would be deleted, for good; to do it, add --yes")
            return
        deleted = await delete_totals(metric, windows, store, RedisAnswerStore(server))
        say(f"{what}: deleted; the law counts {deleted:,} as counted:deleted")
    finally:
        await server.close()


def _why_none(metric: Metric, held: Iterable[Window], before: float) -> str:
    """Nothing is held, or what is takes reports yet."""
    asked = [one.epoch for one in held if epoch_start(one.epoch + 1, metric.epoch) <= before]
    if not asked:
        return "nothing is held of epochs that were over then"
    closes = datetime.fromtimestamp(closing_time(min(asked), metric.epoch), UTC)
    return (
        "nothing was deleted: the epoch of what is held is not over, and takes reports until "
        f"{closes:%Y-%m-%d %H:%M} UTC; ask again then"
    )
