"""The aggregator's process: `python -m hubbub.aggregator`, as `hubbub aggregator` runs it."""

import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hubbub.aggregator.access.access_file import AccessFile, files_of, read_access
from hubbub.aggregator.access.audit_trail import AuditTrail
from hubbub.aggregator.access.callers import access_of
from hubbub.aggregator.access.sessions import EndedSessions
from hubbub.aggregator.exported_files import Place
from hubbub.aggregator.housekeeping import Housekeeping
from hubbub.aggregator.ingest.development_reports import Arrivals
from hubbub.aggregator.ingest.intake import Intake
from hubbub.aggregator.ingest.opener import Opener
from hubbub.aggregator.ingest.window_report_limit import Room
from hubbub.aggregator.ingest_service import IngestService
from hubbub.aggregator.learning_rounds import ModelLearner
from hubbub.aggregator.prometheus_metrics import BATCHES, OPENING_KEY_DAYS_LEFT, UNREADABLE_TOTALS
from hubbub.aggregator.publishing import publisher
from hubbub.aggregator.publishing.answer_refresher import EstimateKeeper
from hubbub.aggregator.publishing.estimates_table import EstimatesTable
from hubbub.aggregator.publishing.otlp import collector
from hubbub.aggregator.publishing.totals_writer import TotalsWriter
from hubbub.aggregator.query import QueryEngine
from hubbub.aggregator.query.answer_store import AnswerStore
from hubbub.aggregator.query.conservation_law import Shuffler
from hubbub.aggregator.releases.release_log import ReleaseLog
from hubbub.aggregator.releases.releasing import Releases
from hubbub.aggregator.settings import Settings, limited, parse
from hubbub.aggregator.store.contract import DeletableTotals
from hubbub.aggregator.store.files import LISTED_SECONDS, FileTotals
from hubbub.aggregator.store.redis import RedisStore
from hubbub.aggregator.store.redis_and_files import FiledStore
from hubbub.aggregator.totals_deletion import Retention
from hubbub.bundles import Bundle, OpeningKey, key_at, read_bundle
from hubbub.bundles.key_handover import line_of
from hubbub.errors import BundleRefused, KeysUnusable
from hubbub.errors.message_words import NOTICES
from hubbub.keys.opening_key_files import read_opening_keys
from hubbub.privacy.central_releases import check_noise
from hubbub.runtime.clocks import Clocks
from hubbub.runtime.monitoring.metric_declaration import (
    CLOCK_APART_SECONDS,
    REDIS_MEMORY_RATIO,
    RELOADS,
    THROTTLED_CALLS,
)
from hubbub.runtime.monitoring.metrics import Metrics
from hubbub.runtime.monitoring.stages_and_traces import Stages
from hubbub.runtime.process import (
    Loop,
    Serves,
    certificates_until,
    day_of,
    run_service,
    serve_until_signal,
)
from hubbub.runtime.redis.client import connect_redis
from hubbub.runtime.redis.command_sender import Memory, RedisServer
from hubbub.runtime.reloading import Reloader, Take
from hubbub.runtime.rpc.server import Server
from hubbub.sealing.hpke import x_wing_public_bytes
from hubbub.signing.metric_changes import refuse_changes

if TYPE_CHECKING:
    from hubbub.aggregator.web.app import HttpServer

# After this time a shuffler reconnects, and so finds an added aggregator.
_CONNECTION_SECONDS: Final = 60.0
# A batch may be of 64 MiB; a shuffler gives up its call after as much.
_BATCH_SECONDS: Final = 60.0


