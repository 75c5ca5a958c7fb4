"""Decoding RAPPOR: from bit counts per cohort to how many reports hold each candidate string.

Every bit count is debiased on its own (Rappor.estimate). What a candidate adds to the bits is its
row: N_c / N in each of its Bloom bits of cohort c, since cohorts are drawn by chance. The strings
that stand out are found one after the other, strongest first, each time refitting all found so
far by least squares, together with a column for the mass that is spread over all other strings.
Then every candidate, found or not, gets an unbiased estimate: its coefficient when it is added to
that fit. Standard errors come from the fit's own residuals, which hold the noise of the coins and
the collisions with strings that are not in the fit.

Source: the regression of Erlingsson, Pihur, Korolova (CCS 2014), section 4; the order of search is
orthogonal matching pursuit (Pati, Rezaiifar, Krishnaprasad 1993).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt

from hubbub.analysis.intervals import discoveries
from hubbub.errors import BadParameter, BatchTooSmall
from hubbub.mechanisms import Rappor, Totals

__all__ = ["Decoded", "decode"]

Floats = npt.NDArray[np.float64]

# The chance that chance alone adds any string to the fit, over all candidates (Bonferroni).
_SEARCH_ALPHA: Final = 0.05
# A fit may use at most this share of the equations; past it, residuals say nothing.
_MOST_OF_EQUATIONS: Final = 0.25


@dataclass(frozen=True, slots=True)
class Decoded:
    """Per candidate: estimate and standard error in reports, and whether it was detected."""

    estimates: Floats
    stderrs: Floats
    detected: npt.NDArray[np.bool_]


def decode(
    mechanism: Rappor, totals: Totals, candidates: Sequence[str], rate: float = 0.05
) -> Decoded:
    """Estimates for every candidate; detections at this false discovery rate.

    Raises:
        BadParameter: no candidates, or one twice.
        BatchTooSmall: a cohort has no report at all.
        ShapeMismatch: totals of another shape than the mechanism's.
    """
    if not candidates or len(set(candidates)) != len(candidates):
        raise BadParameter("candidates must be at least one string, none twice")
    bits = np.array(mechanism.estimate(totals).values)
    cohort_reports = np.array(totals.cells[:: mechanism.bits + 1], dtype=np.float64)
    if not cohort_reports.all():
        raise BatchTooSmall(f"{totals.reports} reports leave a cohort empty; wait for more")
    problem = _Problem(mechanism, bits, cohort_reports, candidates)
    found = _search(problem)
    estimates, stderrs = problem.estimates(found)
    return Decoded(estimates, stderrs, discoveries(estimates.tolist(), stderrs.tolist(), rate))


class _Problem:
    """Weighted least squares with one column per found string and one for everything else.

    Rows of the design are sparse: `places` holds, per candidate, its cells in the flat vector of
    bit estimates, `weights` what it adds there. Equations are scaled so that their noise is alike.
    """

    def __init__(
        self, mechanism: Rappor, bits: Floats, cohort_reports: Floats, candidates: Sequence[str]
    ) -> None:
        share = cohort_reports / cohort_reports.sum()
        # The noise of a bit grows with its cohort's reports; it hardly depends on the bit itself.
        scale = np.repeat(1 / np.sqrt(share), mechanism.bits)
        self.target = bits * scale
        self._others = np.repeat(share, mechanism.bits) * scale
        self._places, holds = _places(mechanism, candidates)
        self._weights: Floats = self._others[self._places] * holds
        self._squares = self.dot(self._others)

    def dot(self, vector: Floats) -> Floats:
        """The product of every candidate's row with a vector over the equations."""
        products: Floats = np.einsum("ij,ij->i", vector[self._places], self._weights)
        return products

    def estimates(self, found: Sequence[int]) -> tuple[Floats, Floats]:
        """Per candidate: its coefficient beside the found ones and the rest, and its error."""
        fixed = self._columns(found)
        basis, _ = np.linalg.qr(fixed)
        residual = self.target - basis @ (basis.T @ self.target)
        freedom = len(self.target) - fixed.shape[1]
        sigma = np.sqrt(residual @ residual / freedom)
        # A candidate's own part of its row: what the fixed columns cannot explain.
        own = self._squares - sum(self.dot(column) ** 2 for column in basis.T)
        own = np.maximum(own, 1e-12 * self._squares.max())
        estimates = self.dot(residual) / own
        stderrs = sigma / np.sqrt(own)
        if found:
            inverse = np.linalg.inv(fixed.T @ fixed)
            estimates[found] = (inverse @ fixed.T @ self.target)[:-1]
            stderrs[found] = sigma * np.sqrt(np.diag(inverse))[:-1]
        return estimates, stderrs

    def _columns(self, found: Sequence[int]) -> Floats:
        columns = np.zeros((len(self.target), len(found) + 1))
        for column, candidate in enumerate(found):
            # Places past a string's own bits repeat its cohort's first cell, with weight 0.
            np.add.at(columns[:, column], self._places[candidate], self._weights[candidate])
        columns[:, -1] = self._others
        return columns

    @property
    def most(self) -> int:
        """The most strings that may enter the fit."""
        return min(int(len(self.target) * _MOST_OF_EQUATIONS), len(self._places))


def _search(problem: _Problem) -> list[int]:
    """The candidates that stand out, strongest first."""
    found: list[int] = []
    while len(found) < problem.most:
        estimates, stderrs = problem.estimates(found)
        scores = estimates / stderrs
        scores[found] = -np.inf
        best = int(np.argmax(scores))
        if scores[best] < NormalDist().inv_cdf(1 - _SEARCH_ALPHA / len(scores)):
            break
        found.append(best)
    return found


def _places(
    mechanism: Rappor, candidates: Sequence[str]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Per candidate the flat cells of its Bloom bits, and 1, or 0 where a cohort has fewer."""
    shape = (len(candidates), mechanism.cohorts, mechanism.hashes)
    places, holds = np.zeros(shape, dtype=np.int64), np.zeros(shape)
    for row, candidate in enumerate(candidates):
        for cohort, positions in enumerate(mechanism.positions(candidate)):
            places[row, cohort, : len(positions)] = positions
            holds[row, cohort, : len(positions)] = 1
    places += np.arange(mechanism.cohorts)[None, :, None] * mechanism.bits
    return places.reshape(len(candidates), -1), holds.reshape(len(candidates), -1)
