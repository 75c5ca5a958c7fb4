"""Ranks are kept with the answers that they are of: what they hold is counted, and asked once."""

from unittest.mock import patch

import numpy as np
import pytest

from hubbub.analysis.percentiles import PERCENTILES, percentiles_of
from hubbub.analysis.ranks import ranks_by_fit
from hubbub.mechanisms import build
from tests.statistics.calibration.percentiles import draw_ranks


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("wave", {"low": 0, "high": 48, "buckets": 48}),
        ("haar", {"low": 0, "high": 48, "buckets": 48}),
        ("unary.oue", {"categories": 48}),
    ],
)
def test_ranks_hold_no_more_than_they_say(name: str, own: dict[str, float]) -> None:
    own_ranks = draw_ranks(
        build(name, epsilon=1.0, **own), np.full(48, 50.0), np.random.default_rng(1)
    )
    percentiles_of(own_ranks, PERCENTILES, 0.95)
    nested = [array for value in vars(own_ranks).values() for array in _arrays(value)]
    assert 0 < sum(array.size for array in nested) <= own_ranks.size


def test_a_requested_percentile_needs_no_further_fit() -> None:
    mechanism = build("wave", epsilon=1.0, low=0, high=16, buckets=16)
    own_ranks = draw_ranks(mechanism, np.full(16, 40.0), np.random.default_rng(1))
    first = percentiles_of(own_ranks, PERCENTILES, 0.95)
    with patch.object(ranks_by_fit, "_fit_shares", side_effect=AssertionError("fits again")):
        assert percentiles_of(own_ranks, PERCENTILES, 0.95) == first
        with pytest.raises(AssertionError, match="fits again"):
            percentiles_of(own_ranks, (42.0,), 0.95)


def _arrays(value: object) -> list[np.ndarray[tuple[int, ...], np.dtype[np.float64]]]:
    if isinstance(value, tuple):
        return [array for item in value for array in _arrays(item)]
    return [value] if isinstance(value, np.ndarray) else []
