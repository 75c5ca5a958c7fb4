"""Decodes RAPPOR: from bit counts per cohort to the number of reports of each candidate string.

Weighted least squares (rappor_equations.py) estimates each candidate's reports from debiased bit
counts, and those of all other strings in one more column. With enough equations, every candidate
has a column. Otherwise only those that stand out do: the fit and the list of what stands out are
updated in turn until neither changes.

Source: the regression of Erlingsson, Pihur, Korolova (CCS 2014), section 4;
docs/decisions/0216-strings.md describes what was tried.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import erfc, sqrt
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from hubbub.analysis.arrays import Floats, Mask
from hubbub.analysis.strings.rappor_equations import (
    Collection,
    Design,
    Fit,
    Places,
    bloom_places,
    fit,
    independent,
    non_negative,
)
from hubbub.analysis.uncertainty.intervals import discoveries
from hubbub.analysis.value_estimates import ValueEstimates
from hubbub.errors import BadParameter, BatchTooSmall
from hubbub.mechanisms import Totals
from hubbub.mechanisms.rappor import Rappor

_STEPS: Final = 200
_TRUTHS: Final = 61
_BIN: Final = 0.1  # error of scores, in standard errors: a hundredth of their variance
_TAIL: Final = 6.0  # larger scores differ from the truth by a negligible amount
# Up to this share of the equations, a column per candidate hardly widens intervals and has no bias
# for any truth; up to the next share it may be used; measured in 0216-strings.md.
_PLENTY: Final = 1 / 6
_MAX_JOINT: Final = 3 / 4
# A fit of the clearest candidates may use at most this share, to leave enough residuals.
_MAX: Final = 1 / 4
_MAX_COLUMNS: Final = 4000
_ROUNDS: Final = 30
_FEWEST: Final = 8  # equations: one column and enough residuals to tell their noise


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """The result of a decode. Arrays have one entry per candidate; numbers are in reports.

    Args:
        estimates, stderrs: unbiased, hence possibly negative.
        low, high: intervals at `confidence`; for a detected string, among the detected ones.
        fitted: non-negative fit of the detected strings, 0 elsewhere.
        twins: groups of candidates with the same bits in every cohort; each of them has the numbers
            of the whole group.
        others: reports of strings that are no candidate, and its standard error.
        misfit: sum of squared residuals divided by its expectation, and an upper bound on the
            probability of one so large. Both are None if not every candidate has a column, since
            the fit then cannot explain undetected candidates.
    """

    estimates: Floats
    stderrs: Floats
    p_values: Floats
    detected: Mask
    low: Floats
    high: Floats
    fitted: Floats
    twins: tuple[tuple[int, ...], ...]
    others: tuple[float, float] | None
    misfit: tuple[float, float] | None


def decode(
    mechanism: Rappor,
    totals: Totals,
    candidates: Sequence[str],
    rate: float = 0.05,
    confidence: float = 0.95,
    *,
    repeats: int = 1,
) -> Decoded:
    """Decodes totals of `mechanism`; detections at this false discovery rate.

    `repeats` is the largest number of reports from one device. Raises BadParameter without
    candidates or for one twice, BatchTooSmall without reports or for fewer than eight bits in all,
    and ShapeMismatch for totals of another shape.
    """
    totals.check(mechanism.layout)
    if len(set(candidates)) != len(candidates):
        raise BadParameter("a candidate occurs twice; write each once")
    counts = np.array(totals.cells, dtype=np.int64).reshape(mechanism.cohorts, mechanism.bits + 1)
    collection = Collection(counts, mechanism.hashes, mechanism.chain.channel)
    places = bloom_places(mechanism, candidates)
    return decode_counts(collection, places, rate, confidence, repeats=repeats)


def decode_counts(
    collection: Collection,
    places: Places,
    rate: float = 0.05,
    confidence: float = 0.95,
    *,
    repeats: int = 1,
) -> Decoded:
    """Decode bit counts from any collection; `places` are as for `Design`."""
    if not len(places):
        raise BadParameter("no candidates: name the strings to look for")
    # Distinct rows: the first candidate of each, and the number of each candidate's row.
    numbers: dict[bytes, int] = {}
    rows = np.sort(places, axis=1)
    groups = np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in rows])
    _, firsts = np.unique(groups, return_index=True)
    members: dict[int, list[int]] = {}
    for candidate, group in enumerate(groups.tolist()):
        members.setdefault(group, []).append(candidate)
    design = Design(collection, places[firsts])
    if not design.equations >= _FEWEST:
        raise BatchTooSmall(
            f"decoding needs {_FEWEST} bits in cohorts with reports, and there are "
            f"{design.equations}"
        )
    fit_result = _search(design, rate)
    p = ndtr(-fit_result.scores)
    # A candidate whose score is reduced has an interval wider by the same amount.
    figures = ValueEstimates.flat(fit_result.estimates, fit_result.held_back)
    low, high, detected = figures.ranked(collection.reports, confidence, rate)
    joint = len(fit_result.fitted) == len(design)
    return Decoded(
        estimates=fit_result.estimates[groups],
        stderrs=fit_result.stderrs[groups],
        p_values=p[groups],
        detected=detected[groups],
        low=low[groups],
        high=high[groups],
        fitted=np.where(detected, _fitted_amounts(fit_result), 0.0)[groups],
        twins=tuple(tuple(group) for group in members.values() if len(group) > 1),
        others=fit_result.others if joint else None,
        misfit=_misfit(fit_result, repeats) if joint else None,
    )


def _misfit(fit_result: Fit, repeats: int) -> tuple[float, float]:
    """Ratio of squared residuals to their expectation, and an upper bound on its p-value.

    `repeats` reports of one device may share their permanent lies: squared errors then grow by that
    factor at most.
    """
    misfit = fit_result.squares / fit_result.freedom
    misfit_per_report = misfit / repeats
    spread = sqrt(2 / (9 * fit_result.freedom))  # Wilson and Hilferty (1931)
    worse = (
        erfc((misfit_per_report ** (1 / 3) - 1 + 2 / (9 * fit_result.freedom)) / spread / sqrt(2))
        / 2
    )
    return misfit, worse


def _search(design: Design, rate: float) -> Fit:
    """The fit on all candidates, or on those that stand out, whichever is more precise."""
    if len(design) > min(design.equations * _MAX_JOINT, _MAX_COLUMNS):
        return _fit_standing_out(design, rate)
    try:
        joint = fit(design, np.arange(len(design)))
    except np.linalg.LinAlgError:
        return _fit_standing_out(design, rate)  # rows that add up to others
    if len(design) <= design.equations * _PLENTY:
        return joint
    standing = _fit_standing_out(design, rate)
    return min(joint, standing, key=lambda fit_result: float(np.log(fit_result.stderrs).mean()))


def _fit_standing_out(design: Design, rate: float) -> Fit:
    """The fit on the candidates that stand out in this same fit."""
    max_columns = int(min(design.equations * _MAX, _MAX_COLUMNS))
    columns: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)
    keys: set[bytes] = set()
    for _ in range(_ROUNDS):
        scores = _fit(design, columns, everywhere=False).scores
        standing = np.nonzero(discoveries(ndtr(-scores), rate))[0]
        columns = standing[np.argsort(-scores[standing], kind="stable")[:max_columns]]
        if (key := np.sort(columns).tobytes()) in keys:
            break
        keys.add(key)
    return _fit(design, columns, everywhere=True)


def _fit(design: Design, columns: npt.NDArray[np.int64], *, everywhere: bool) -> Fit:
    """The fit on these columns, strongest first; dependent columns are dropped."""
    try:
        return fit(design, columns, everywhere=everywhere)
    except np.linalg.LinAlgError:
        return fit(design, independent(design, columns), everywhere=everywhere)


def _fitted_amounts(fit_result: Fit) -> Floats:
    """The non-negative fit of the columns, shrunk towards the distribution of the estimates."""
    matrix, side = fit_result.normal
    amounts = non_negative(matrix, side)
    indices = np.nonzero(np.append(amounts[:-1] > 0, True))[0]
    errors = np.sqrt(np.diag(np.linalg.inv(matrix[np.ix_(indices, indices)])))[:-1]
    errors *= np.sqrt(fit_result.squares / fit_result.freedom)
    values, stderrs = fit_result.estimates.copy(), fit_result.stderrs.copy()
    values[fit_result.fitted] = amounts[:-1]
    stderrs[fit_result.fitted[indices[:-1]]] = errors
    # A column that the constraint set to 0 keeps its own score, since it is part of the evidence.
    scores = np.where(values > 0, values, fit_result.estimates) / stderrs
    return np.minimum(np.maximum(values, 0.0), shrunk(scores) * stderrs)


def shrunk(scores: Floats) -> Floats:
    """Posterior means of the truths >= 0 behind these scores, in standard errors; never larger."""
    if not len(scores):
        return np.zeros(0)
    low, high = min(float(scores.min()), 0.0), max(float(scores.max()), 1.0)
    small_truths = np.linspace(0, min(high, _TAIL), _TRUTHS)
    large_truths = np.geomspace(_TAIL, high, _TRUTHS)[1:] if high > _TAIL else np.zeros(0)
    truths = np.concatenate([small_truths, large_truths])
    bins = np.round((scores - low) / _BIN).astype(np.int64)
    bins, where, many = np.unique(bins, return_inverse=True, return_counts=True)
    centres = low + bins * _BIN
    chances = np.exp(-0.5 * (centres[:, None] - truths) ** 2)
    weights = np.full(len(truths), 1 / len(truths))
    for _ in range(_STEPS):
        each = np.maximum(chances @ weights, 1e-300)
        weights = weights * ((many / each) @ chances) / many.sum()
    posterior = chances * weights
    total = np.maximum(posterior.sum(axis=1), 1e-300)
    expected = np.where(centres > _TAIL, centres, posterior @ truths / total)
    return np.minimum(expected[where], np.maximum(scores, 0.0))
