"""The distribution of a number from `wave`: maximum likelihood with smoothing.

Every place of the report's line is likely for the buckets whose window covers it. The shares of the
buckets that make the totals most likely are found by expectation and maximization, smoothing a
little after every step so that noise does not grow teeth. Smoothing makes a small bias towards
evenness, largest at sharp peaks; the standard errors are those of the noise.

Source: Li et al. (SIGMOD 2020), section 5.5, EMS. Standard errors by the delta method at the fixed
point (ours: docs/decisions/0010-discrete-forms.md).
"""

from typing import Final

import numpy as np

from hubbub.analysis.intervals import Floats
from hubbub.errors import BatchTooSmall
from hubbub.mechanisms import Totals
from hubbub.mechanisms.wave import SquareWave

__all__ = ["distribution"]

_ROUNDS: Final = 5000
_FINE: Final = 1024
# The largest change of a share in a round at which the fixed point is taken as reached.
_CHANGE: Final = 1e-9


def distribution(mechanism: SquareWave, totals: Totals) -> tuple[Floats, Floats]:
    """Per bucket: how many reports hold a number in it, and its standard error; in reports.

    Raises:
        BatchTooSmall: not a single report.
        ShapeMismatch: totals of another shape than the mechanism's.
    """
    totals.check(mechanism.layout)
    if not totals.reports:
        raise BatchTooSmall("no report at all: there is nothing to estimate")
    near, far = float(mechanism.window.near), float(mechanism.window.far)
    buckets, width = mechanism.buckets, mechanism.window.width
    places = np.arange(mechanism.layout.size)[:, None] - np.arange(buckets)
    chances = np.where((places >= 0) & (places < width), near, far)  # of a place, given a bucket
    seen = np.array(totals.cells, dtype=np.float64) / totals.reports
    smooth = _smoothing(buckets)
    shares = np.full(buckets, 1 / buckets)
    for _ in range(_ROUNDS):
        better = smooth @ (shares * (chances.T @ (seen / (chances @ shares))))
        better /= better.sum()
        change = np.abs(better - shares).max()
        shares = better
        if change < _CHANGE:
            break
    return shares * totals.reports, _errors(chances, seen, shares, smooth) * np.sqrt(totals.reports)


def _errors(chances: Floats, seen: Floats, shares: Floats, smooth: Floats) -> Floats:
    """Of one report's shares: how the fixed point moves with the totals, times their noise."""
    expected = chances @ shares
    weights = chances.T @ (seen / expected)
    through_shares = smooth @ (
        np.diag(weights) - shares[:, None] * (chances.T @ (chances * (seen / expected**2)[:, None]))
    )
    through_seen = smooth @ (shares[:, None] * chances.T / expected)
    # A round also divides by the sum of what it made, which is close to 1.
    keep_sum = np.eye(len(shares)) - np.outer(shares, np.ones(len(shares)))
    moves = np.linalg.solve(
        np.eye(len(shares)) - keep_sum @ through_shares, keep_sum @ through_seen
    )
    mean = moves @ expected
    variances: Floats = (moves**2) @ expected - mean**2
    errors: Floats = np.sqrt(np.maximum(variances, 0.0))
    return errors


def _smoothing(buckets: int) -> Floats:
    """What a bucket keeps, and gives to each neighbour, in a round.

    The published quarter is for 1,024 buckets; the same blur over the range takes less of fewer.
    """
    give = 0.25 * min(1.0, (buckets / _FINE) ** 2)
    rows = np.diag(np.full(buckets, 1 - 2 * give))
    rows += np.diag(np.full(buckets - 1, give), 1) + np.diag(np.full(buckets - 1, give), -1)
    rows /= rows.sum(axis=1, keepdims=True)
    return rows
