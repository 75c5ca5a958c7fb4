"""Equations of a decode, kept sparse, and their solution by weighted least squares.

A collection gives one equation per cohort and Bloom bit: the noisy number of reports of strings
with that bit. A candidate occurs in the few equations of its own bits, with its cohort's share of
its reports. Equations are divided by their noise, so that all have the same weight.

A candidate outside the fit gets the coefficient it would have if it were added (the added variable
of a partial regression), so every candidate has an unbiased estimate whatever is fitted.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from hubbub.analysis.arrays import Floats, Mask
from hubbub.errors import BatchTooSmall, ShapeMismatch
from hubbub.mechanisms.pure_protocols import Pure
from hubbub.mechanisms.rappor import Rappor
from hubbub.mechanisms.string_hashing import WORDS, Sketch, digest, encoded

Places = npt.NDArray[np.int32]
Indices = npt.NDArray[np.int64]

# Candidates, and pairs of equations, per step: they limit its memory.
_CHUNK: Final = 2048
_PAIRS: Final = 1 << 20
# Digests held at a time, 16 bytes each.
_DIGESTS: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Collection:
    """Bit counts of a RAPPOR collection; p and q of `channel` are chances that a bit is sent as 1.

    `counts` has shape (cohorts, 1 + bits): for each cohort the reports, then the count of each bit.
    """

    counts: npt.NDArray[np.int64]
    hashes: int
    channel: Pure

    @property
    def cohorts(self) -> int:
        """Number of cohorts."""
        return len(self.counts)

    @property
    def bits(self) -> int:
        """Number of Bloom bits per cohort."""
        return int(self.counts.shape[1]) - 1

    @property
    def reports(self) -> int:
        """Number of reports in all cohorts."""
        return int(self.counts[:, 0].sum())


def padded_places(cells: Places, padding: int) -> Places:
    """Cells of each candidate, shape (candidates, width), in the form for `Design`.

    If two hashes set the same bit, it counts once, and `padding` replaces the second.
    """
    places = np.sort(cells, axis=1)
    is_repeated = np.zeros(places.shape, dtype=np.bool_)
    is_repeated[:, 1:] = places[:, 1:] == places[:, :-1]
    places[is_repeated] = padding
    return places


class Design:
    """The equations of a collection, and the row of every candidate in them.

    `places` has shape (candidates, width): the flat cells cohort * bits + bit that a candidate
    sets, each once, padded with cohorts * bits. Raises BatchTooSmall without reports, and
    ShapeMismatch for a place outside the collection.
    """

    def __init__(self, collection: Collection, places: Places) -> None:
        cohorts, bits = collection.cohorts, collection.bits
        if not collection.reports:
            raise BatchTooSmall("no reports: there is nothing to decode")
        if places.size and not (places.min() >= 0 and places.max() <= cohorts * bits):
            raise ShapeMismatch(f"a place is outside [0, {cohorts * bits}]")
        reports = collection.counts[:, 0].astype(np.float64)
        p, q = float(collection.channel.p), float(collection.channel.q)
        usual = 1 - (1 - 1 / bits) ** collection.hashes  # the chance that a string sets a bit
        coins = usual * p * (1 - p) + (1 - usual) * q * (1 - q)
        # Noise of a bit's estimate: the coins', and which of a string's reports fell in the cohort.
        noise = reports * (coins / (p - q) ** 2 + usual)
        scale = np.divide(1, np.sqrt(noise), out=np.zeros_like(noise), where=noise > 0)
        ones = (collection.counts[:, 1:] - q * reports[:, None]) / (p - q)
        share = reports / reports.sum() * scale
        self.places = places
        self.target: Floats = (ones * scale[:, None]).reshape(-1)
        self.others: Floats = np.repeat(share * usual, bits)
        self.equations = int(np.count_nonzero(reports)) * bits
        self.reports = collection.reports
        # Contribution of one report to each equation of its string; 0 for the padding cell.
        self._weights: Floats = np.append(np.repeat(share, bits), 0.0)

    def __len__(self) -> int:
        return len(self.places)

    @cached_property
    def sizes(self) -> Indices:
        """Number of equations of each candidate."""
        sizes: Indices = np.count_nonzero(self.places < len(self.target), axis=1)
        return sizes

    @cached_property
    def squares(self) -> Floats:
        """Squared length of each candidate's row."""
        return self._sums(self._weights**2)

    @cached_property
    def product_with_others(self) -> Floats:
        """Product of each candidate's row with the column of all other strings."""
        return self.dot(self.others)

    @cached_property
    def beside_target(self) -> Floats:
        """Product of each candidate's row with the observed counts."""
        return self.dot(self.target)

    def dot(self, vector: Floats) -> Floats:
        """Product of each candidate's row with a vector over the equations."""
        return self._sums(np.append(vector, 0.0) * self._weights)

    def mean(self, vector: Floats) -> Floats:
        """Mean of a vector over each candidate's own equations."""
        return self._sums(np.append(vector, 0.0)) / np.maximum(self.sizes, 1)

    def compose(self, candidates: Indices, amounts: Floats) -> Floats:
        """Sum of these candidates' rows, each multiplied by its amount."""
        places = self.places[candidates]
        parts = self._weights[places] * amounts[:, None]
        size = len(self.target)
        sums = np.bincount(places.reshape(-1), parts.reshape(-1), minlength=size + 1)
        return sums[:size].astype(np.float64)

    def products(self, candidates: Indices, columns: Indices) -> Floats:
        """Inner products of the rows of `candidates` with those of `columns`.

        Shape (candidates, columns). Visits only the equations that two strings share.
        """
        width, size = self.places.shape[1], len(columns)
        cells = self.places[columns].reshape(-1)
        order = np.argsort(cells, kind="stable")
        owners = np.repeat(np.arange(size), width)[order]
        # Index in `owners` at which each cell's owners start; the padding cell has none.
        starts = np.searchsorted(cells[order], np.arange(len(self.target) + 1))
        many = np.append(np.diff(starts), 0)
        answer = np.empty((len(candidates), size))
        step = max(1, _PAIRS // max(1, width * (len(cells) // len(self.target) + 1)))
        for start in range(0, len(candidates), step):
            rows = self.places[candidates[start : start + step]]
            flat_rows = rows.reshape(-1)
            lengths = many[flat_rows]
            offsets = np.repeat(starts[flat_rows] - (np.cumsum(lengths) - lengths), lengths)
            partners = owners[offsets + np.arange(len(offsets))]
            row = np.repeat(np.arange(len(rows)), lengths.reshape(rows.shape).sum(axis=1))
            parts = np.repeat(self._weights[flat_rows] ** 2, lengths)
            sums = np.bincount(row * size + partners, parts, minlength=len(rows) * size)
            answer[start : start + step] = sums.reshape(len(rows), size)
        return answer

    def _sums(self, padded: Floats) -> Floats:
        parts = (self.places[start : start + _CHUNK] for start in range(0, len(self), _CHUNK))
        sums = [padded[places].sum(axis=1) for places in parts]
        return np.concatenate(sums) if sums else np.zeros(0)


def bloom_places(mechanism: Rappor, candidates: Sequence[str]) -> Places:
    """Flat cells of each candidate's Bloom bits in all cohorts, padded as for `Design`."""
    bits, cohorts, hashes = mechanism.bits, mechanism.cohorts, mechanism.hashes
    blocks = -(-hashes // WORDS)
    seeds = [2 * cohort + block for cohort in range(cohorts) for block in range(blocks)]
    starts = np.arange(cohorts, dtype=np.int32)[:, None] * bits
    parts = [np.empty((0, cohorts * hashes), dtype=np.int32)]
    for words in _words(candidates, seeds):
        positions = words.reshape(len(words), cohorts, blocks * WORDS)[:, :, :hashes] % bits
        cells = (positions.astype(np.int32) + starts).reshape(len(words), -1)
        parts.append(padded_places(cells, cohorts * bits))
    return np.concatenate(parts)


def sketch_buckets(mechanism: Sketch, candidates: Sequence[str]) -> npt.NDArray[np.int64]:
    """Bucket of each candidate under each function; shape (candidates, hashes)."""
    parts = [
        words[:, :, 0].astype(np.int64) % mechanism.width
        for words in _words(candidates, range(mechanism.hashes))
    ]
    return np.concatenate(parts)


def _words(candidates: Sequence[str], seeds: Sequence[int]) -> Iterator[npt.NDArray[np.uint32]]:
    """Four hash words per candidate and seed, for a group of candidates at a time."""
    step = max(1, _DIGESTS // len(seeds))
    for start in range(0, len(candidates), step):
        some = [encoded(candidate) for candidate in candidates[start : start + step]]
        digests = b"".join([digest(string, seed) for string in some for seed in seeds])
        yield np.frombuffer(digests, dtype="<u4").reshape(len(some), len(seeds), WORDS)


# Shares of a row's squared length below this are rounding: the row lies in the fitted columns.
_MIN: Final = 1e-8
# Coins alone give residuals of 1; below a hundredth of their squares the collection is empty.
_QUIETEST: Final = 1e-2
# A candidate's misfit up to this many standard deviations counts as chance.
_CHANCE: Final = 0.5
# Candidates per step, and standard errors from which on a search checks a candidate closely.
_ROWS: Final = 4096
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
    with_others = np.append(design.product_with_others, design.others @ design.others)
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
    for start in range(0, len(rows), _ROWS):
        chunk = rows[start : start + _ROWS]
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
    with_others = design.product_with_others[columns]
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
