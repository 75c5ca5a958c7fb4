"""Weighted least squares for a decode: a column for some candidates, and one for all other strings.

A candidate outside the fit gets the coefficient it would have if it were added (the added variable
of a partial regression), so every candidate has an unbiased estimate whatever is fitted.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from hubbub.analysis.arrays import Floats, Mask
from hubbub.analysis.strings.decode_equations import Design, Indices

# Shares of a row's squared length below this are rounding: the row lies in the fitted columns.
_MIN: Final = 1e-8
# Coins alone give residuals of 1; below a hundredth of their squares the collection is empty.
_QUIETEST: Final = 1e-2
# A candidate's misfit up to this many standard deviations counts as chance.
_CHANCE: Final = 0.5
# Candidates per step, and standard errors from which on a search checks a candidate closely.
_CHUNK: Final = 4096
_NEAR: Final = 1.5
# Relative to the largest number: values nearer to zero count as zero.
_ROUNDING: Final = 1e-11
# Number of failed exchanges of columns before they are exchanged one by one.
_TRIES: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Least squares on the columns `fitted` (indices of candidates) and one for all other strings.

    Args:
        estimates, stderrs: per candidate, fitted or not, in reports.
        unease: per candidate, ratio of the misfit of its own equations to that of all, at least 1.
        others: estimate and standard error of the last column, in reports.
        squares, freedom: weighted sum of squared residuals, about `freedom` for a correct fit.
        normal: normal equations (matrix, right side) of the fitted columns and the last.
    """

    fitted: Indices
    estimates: Floats
    stderrs: Floats
    unease: Floats
    others: tuple[float, float]
    squares: float
    freedom: int
    normal: tuple[Floats, Floats]

    @property
    def scores(self) -> Floats:
        """Estimates in standard errors, reduced where a candidate's own equations fit badly.

        A string that shares many bits with a frequent string outside the candidates has high counts
        only in those equations; noise would raise all of its equations a little.
        """
        return self.estimates / self.held_back

    @property
    def held_back(self) -> Floats:
        """Standard errors, larger where a candidate's own equations fit badly."""
        return self.stderrs * np.sqrt(self.unease)


def fit(design: Design, fitted: Indices, *, everywhere: bool = True) -> Fit:
    """The weighted least squares fit on these columns.

    With `everywhere`, candidates far from detection get their exact standard error too; a search
    does without, and theirs is then too small by the few percent that the fit explains. Raises
    numpy.linalg.LinAlgError if the columns depend on each other.
    """
    columns = np.append(fitted, len(design))
    with_others = np.append(design.beside_others, design.others @ design.others)
    side = np.append(design.beside_target, design.others @ design.target)[columns]
    inner = np.empty((len(columns), len(columns)))
    inner[:-1, :-1] = design.products(fitted, fitted)
    inner[-1, :] = inner[:, -1] = with_others[columns]
    pivots = np.diag(np.linalg.cholesky(inner)) ** 2  # of each column, beside those before it
    if (pivots < _MIN * np.diag(inner)).any():
        raise np.linalg.LinAlgError("columns depend on each other")
    inverse = np.linalg.inv(inner)
    amounts = inverse @ side
    residual = design.target - design.compose(fitted, amounts[:-1]) - amounts[-1] * design.others
    squares, freedom = float(residual @ residual), design.equations - len(columns)
    squares = max(squares, _QUIETEST * freedom)
    sigma = np.sqrt(squares / freedom)
    # Remainder of a candidate's row: its length minus the part that the columns explain.
    least = _MIN * design.squares.max(initial=1.0)
    squares_left = np.maximum(design.squares - with_others[:-1] ** 2 / with_others[-1], least)
    gains = design.dot(residual)
    unfitted = np.ones(len(design), dtype=np.bool_)
    unfitted[fitted] = False
    if not everywhere:
        unfitted &= gains > _NEAR * sigma * np.sqrt(squares_left)
    rows = np.nonzero(unfitted)[0]
    for first in range(0, len(rows), _CHUNK):
        chunk = rows[first : first + _CHUNK]
        shared = np.column_stack([design.products(chunk, fitted), with_others[chunk]])
        explained = np.einsum("ij,ij->i", shared @ inverse, shared)
        squares_left[chunk] = np.maximum(design.squares[chunk] - explained, least)
    estimates, stderrs = gains / squares_left, sigma / np.sqrt(squares_left)
    errors = sigma * np.sqrt(np.diag(inverse))
    estimates[fitted], stderrs[fitted] = amounts[:-1], errors[:-1]
    # Chance alone changes a mean of squared normal residuals by this much.
    chance = np.sqrt(2 / np.maximum(design.sizes, 1))
    ratio = design.mean(residual**2) * design.equations / squares
    unease = np.maximum(1.0, ratio - _CHANCE * chance)
    others = (float(amounts[-1]), float(errors[-1]))
    return Fit(
        fitted=fitted,
        estimates=estimates,
        stderrs=stderrs,
        unease=unease,
        others=others,
        squares=squares,
        freedom=freedom,
        normal=(inner, side),
    )


def independent(design: Design, columns: Indices) -> Indices:
    """The columns that do not depend on earlier ones, or on the column of other strings.

    Cholesky's elimination, which skips a column of which nothing remains.
    """
    if not len(columns):
        return columns
    inner = design.products(columns, columns)
    with_others = design.beside_others[columns]
    inner -= np.outer(with_others, with_others) / (design.others @ design.others)
    least = _MIN * design.squares[columns]
    mask = np.zeros(len(columns), dtype=np.bool_)
    for index in range(len(columns)):
        row = inner[index, index:].copy()
        if row[0] > least[index]:
            mask[index] = True
            inner[index:, index:] -= np.outer(row, row) / row[0]
    return columns[mask]


def non_negative(matrix: Floats, side: Floats) -> Floats:
    """The x >= 0 that minimizes x'Ax/2 - b'x, for a positive definite `matrix` A and `side` b.

    Block principal pivoting: exchanges all columns with a wrong sign at once, or one at a time if
    that runs in circles. Portugal, Judice and Vicente (1994), section 3.
    """
    size = len(side)
    positive: Mask = np.ones(size, dtype=np.bool_)
    answer = np.zeros(size)
    fewest, tries = size + 1, _TRIES
    # Rounding alone could keep it from ending; far fewer rounds are ever needed.
    for _ in range(_TRIES * (size + 10)):
        answer, slope = np.zeros(size), np.zeros(size)
        indices = np.nonzero(positive)[0]
        answer[indices] = np.linalg.solve(matrix[np.ix_(indices, indices)], side[indices])
        slope[~positive] = (matrix[:, indices] @ answer[indices] - side)[~positive]
        # Included columns that are negative, and excluded ones that would help.
        edge, steep = (
            _ROUNDING * float(np.abs(numbers).max(initial=0.0)) for numbers in (answer, side)
        )
        wrong = np.nonzero((positive & (answer < -edge)) | (slope < -steep))[0]
        if not len(wrong):
            break
        if len(wrong) < fewest:
            fewest, tries = len(wrong), _TRIES
        elif tries:
            tries -= 1
        else:
            wrong = wrong[-1:]
        positive[wrong] ^= True
    return np.maximum(answer, 0.0)
