"""Crowds of metrics, and shuffled epochs of `grr` reports, as tests write them."""

from dataclasses import replace
from typing import Any

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.catalog import Crowd, Metric
from hubbub.privacy.shuffled_epoch import ShuffledEpoch


def crowd_of(reports: int, categories: float, local: float, **further: Any) -> ShuffledEpoch:
    """So many reports of so many values, each of this local epsilon; and further fields."""
    return ShuffledEpoch(reports=reports, categories=categories, epsilon_local=local, **further)


def noise_chances(scale: float, shift: int) -> Floats:
    """A law of noise dummies by its formula, and not by the whole numbers that are drawn by."""
    weights = np.exp(-np.abs(np.arange(2 * shift + 1) - shift) / scale)
    chances: Floats = weights / weights.sum()
    return chances


def crowd_in(metric: Metric) -> Crowd:
    """The crowd of a metric that has one."""
    assert metric.crowd
    return metric.crowd


def with_crowd(metric: Metric, **fields: Any) -> Metric:
    """The metric with these fields of its crowd."""
    return replace(metric, crowd=replace(crowd_in(metric), **fields))
