"""Shrinkage: what an estimate is worth once one has seen all the others.

The largest of many noisy estimates are large partly by luck. How large the truths tend to be can be
read off all estimates together; the mean of a truth given its own estimate then follows from Bayes'
rule. Never raises an estimate's square error on average; biased towards zero, so it is used for
the fitted column of a decode only.

Source: nonparametric maximum likelihood of the mixing law, Kiefer and Wolfowitz (1956), by the EM
algorithm; Efron (2011), "Tweedie's formula and selection bias".
"""

from typing import Final

import numpy as np

from hubbub.analysis.arrays import Floats

_STEPS: Final = 200
_TRUTHS: Final = 61
_BIN: Final = 0.1  # of scores, in standard errors: a hundredth of their variance
_TAIL: Final = 6.0  # scores past these differ from their truths by nothing that matters


def shrunk(scores: Floats) -> Floats:
    """The expected truths >= 0 behind these scores, both in standard errors, never above them."""
    if not len(scores):
        return np.zeros(0)
    low, high = min(float(scores.min()), 0.0), max(float(scores.max()), 1.0)
    near = np.linspace(0, min(high, _TAIL), _TRUTHS)
    far = np.geomspace(_TAIL, high, _TRUTHS)[1:] if high > _TAIL else np.zeros(0)
    truths = np.concatenate([near, far])
    bins = np.round((scores - low) / _BIN).astype(np.int64)
    bins, where, many = np.unique(bins, return_inverse=True, return_counts=True)
    seen = low + bins * _BIN
    chances = np.exp(-0.5 * (seen[:, None] - truths) ** 2)
    weights = np.full(len(truths), 1 / len(truths))
    for _ in range(_STEPS):
        chances_of = chances * weights
        given = chances_of / np.maximum(chances_of.sum(axis=1, keepdims=True), 1e-300)
        weights = many @ given / many.sum()
    posterior = chances * weights
    total = np.maximum(posterior.sum(axis=1), 1e-300)
    expected = np.where(seen > _TAIL, seen, posterior @ truths / total)
    answer: Floats = np.minimum(expected[where], np.maximum(scores, 0.0))
    return answer
