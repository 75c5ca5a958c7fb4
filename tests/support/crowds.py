"""Crowds of metrics, and shuffled epochs of `grr` reports, as tests write them."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import numpy.typing as npt

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


def views_with_any_others(
    others: int, values: int, keep: Any, lie: Any, law: npt.NDArray[Any]
) -> Iterator[npt.NDArray[Any]]:
    """All counts where the person holds v, and where w, for all that the others may hold.

    A report names a wrong value in proportion to `lie`, and its own `keep` times as likely. `law`
    is that of a value's dummies. With whole numbers, and `law` of objects, chances are exact.
    """

    def with_report(counts: npt.NDArray[Any], own: int) -> npt.NDArray[Any]:
        moved = [np.roll(counts, 1, axis=value) for value in range(values)]
        more: npt.NDArray[Any] = lie * (np.sum(moved, axis=0) + (keep - 1) * moved[own])
        return more

    dummies = np.ones((), dtype=law.dtype)
    for _ in range(values):
        dummies = np.multiply.outer(dummies, np.append(law, np.zeros_like(law, shape=others + 1)))
    for hold in combinations_with_replacement(range(values), others):
        counts = dummies
        for value in hold:
            counts = with_report(counts, value)
        yield np.stack([with_report(counts, own).ravel() for own in (0, 1)])


def crowd_in(metric: Metric) -> Crowd:
    """The crowd of a metric that has one."""
    assert metric.crowd
    return metric.crowd


def with_crowd(metric: Metric, **fields: Any) -> Metric:
    """The metric with these fields of its crowd."""
    return replace(metric, crowd=replace(crowd_in(metric), **fields))
