"""Every sentence about a number, tried: how often it holds beside how often it says it does."""

from collections.abc import Sequence

from tests.statistics.calibration import (
    breakdowns,
    changes,
    experiments,
    few_reports,
    figures,
    hidden,
    lines,
    listed,
    numbers,
    percentiles,
    released,
    strings,
    tiers,
    vectors,
)
from tests.statistics.calibration.statement import Setting

__all__ = ["SETTINGS"]

SETTINGS: Sequence[Setting] = [
    setting
    for module in (
        listed,
        tiers,
        strings,
        numbers,
        percentiles,
        vectors,
        changes,
        experiments,
        few_reports,
        figures,
        hidden,
        breakdowns,
        lines,
        released,
    )
    for setting in module.SETTINGS
]
"""Every setting, and in it every statement that can be tried there."""
