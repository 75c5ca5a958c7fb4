"""Reloads what may change while the shuffler runs: streams, certificates, limits, signed files."""

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import grpc.aio

from hubbub.runtime.http.server import HttpDoor
from hubbub.runtime.monitoring.metrics import Metrics
from hubbub.runtime.process import certificates_until, day_of
from hubbub.runtime.reloading import Take
from hubbub.runtime.rpc.limiter import Limiter
from hubbub.runtime.rpc.server import Server, channel
from hubbub.runtime.tls import TlsFolder
from hubbub.shuffler.admission import Admission
from hubbub.shuffler.backpressure import Backpressure
from hubbub.shuffler.mixer import Mixer
from hubbub.shuffler.redeeming import Redeemer, refuse_untaken
from hubbub.shuffler.settings import Settings, limited
from hubbub.shuffler.signed_files import SignedFiles, read_signed
from hubbub.shuffler.streams import StreamTable, read_stream_table

# A running delivery over a former connection ends earlier.
_FORMER_SECONDS: Final = 90.0


@dataclass(slots=True, kw_only=True)
class Parts:
    """The parts of a running shuffler that a reload changes; `table`, `channels`: in use now."""

    table: StreamTable
    channels: Sequence[grpc.aio.Channel]
    mixer: Mixer
    admission: Admission
    pressure: Backpressure
    limiter: Limiter
    for_devices: Server
    for_operators: Server
    http_door: HttpDoor | None
    metrics: Metrics
    redeemer: Redeemer | None = None
    closing: set["asyncio.Task[None]"] = field(default_factory=set)


def files(settings: Settings) -> list[Path]:
    """The files to watch for changes."""
    tls = [path for folder in folders(settings) for path in folder.files]
    return [
        settings.streams,
        *tls,
        *filter(None, (settings.limits, settings.notice, settings.models)),
    ]


def folders(settings: Settings) -> list[TlsFolder]:
    """All folders of certificates in use."""
    both = settings.common.tls, settings.http.tls if settings.http.listen else None
    return list(dict.fromkeys(folder for folder in both if folder))


def open_channels(settings: Settings) -> list[grpc.aio.Channel]:
    """Opens a channel to every aggregator. Raises KeysUnusable."""
    tls = settings.common.tls
    return [channel(address, "aggregator", tls=tls) for address in settings.aggregators]


def describe(settings: Settings, table: StreamTable, signed: SignedFiles) -> dict[str, Any]:
    """Facts about the streams, keys and signed files in use, for the log."""
    return {
        "streams": len(table.streams),
        "keys_until": day_of(table.keys_until) if table.keys else "none",
        "certificates_until": certificates_until(folders(settings)),
        # Fields that only devices read.
        "notice": _digest(signed.notice),
        "models": _digest(signed.models),
    }


def _digest(signed: bytes) -> str:
    return hashlib.sha256(signed).hexdigest()[:8] if signed else "none"


def reading(settings: Settings, parts: Parts) -> Callable[[], Take]:
    """Returns a loader for the Reloader that reads and checks all files."""
    tls = settings.common.tls

    def read() -> Take:
        table = read_stream_table(settings.streams)
        table.refuse_elsewhere(development=settings.common.development, path=settings.streams)
        table.check_follows(parts.table)
        refuse_untaken(table, parts.redeemer)
        limits = limited(settings)
        signed = read_signed(settings.notice, settings.models)
        for folder in folders(settings):
            folder.server_context(mutual=folder is tls)  # raises if something does not fit

        def take() -> Mapping[str, Any]:
            _take(limits, table, signed, parts)
            return describe(settings, table, signed)

        return take

    return read


def _take(limits: Settings, table: StreamTable, signed: SignedFiles, parts: Parts) -> None:
    tls = limits.common.tls
    if tls:
        former, parts.channels = parts.channels, open_channels(limits)
        for server in (parts.for_devices, parts.for_operators):
            server.renew(tls)
        parts.metrics.renew()
        for client in former:
            closing = asyncio.create_task(client.close(_FORMER_SECONDS))
            parts.closing.add(closing)
            closing.add_done_callback(parts.closing.discard)
    parts.table = table
    parts.mixer.use(table, parts.channels)
    parts.admission.use(table, signed)
    parts.pressure.use(limits.max_pool, limits.max_memory, table.sizes)
    parts.limiter.allow(limits.peer_rate, limits.peer_burst)
    parts.for_devices.allow_calls(limits.peer_calls)
    if parts.http_door:
        parts.http_door.renew()
        parts.http_door.allow_connections(limits.peer_calls)
