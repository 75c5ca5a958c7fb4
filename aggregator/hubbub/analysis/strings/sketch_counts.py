"""Strings counted by a sketch (`cms`, `hcms`, `local_hash`): their buckets, less collisions.

A candidate's count is the sum of its bucket over all hash functions; strings that share the bucket
add the same share to it on average, which is taken off. What is left of the collisions is no bias
over the hash functions but an error, and more reports do not lessen it: its size is read off the
unevenness of the buckets, and stands in the standard error.

Source: A_server of Apple, Learning with Privacy at Scale (2017); the collisions' variance from the
second moment of the buckets, as in Alon, Matias, Szegedy (1996).
"""

from collections.abc import Sequence

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.analysis.estimators.vectorized_estimate import walsh_hadamard
from hubbub.analysis.strings.candidate_positions import sketch_buckets
from hubbub.analysis.uncertainty.intervals import Tail
from hubbub.analysis.uncertainty.tails import collision_tail
from hubbub.errors import BatchTooSmall
from hubbub.mechanisms import Totals
from hubbub.mechanisms.cms import CountMeanSketch
from hubbub.mechanisms.hcms import HadamardSketch
from hubbub.mechanisms.local_hash import LocalHashing

Sketch = CountMeanSketch | HadamardSketch | LocalHashing


def buckets(mechanism: Sketch, totals: Totals) -> tuple[Floats, Floats]:
    """Per function and bucket how many of its reports are in it, and per function its reports.

    Shapes (hashes, width) and (hashes,). Unbiased; the same as `mechanism.estimate`.
    """
    totals.check(mechanism.layout)
    cells = np.array(totals.cells, dtype=np.int64).reshape(mechanism.hashes, -1)
    if isinstance(mechanism, CountMeanSketch):
        reports, supports = cells[:, 0], cells[:, 1:]
    elif isinstance(mechanism, LocalHashing):
        reports, supports = cells.sum(axis=1), cells
    else:
        reports = cells.sum(axis=1)
        signed = cells[:, ::2] - cells[:, 1::2]
        seen = np.stack([walsh_hadamard(row) for row in signed])
        supports = (reports[:, None] + seen) // 2
    p, q = float(mechanism.channel.p), float(mechanism.channel.q)
    return (supports - reports[:, None] * q) / (p - q), reports.astype(np.float64)


def count(
    mechanism: Sketch, totals: Totals, candidates: Sequence[str]
) -> tuple[Floats, Floats, Floats, Tail | None]:
    """Per candidate: estimate, standard error, and the standard error were it absent; in reports.

    And how far chance goes with one that is absent.

    Raises:
        BatchTooSmall: not a single report.
        ShapeMismatch: totals of another shape than the mechanism's.
    """
    held, reports = buckets(mechanism, totals)
    n, width, functions = reports.sum(), mechanism.width, mechanism.hashes
    if not n:
        raise BatchTooSmall("no report at all: there is nothing to estimate")
    places = sketch_buckets(mechanism, candidates)
    own = held[np.arange(functions), places].sum(axis=1)
    stretch = width / (width - 1)
    estimates = stretch * (own - n / width)
    of_held, of_other = mechanism.channel.variance(1, 1), mechanism.channel.variance(0, 1)
    # Noise is linear in what a bucket truly holds, so it is taken at the unbiased estimate.
    squares = (held**2).sum() - (of_held * n + of_other * n * (width - 1))
    uneven = (squares - (reports**2).sum() / width) * stretch
    share = (1 - 1 / width) / width

    def errors(true: Floats) -> Floats:
        inside = true + (n - true) / width
        coins = inside * of_held + (n - inside) * of_other
        # Of the other strings' reports in a function, squared and summed: each stands for one.
        others = np.maximum(uneven - true**2 / functions - true, n - true)
        answer: Floats = stretch * np.sqrt(coins + share * others)
        return answer

    absent = errors(np.zeros_like(estimates))
    tail = collision_tail(held, float(absent[0]) / stretch) if len(absent) else None
    return estimates, errors(np.clip(estimates, 0, n)), absent, tail
