"""Floor 2. The catalog: which metrics there are, as people write them and as apps ship them.

metrics.toml --read_catalog--> Metric --sign_bundle--> the bundle --read_bundle--> the app
"""

from hubbub.catalog.bundle import (
    Bundle,
    open_bundle,
    read_bundle,
    refuse_changes,
    sign_bundle,
    stream_table,
)
from hubbub.catalog.choice import Choice, Option
from hubbub.catalog.epochs import (
    EPOCH_SECONDS,
    closing_time,
    epoch_at,
    epoch_start,
    grace_seconds,
)
from hubbub.catalog.exposure import epochs_within, exposure, unchanged_exposure
from hubbub.catalog.keys import (
    OpeningKey,
    OpeningKeyPublic,
    key_at,
    read_opening_keys,
    read_operator_key,
    read_public_keys,
    write_new_keys,
)
from hubbub.catalog.metric import Limits, Metric, family_of
from hubbub.catalog.policy import SPANS, Budget, Caps, Release
from hubbub.catalog.sealing import SEAL_BYTES, TAG_BYTES, open_sealed, seal, seal_info
from hubbub.catalog.source import Catalog, read_catalog

__all__ = [
    "EPOCH_SECONDS",
    "SEAL_BYTES",
    "SPANS",
    "TAG_BYTES",
    "Budget",
    "Bundle",
    "Caps",
    "Catalog",
    "Choice",
    "Limits",
    "Metric",
    "OpeningKey",
    "OpeningKeyPublic",
    "Option",
    "Release",
    "closing_time",
    "epoch_at",
    "epoch_start",
    "epochs_within",
    "exposure",
    "family_of",
    "grace_seconds",
    "key_at",
    "open_bundle",
    "open_sealed",
    "read_bundle",
    "read_catalog",
    "read_opening_keys",
    "read_operator_key",
    "read_public_keys",
    "refuse_changes",
    "seal",
    "seal_info",
    "sign_bundle",
    "stream_table",
    "unchanged_exposure",
    "write_new_keys",
]