class _Service:
    """A running aggregator: its parts, and how they follow changed files."""

    def __init__(
        self,
        settings: Settings,
        bundle: Bundle,
        server: RedisServer,
        *,
        store: RedisStore,
        clocks: Clocks,
        memory: Memory,
    ) -> None:
        self._settings, self._bundle, tls = settings, bundle, settings.common.tls
        self._clocks, self._memory = clocks, memory
        self._reloads, self._refusals = Counter[str](taken=0, refused=0), Counter[str]()
        keys = read_opening_keys(settings.keys)
        check_fits(bundle, keys, clocks.now(), settings.keys)
        self._opener = Opener(keys, settings.processes)
        stages, self._room = Stages(), Room(store, settings.max_window)
        # PRIVACY: no single report of production is stored.
        arrivals = Arrivals() if settings.common.development else None
        self._intake = Intake(
            bundle, self._opener, store, stages, clocks=clocks, room=self._room, arrivals=arrivals
        )
        shuffler = settings.shuffler_status
        self._upstream = Shuffler(shuffler, tls) if shuffler else None
        totals: DeletableTotals = store
        file_totals = None
        if settings.outlets.totals:
            place = Place.of(settings.outlets.totals)
            file_totals = FileTotals(place, lambda: self._bundle, fresh_seconds=LISTED_SECONDS)
            totals = FiledStore(store, file_totals)
        self._query = QueryEngine(
            bundle,
            totals,
            self._upstream,
            stages=stages,
            clocks=clocks,
            server=server,
            arrivals=arrivals,
        )
        self._loops = self._outlets(server)
        if file_totals:
            days = settings.outlets.redis_days
            self._loops.append(TotalsWriter(self._query.collected, store, file_totals, days).run)
        learner = ModelLearner(lambda: self._bundle, totals, self._query.rounds, clocks)
        self._loops.append(learner.run)
        self._keeping = Housekeeping(
            path=settings.keys,
            bundle=bundle,
            opener=self._opener,
            store=store,
            clocks=clocks,
            served=self._intake.served,
        )
        self._retention = Retention(bundle, totals, server, clocks, changed=self._intake.changed)
        self._doors(server, store, totals, stages)

    def _doors(
        self, server: RedisServer, store: RedisStore, totals: DeletableTotals, stages: Stages
    ) -> None:
        """Makes the doors for shufflers, analysts and Prometheus."""
        settings, tls = self._settings, self._settings.common.tls
        self._shufflers = Server(
            settings.listen,
            {"Ingest": IngestService(self._intake)},
            tls=tls,
            callers=("shuffler",),
            connection_seconds=_CONNECTION_SECONDS,
            arrive_seconds=_BATCH_SECONDS,
            refusals=self._refusals,
        )
        self._access = access_of(
            settings.http.tokens, _access_file(settings), EndedSessions(server)
        )
        self._http = self._http_door(server) if settings.http.listen else None
        self._metrics = Metrics(
            totals.report_counts,
            counters={
                BATCHES: self._intake.counts,
                THROTTLED_CALLS: self._refusals,
                RELOADS: self._reloads,
            },
            gauges={
                OPENING_KEY_DAYS_LEFT: lambda: self._keeping.days_left,
                REDIS_MEMORY_RATIO: lambda: self._memory.ratio,
                CLOCK_APART_SECONDS: lambda: self._clocks.apart_seconds,
                UNREADABLE_TOTALS: lambda: len(store.unreadable),
            },
            stages=stages,
            date_of=self._query.collected.date_of,
            certificates=[tls, settings.http.tls],
        ).door(settings.metrics_listen, tls)

    def _http_door(self, server: RedisServer) -> "HttpServer":
        from hubbub.aggregator.web.app import HttpServer  # noqa: PLC0415 a web framework

        http, query, audit = self._settings.http, self._query, None
        if http.audit:
            path = None if http.audit == "-" else Path(http.audit)
            audit = AuditTrail(path, lambda: set(query.collected.bundle.streams), time.time)
        return HttpServer(
            http,
            query,
            Releases(query.collected, ReleaseLog(server)),
            access=self._access,
            audit=audit,
            refusals=self._refusals,
            notice=f"{NOTICES[self._settings.common.development]} {http.notice}".strip(),
        )

    def _outlets(self, server: RedisServer) -> list[Loop]:
        """Loops that publish answers, if the settings request any."""
        settings, query, outlets = self._settings, self._query, self._settings.outlets
        loops: list[Loop] = []
        if settings.kept_epochs:
            keeper = EstimateKeeper(
                query=query,
                answers=AnswerStore(server),
                changed=self._intake.changed,
                epochs=settings.kept_epochs,
            )
            loops.append(keeper.run)
        sinks: list[publisher.Sink] = []
        if settings.export_dir:
            sinks.append(publisher.Folder(settings.export_dir))
        if outlets.estimates:
            sinks.append(EstimatesTable(Place.of(outlets.estimates), query.collected))
        if outlets.otlp:
            sinks.append(collector(outlets.otlp, publisher.DeliveryLog(server)))
        if settings.webhook:
            hook = publisher.webhook(
                settings.webhook, settings.webhook_secret, publisher.DeliveryLog(server)
            )
            sinks.append(hook)
            loops.append(publisher.AlertPublisher(query, hook).run)
        if sinks:
            loops.append(publisher.EpochPublisher(query, sinks).run)
        return loops

    async def run(self) -> None:
        """Serves until a signal."""
        settings = self._settings
        reloader = Reloader(lambda: _files(settings), self._load, self._reloads)
        loops = [self._clocks.run, self._memory.run, self._keeping.run, reloader.run]
        doors: list[Serves] = [self._shufflers, *([self._http] if self._http else [])]
        start_fields = {
            "shufflers": settings.listen,
            "http": settings.http.listen or "off",
            "metrics": settings.metrics_listen,
            "processes": settings.processes,
            **_describe(settings, self._bundle),
        }
        try:
            await serve_until_signal(
                [*doors, self._metrics],
                [*self._loops, *loops, self._retention.run],
                start_fields,
                reloader.reload,
            )
        finally:
            self._opener.close()
            if self._upstream:
                await self._upstream.close()

    def _load(self) -> Take:
        """Reads and checks all files; the returned function puts them into use."""
        settings = self._settings
        bundle, keys = _bundle_of(settings), read_opening_keys(settings.keys)
        check_follows(bundle, self._bundle, settings.bundle)
        check_fits(bundle, keys, self._clocks.now(), settings.keys)
        limits, access = limited(settings), _access_file(settings)
        for folder, mutual in ((settings.common.tls, True), (settings.http.tls, False)):
            if folder:
                folder.server_context(mutual=mutual)  # raises if something does not fit

        def take() -> Mapping[str, Any]:
            if tls := settings.common.tls:
                self._shufflers.renew(tls)
                self._metrics.renew()
                if self._upstream:
                    self._upstream.renew()
            if self._http:
                self._http.renew()
                self._http.allow(limits.http.rate)
            if tuple(keys) != self._opener.keys:
                self._opener.use(keys)
            self._room.max_reports = limits.max_window
            self._bundle = self._keeping.bundle = bundle
            for part in (self._intake, self._query, self._retention):
                part.use(bundle)
            if access:
                self._access.use(access)
            return _describe(settings, bundle)

        return take


