"""Shuffled epochs of `grr` reports, as the tests of their accounts write them."""

from typing import Any

from hubbub.privacy.shuffled_epoch import ShuffledEpoch


def crowd_of(reports: int, categories: float, local: float, **further: Any) -> ShuffledEpoch:
    """So many reports of so many values, each of this local epsilon; and further fields."""
    return ShuffledEpoch(reports=reports, categories=categories, epsilon_local=local, **further)
