"""Floor 2. The catalog: metrics, their values, crowds and models, for apps and operators.

metrics.toml --read_catalog--> Metric --sign_bundle--> the bundle --read_bundle--> the app
"""

from hubbub.catalog.breakdown import UNLISTED, cell_of, conditions_in
from hubbub.catalog.crowds.central_promise import CentralPromise
from hubbub.catalog.epochs import (
    EPOCH_SECONDS,
    WRITTEN_EPOCHS,
    closing_time,
    epoch_at,
    epoch_start,
    grace_seconds,
)
from hubbub.catalog.metric import Metric, versions_of
from hubbub.catalog.periods import days_at_most, days_of_period, reports_of_one
from hubbub.catalog.policy import SPANS, Budget, Release
from hubbub.catalog.supersedes import superseded_by
from hubbub.fields.rules import metric_name_of
from hubbub.sealing import (
    SEAL_BYTES,
    TAG_BYTES,
    X25519,
    X_WING,
    Kem,
    PrivateKey,
    filler_info,
    open_sealed,
    seal,
    seal_info,
)

__all__ = [
    "EPOCH_SECONDS",
    "SEAL_BYTES",
    "SPANS",
    "TAG_BYTES",
    "UNLISTED",
    "WRITTEN_EPOCHS",
    "X25519",
    "X_WING",
    "Budget",
    "CentralPromise",
    "Kem",
    "Metric",
    "PrivateKey",
    "Release",
    "cell_of",
    "closing_time",
    "conditions_in",
    "days_at_most",
    "days_of_period",
    "epoch_at",
    "epoch_start",
    "filler_info",
    "grace_seconds",
    "metric_name_of",
    "open_sealed",
    "reports_of_one",
    "seal",
    "seal_info",
    "superseded_by",
    "versions_of",
]
