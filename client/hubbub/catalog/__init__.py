"""Floor 2. The catalog: metrics, their values, crowds and models, for apps and operators.

metrics.toml --read_catalog--> Metric --sign_bundle--> the bundle --read_bundle--> the app
"""

from hubbub.catalog.breakdown import UNLISTED, cell_of, conditions_in
from hubbub.catalog.crowds.crowd import Crowd
from hubbub.catalog.epochs_and_periods import (
    EPOCH_SECONDS,
    GRACE_SECONDS,
    WRITTEN_EPOCHS,
    closing_time,
    days_at_most,
    days_of_period,
    epoch_at,
    epoch_start,
    late_from,
    reports_of_one,
)
from hubbub.catalog.limits_and_budgets import SPANS, Budget, Release
from hubbub.catalog.metric import Metric, versions_of
from hubbub.catalog.supersedes import superseded_by

__all__ = [
    "EPOCH_SECONDS",
    "GRACE_SECONDS",
    "SPANS",
    "UNLISTED",
    "WRITTEN_EPOCHS",
    "Budget",
    "Crowd",
    "Metric",
    "Release",
    "cell_of",
    "closing_time",
    "conditions_in",
    "days_at_most",
    "days_of_period",
    "epoch_at",
    "epoch_start",
    "late_from",
    "reports_of_one",
    "superseded_by",
    "versions_of",
]