def _files(settings: Settings) -> list[Path]:
    """The files to watch for changes; tokens are read again by their own user, `access.tokens`."""
    folders = dict.fromkeys(folder for folder in (settings.common.tls, settings.http.tls) if folder)
    return [
        settings.bundle,
        settings.keys,
        *(path for folder in folders for path in folder.files),
        *([settings.limits] if settings.limits else []),
        *(files_of(settings.http.access) if settings.http.access else ()),
    ]


def _describe(settings: Settings, bundle: Bundle) -> dict[str, Any]:
    """Log fields about the configuration in use."""
    return {
        "streams": len(bundle.streams),
        "keys_until": day_of(max(key.end for key in bundle.keys)) if bundle.keys else "none",
        "certificates_until": certificates_until([settings.common.tls, settings.http.tls]),
    }


def _bundle_of(settings: Settings) -> Bundle:
    """The bundle, if this aggregator may and can serve it.

    Raises:
        BundleRefused: it cannot be read; or only one of bundle and aggregator is for development.
        MissingDependency: it has a release, but the noise library is not installed.
    """
    bundle = read_bundle(settings.bundle)
    bundle.refuse_elsewhere(development=settings.common.development, path=str(settings.bundle))
    check_noise(bundle.streams.values())
    return bundle


def _access_file(settings: Settings) -> AccessFile | None:
    """The access file, if there is one. Raises BadParameter as `read_access` does."""
    return read_access(settings.http.access) if settings.http.access else None


def check_follows(bundle: Bundle, former: Bundle, path: Path) -> None:
    """Raises BundleRefused, or as `refuse_changes` does, unless a bundle may follow the former."""
    if former.operator not in line_of(bundle.handovers, bundle.operator):
        raise BundleRefused(
            f"{path}: signed by another operator, without a handover from ours; hand over with: "
            "hubbub keys handover"
        )
    if bundle.serial < former.serial:
        raise BundleRefused(
            f"{path}: is older than the bundle in use; to go back, restart the aggregator with it"
        )
    refuse_changes(bundle.metrics, former)


def check_fits(bundle: Bundle, keys: Sequence[OpeningKey], now: float, path: Path) -> None:
    """Raises KeysUnusable unless the private keys match the bundle."""
    private = {key.id: key for key in keys}
    for key in bundle.keys:
        private_key = private.get(key.id)
        if private_key is None:
            continue
        if private_key.load().public_key().public_bytes_raw() != key.public:
            raise KeysUnusable(f"{path}: key {key.id} is not in the bundle; give the bundle's keys")
        if key.x_wing and (
            not private_key.x_wing or x_wing_public_bytes(private_key.x_wing) != key.x_wing
        ):
            raise KeysUnusable(
                f"{path}: key {key.id} lacks its X-Wing half, which the bundle has; give the keys "
                "with which the bundle was built"
            )
    current = key_at(bundle.keys, int(now))
    if current is not None and current.id not in private:
        raise KeysUnusable(
            f"{path}: has no key {current.id}, to which today's reports are sealed; give "
            "the keys with which the bundle was built"
        )


async def _serve(settings: Settings) -> None:
    settings = limited(settings)
    bundle = _bundle_of(settings)
    server = await connect_redis(settings.common.redis_url, settings.common.redis_replicas)
    store, memory = RedisStore(server, settings.shards), Memory(server)
    clocks = Clocks(beside=server.times)
    await store.check()
    await clocks.look()
    await memory.look()
    await _Service(settings, bundle, server, store=store, clocks=clocks, memory=memory).run()


if __name__ == "__main__":
    sys.exit(run_service("aggregator", parse, _serve))
