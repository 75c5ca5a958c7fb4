"""Reloads bundle, keys, certificates, limits and access of a running aggregator.

Tokens are read again by their own user (access.tokens).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hubbub.aggregator.access.access_file import AccessFile, files_of, read_access
from hubbub.aggregator.access.callers import Access, login_of
from hubbub.aggregator.housekeeping import Housekeeping
from hubbub.aggregator.ingest.intake import Intake
from hubbub.aggregator.ingest.opener import Opener
from hubbub.aggregator.ingest.window_room import Room
from hubbub.aggregator.query import QueryEngine
from hubbub.aggregator.query.report_counts import Shuffler
from hubbub.aggregator.retention import Retention
from hubbub.aggregator.settings import Settings, limited
from hubbub.bundles import Bundle, OpeningKey, key_at, read_bundle
from hubbub.bundles.handover import line_of
from hubbub.errors import BundleRefused, KeysUnusable
from hubbub.keys.opening_keys import read_opening_keys
from hubbub.privacy.releases import check_noise
from hubbub.runtime.clocks import Clocks
from hubbub.runtime.http.server import HttpDoor
from hubbub.runtime.process import certificates_until, day_of
from hubbub.runtime.reloading import Take
from hubbub.runtime.rpc.server import Server
from hubbub.sealing import x_wing_public_bytes
from hubbub.signing.succession import refuse_changes

if TYPE_CHECKING:
    from hubbub.aggregator.web.server import HttpServer


@dataclass(slots=True, kw_only=True)
class Parts:
    """The parts of a running aggregator that a reload changes; `bundle` is the one in use."""

    bundle: Bundle
    intake: Intake
    opener: Opener
    room: Room
    query: QueryEngine
    keeping: Housekeeping
    retention: Retention
    clocks: Clocks
    shufflers: Server
    metrics: HttpDoor
    upstream: Shuffler | None
    http: "HttpServer | None"
    access: Access


def files(settings: Settings) -> list[Path]:
    """Files that are watched for changes."""
    folders = dict.fromkeys(folder for folder in (settings.common.tls, settings.http.tls) if folder)
    return [
        settings.bundle,
        settings.keys,
        *(path for folder in folders for path in folder.files),
        *([settings.limits] if settings.limits else []),
        *(files_of(settings.http.access) if settings.http.access else ()),
    ]


def describe(settings: Settings, bundle: Bundle) -> dict[str, Any]:
    """Log fields about the configuration in use."""
    return {
        "streams": len(bundle.streams),
        "keys_until": day_of(max(key.end for key in bundle.keys)) if bundle.keys else "none",
        "certificates_until": certificates_until([settings.common.tls, settings.http.tls]),
    }


def bundle_of(settings: Settings) -> Bundle:
    """The bundle, if this aggregator may and can serve it.

    Raises:
        BundleRefused: it cannot be read; or only one of bundle and aggregator is for development.
        MissingDependency: it has a release, but the noise library is not installed.
    """
    bundle = read_bundle(settings.bundle)
    bundle.refuse_elsewhere(development=settings.common.development, path=str(settings.bundle))
    check_noise(bundle.streams.values())
    return bundle


def access_file(settings: Settings) -> AccessFile | None:
    """The access file, if there is one. Raises BadParameter as `read_access` does."""
    return read_access(settings.http.access) if settings.http.access else None


def reading(settings: Settings, parts: Parts) -> Callable[[], Take]:
    """Function that reads and checks everything, and returns a function that puts it into use."""

    def read() -> Take:
        bundle, keys = bundle_of(settings), read_opening_keys(settings.keys)
        _check_follows(bundle, parts.bundle, settings.bundle)
        check_fits(bundle, keys, parts.clocks.now(), settings.keys)
        limits = limited(settings)
        access = access_file(settings)
        for folder, mutual in ((settings.common.tls, True), (settings.http.tls, False)):
            if folder:
                folder.server_context(mutual=mutual)  # raises if something does not fit

        def take() -> Mapping[str, Any]:
            _take(limits, bundle, keys, parts)
            if access:
                current = parts.access
                current.use(access, login_of(access, current.login, ended=current.ended))
            return describe(settings, bundle)

        return take

    return read


def _take(limits: Settings, bundle: Bundle, keys: Sequence[OpeningKey], parts: Parts) -> None:
    tls = limits.common.tls
    if tls:
        parts.shufflers.renew(tls)
        parts.metrics.renew()
        if parts.upstream:
            parts.upstream.renew()
    if parts.http:
        parts.http.renew()
        parts.http.allow(limits.http.rate)
    if tuple(keys) != parts.opener.keys:
        parts.opener.use(keys)
    parts.room.allow(limits.max_window)
    parts.bundle = bundle
    parts.intake.use(bundle)
    parts.query.use(bundle)
    parts.keeping.use(bundle)
    parts.retention.use(bundle)


def _check_follows(bundle: Bundle, former: Bundle, path: Path) -> None:
    """Raises BundleRefused unless a bundle is compatible with what the former one counted."""
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
                f"{path}: key {key.id} lacks the X-Wing half of the bundle; give the keys with "
                "which the bundle was built"
            )
    current = key_at(bundle.keys, int(now))
    if current is not None and current.id not in private:
        raise KeysUnusable(
            f"{path}: has no key {current.id}, to which today's reports are sealed; give "
            "the keys with which the bundle was built"
        )
