"""Files of a running aggregator: which there are, and what they must fulfil when they are read.

Tokens are read again by their own user (access.tokens).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hubbub.aggregator.access.access_file import AccessFile, files_of, read_access
from hubbub.aggregator.settings import Settings
from hubbub.bundles import Bundle, OpeningKey, key_at, read_bundle
from hubbub.bundles.key_handover import line_of
from hubbub.errors import BundleRefused, KeysUnusable
from hubbub.privacy.central_releases import check_noise
from hubbub.runtime.process import certificates_until, day_of
from hubbub.sealing.hpke import x_wing_public_bytes
from hubbub.signing.metric_changes import refuse_changes


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
