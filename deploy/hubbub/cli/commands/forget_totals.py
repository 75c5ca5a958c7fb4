"""`hubbub forget`: deletes a metric's totals from before a day, in the aggregator's Redis."""

import time
from collections.abc import Collection
from datetime import UTC, date, datetime

from hubbub.aggregator import totals_deletion
from hubbub.aggregator.exported_files import Place
from hubbub.aggregator.query.answer_store import AnswerStore
from hubbub.aggregator.store.files import FileTotals
from hubbub.aggregator.store.redis import RedisStore
from hubbub.aggregator.store.redis_and_files import FiledStore
from hubbub.bundles import Bundle
from hubbub.catalog import EPOCH_SECONDS, closing_time, epoch_start
from hubbub.cli.terminal.output import first_second, say
from hubbub.conservation import Window
from hubbub.epochs import epoch_date
from hubbub.errors import UnknownMetric
from hubbub.errors.message_words import several
from hubbub.fields.rules import metric_name_of
from hubbub.installation.totals_connection import EPILOG, RedisOptions, in_totals_redis
from hubbub.programs.command_line import command
from hubbub.programs.option_parsing import argument, option, options
from hubbub.runtime.clocks import Clocks
from hubbub.runtime.redis.command_sender import RedisServer


@options
class ForgetOptions(RedisOptions):
    metric: str = argument("name of a metric in the bundle, or of a retired metric")
    before: date = option("delete the epochs that ended before this day (UTC)")
    totals: str = option(
        "folder or address of the files that hubbub aggregator --totals writes; deletes them too",
        default="",
        metavar="PLACE",
    )
    yes: bool = option("really delete them")


@command(
    "forget",
    description="Deletes whole epochs that ended before a day (UTC). Without --yes it shows "
    "what it would delete. The conservation law still counts their reports; releases, exports, "
    "tables of estimates and backups stay as they are. An aggregator with --totals deletes its "
    "files within a minute.",
    epilog=EPILOG,
)
def _forget(options: ForgetOptions) -> None:
    in_totals_redis(options, lambda server, bundle: _in_redis(server, bundle, options))


async def _in_redis(server: RedisServer, bundle: Bundle, options: ForgetOptions) -> None:
    name, before = options.metric, first_second(options.before)
    redis = RedisStore(server)
    place = Place.of(options.totals) if options.totals else None
    store = FiledStore(redis, FileTotals(place, lambda: bundle)) if place else redis
    window_counts = totals_deletion.windows_of(name, await store.report_counts())
    lengths = await _lengths_of(name, bundle, server, window_counts)
    clocks = Clocks(time.time, server.times)  # a wrong clock here must not end an epoch
    await clocks.look()
    now = clocks.earliest()
    length = {
        window: totals_deletion.length_of(window.epoch, lengths, now) for window in window_counts
    }
    windows = totals_deletion.closed_before(window_counts, lengths, before, now=now)
    if not windows:
        closing_times = [
            closing_time(window.epoch, epoch)
            for window, epoch in length.items()
            if epoch_start(window.epoch + 1, epoch) <= before
        ]
        reason = "there are no totals of epochs that ended before that day"
        if closing_times:
            closes = datetime.fromtimestamp(min(closing_times), UTC)
            reason = (
                "nothing was deleted: the epoch still accepts reports until "
                f"{closes:%Y-%m-%d %H:%M} UTC; try again then"
            )
        say(f"{name}: {reason}")
        return
    reports = sum(window_counts[window] for window in windows)
    dates = sorted(epoch_date(window.epoch, EPOCH_SECONDS[length[window]]) for window in windows)
    subject = f"{name}: {several(reports, 'report')}, of {dates[0]} to {dates[-1]}"
    if not options.yes:
        say(f"{subject}, would be deleted, for good; to do it, add --yes")
        return
    deleted = await totals_deletion.delete_totals(windows, store, AnswerStore(server))
    say(f"{subject}: deleted; the law counts {deleted:,} as counted:deleted")


async def _lengths_of(
    name: str, bundle: Bundle, server: RedisServer, windows: Collection[Window]
) -> set[str]:
    """All lengths of a metric's epochs, also of a retired one, as the store remembers them."""
    remembered = (await totals_deletion.read_promises(server)).get(metric_name_of(name))
    had = set(remembered.days) if remembered else set[str]()
    try:
        return had | {bundle.metric(name).epoch}
    except UnknownMetric as error:
        if had:
            return had
        if windows:
            raise UnknownMetric(
                f'metric "{name}" is retired, and Redis does not have the length of its '
                "epochs; give a bundle that contains it, with --bundle"
            ) from error
        raise UnknownMetric(f"{error} (no retired metric has this name)") from error
