"""Mean of a vector: a row for each of its coordinates."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from math import sqrt
from typing import Any, Final

import numpy as np
from numpy.random import Generator

from hubbub.analysis.answer import Answer, ValueAnswer
from hubbub.analysis.arrays import Floats
from hubbub.analysis.estimators import vector_book_errors
from hubbub.analysis.families.contract import BitSum, Expected, Family, support_deviations
from hubbub.analysis.families.draw_totals import Counts, People
from hubbub.analysis.families.tiers_and_rows import Tier, reports_of, tier_scales
from hubbub.analysis.value_estimates import ValueEstimates, means_of
from hubbub.errors import BadParameter, BatchTooSmall
from hubbub.mechanisms import Totals
from hubbub.mechanisms.direction_pool import UNIT
from hubbub.mechanisms.vector_codes import VectorCodes

# With this many books, the variance is known within a fifth.
_BOOKS: Final = 64
# Share of the coins' variance below which the books' part is not worth estimating.
_LITTLE: Final = 0.01
# Share of it above which further rounds reduce what remains.
_MATTERS: Final = 0.25
# Standard deviations that the difference of two errors of the books has in 1 of 700 pools at most.
_MARGIN: Final = 3.0
# Smallest remaining share of it, if a book nearly determines its reports.
_LEAST: Final = 1e-3


class Vectors(Family):
    """Mechanisms that report a vector as a word that lies near it.

    Estimates are places, 0 at -max_length and 1 at max_length. They are linear in the totals,
    except that the known error of the books is subtracted.
    """

    KIND = "vector"
    ONE_LOOK = "errors of a vector's reports by the same words are correlated"
    REHEARSES_DAYS = False
    ABSENT_SHARE = 0.5
    UNRELEASED = "the mean of a vector cannot be released: make a metric of each number"

    def figures(
        self, mechanism: VectorCodes, totals: Totals, candidates: Sequence[str]
    ) -> ValueEstimates:
        """Sums of places for each coordinate, with variances measured from the words.

        Reports by one book share its words: `_less_books` subtracts their common error.
        """
        mean, sum_variances = _mean_and_variances(mechanism, totals, np.eye(mechanism.dimensions))
        n = totals.reports
        estimates, stderrs = n * (1 + mean) / 2, np.sqrt(sum_variances) / 2
        return ValueEstimates.flat(estimates, stderrs, typical=n * _even(mechanism) / 4)

    def answer(
        self, tiers: Sequence[Tier], names: Sequence[str], confidence: float, repeats: int
    ) -> Answer:
        mechanism: Any = tiers[0][0]
        reports, ends = reports_of(tiers), self.ends(mechanism)
        means = means_of(self.figures_of(tiers, (), repeats), ends, reports, confidence)
        rows = tuple(
            ValueAnswer(value=name, share=None, rank=None, detected=None, **asdict(mean))
            for name, mean in zip(names, means, strict=True)
        )
        return Answer(
            kind="vector",
            reports=reports,
            confidence=confidence,
            values=rows,
            span=ends,
            repeats=repeats,
        )

    def ends(self, mechanism: VectorCodes) -> tuple[float, float]:
        return -mechanism.max_length, mechanism.max_length

    def sums(self, mechanism: VectorCodes, cells: Floats, totals: Totals) -> Iterator[BitSum]:
        by_book, chance = cells.reshape(mechanism.books, -1).sum(axis=1), 1 / mechanism.books
        deviations = np.abs(by_book - totals.reports * chance)
        book = int(np.argmax(deviations))
        if mechanism.books > 1:
            yield BitSum(
                f"book {book + 1} has {by_book[book]:,.0f} reports, of honest ones it would have "
                f"{totals.reports * chance:,.1f} on average",
                float(deviations[book]),
                totals.reports * chance * (1 - chance),
                times=2 * mechanism.books,
            )
        yield from support_deviations(
            "word", cells, np.repeat(by_book, mechanism.words), mechanism.channel
        )

    def weights(self, mechanism: VectorCodes, targets: Sequence[int]) -> tuple[Floats, float]:
        if not all(0 <= target < mechanism.dimensions for target in targets):
            raise BadParameter(f"a target is not one of the {mechanism.dimensions} coordinates")
        words = np.concatenate(
            [
                vector_book_errors.words_of(mechanism, number)[:, list(targets)]
                for number in range(mechanism.books)
            ]
        )
        return words.sum(axis=1) * scale_of(mechanism) / 2, len(targets) / 2

    def gain_margin(self, mechanism: VectorCodes, targets: Sequence[int]) -> float:
        """The largest change of the books' subtracted error, if fake reports move the mean."""
        if mechanism.books < _BOOKS:
            return 0.0
        return _MARGIN * sqrt(2 * len(targets) * _pool(mechanism)) / 2

    def expected(
        self, mechanism: VectorCodes, values: Sequence[Any], shares: Floats, reports: float
    ) -> Expected:
        vectors = np.array(values, dtype=np.float64) / mechanism.max_length
        lengths, directions = _lengths_and_directions(vectors)
        variances = _square(mechanism, directions**2) - vectors**2
        coin_variances = shares @ variances / reports
        units = np.concatenate([directions, -directions])
        lengths = np.minimum(lengths, 1.0)
        weights = np.concatenate([shares * (1 + lengths), shares * (1 - lengths)]) / 2
        coins, pool = float(coin_variances.mean()), _pool(mechanism)
        if _is_removed(mechanism, coins):
            shared = vector_book_errors.variance_less_known(
                mechanism, units, weights, pool=pool, coins=coins, reports=reports
            )
        else:
            shared = vector_book_errors.variance_by_books(mechanism, units, weights, pool)
        none = np.full(mechanism.dimensions, _even(mechanism) / reports)
        # What is explained is the same part of every coordinate's variance, what is left as much;
        # of people who are unlike nothing is explained.
        less, shared_variance = 1 + min(shared, 0.0) / coins, max(shared, 0.0)
        alike = np.sqrt(coin_variances * less + shared_variance)
        return Expected(alike / 2, np.sqrt(none + shared_variance) / 2)

    def labels(self, mechanism: VectorCodes, values: Sequence[str] | None) -> Sequence[str]:
        return list(values or map(str, range(1, mechanism.dimensions + 1)))

    def draw(self, mechanism: VectorCodes, people: People, rng: Generator) -> Counts:
        """Draws how often each word is sent, with the metric's real books."""
        vectors = np.repeat(np.array(people.values, dtype=np.float64), people.counts, axis=0)
        units = unit_of(vectors / mechanism.max_length, rng)
        books, places = drawn_words(mechanism, len(units), rng)
        cells = np.zeros((mechanism.books, mechanism.words), dtype=np.int64)
        order = np.argsort(books, kind="stable")
        batch = vector_book_errors.books_at_once(mechanism)
        for start in range(0, len(units), batch):
            block = order[start : start + batch]
            used, inverse = np.unique(books[block], return_inverse=True)
            words = vector_book_errors.words_of_each(mechanism, used.tolist())[inverse]
            ranks = np.argsort(-np.einsum("pd,pwd->pw", units[block], words), axis=1, kind="stable")
            np.add.at(cells, (books[block], ranks[np.arange(len(block)), places[block]]), 1)
        return cells.reshape(-1)

    def question(self, mechanism: VectorCodes) -> Mapping[str, Any]:
        low, high = self.ends(mechanism)
        return {
            "kind": "vector",
            "size": mechanism.dimensions,
            "low": low,
            "high": high,
            "permanent_epsilon": None,
        }

    def far_apart(self, mechanism: VectorCodes) -> tuple[Any, Any]:
        probe, other_probe = mechanism.probes()[:2]
        return probe, other_probe

    def targets(self, mechanism: VectorCodes, number: int) -> Sequence[int]:
        return [0]

    def example_share(self, mechanism: VectorCodes, targets: Sequence[int]) -> float:
        first = np.array(self.examples(mechanism))[:, 0] / mechanism.max_length
        return float(first.mean() + 1) / 2

    def near_chances(
        self, mechanism: VectorCodes, value: Any, others: Sequence[Any]
    ) -> list[float]:
        """Probability of a word near each of `others`, which share no near words."""
        p_near, p_far = (
            float(mechanism.near * chance) for chance in (mechanism.channel.p, mechanism.channel.q)
        )
        return [p_near if value == other else p_far for other in others]


def books_excess(mechanism: VectorCodes, reports: int) -> float:
    """Squared error of people who are all alike, as a multiple of that without shared books."""
    vector = np.full(mechanism.dimensions, mechanism.max_length / sqrt(mechanism.dimensions))
    stderrs = Vectors().expected(mechanism, [vector], np.ones(1), reports).stderrs
    return 4 * float(stderrs @ stderrs) * reports / mechanism.squared_error


def two_sums(tiers: Sequence[Tier], repeats: int) -> tuple[Floats, Floats]:
    """Sums over all reports of both coordinates of vectors up to 1 long, and their covariance.

    It is for the population, from the variances along both axes and the line between them. What is
    beyond the least that coins add is taken to be who reported, which repeats as a device does,
    `repeats` times at most.
    """
    turn = sqrt(0.5)
    axes = np.array([[1.0, 0.0, turn], [0.0, 1.0, turn]])
    reports = [totals.reports for _, totals in tiers]
    vectors: list[VectorCodes] = [mechanism for mechanism, _ in tiers]  # type: ignore[misc]  # of the family
    scales = tier_scales(
        [n * _even(part) for part, n in zip(vectors, reports, strict=True)], reports
    )
    sums, covariance = np.zeros(2), np.zeros((2, 2))
    for part, (_, totals), scale in zip(vectors, tiers, scales.tolist(), strict=True):
        mean, variances = _mean_and_variances(part, totals, axes)
        least = totals.reports * _min_coins(part)
        x, y, diagonal = variances + (repeats - 1) * np.maximum(variances - least, 0.0)
        most = sqrt(x * y)
        both = min(max(diagonal - (x + y) / 2, -most), most)
        sums += scale * totals.reports * mean
        covariance += scale**2 * np.array([[x, both], [both, y]])
    return sums, covariance


def _mean_and_variances(
    mechanism: VectorCodes, totals: Totals, axes: Floats
) -> tuple[Floats, Floats]:
    """The mean of vectors up to 1 long, and the variances of its sum along some axes.

    The axes, directions of length 1, begin with the coordinates; shape (dimensions, axes).
    """
    totals.check(mechanism.layout)
    n = totals.reports
    if n < 1:
        raise BatchTooSmall("no reports: there is no mean")
    size = mechanism.dimensions
    cells = np.array(totals.cells, dtype=np.float64).reshape(mechanism.books, mechanism.words)
    books = np.flatnonzero(cells.any(axis=1)).tolist()
    by_book, squares = np.zeros((len(books), size)), np.zeros(axes.shape[1])
    batch = vector_book_errors.books_at_once(mechanism)
    for start in range(0, len(books), batch):
        block = books[start : start + batch]
        words = vector_book_errors.words_of_each(mechanism, block)
        by_book[start : start + batch] = np.einsum("bw,bwd->bd", cells[block], words)
        squares += np.einsum("bw,bwd->d", cells[block], (words @ axes) ** 2)
    scale = scale_of(mechanism)
    mean = scale * by_book.sum(axis=0) / n
    square = np.clip(scale**2 * squares / n, *sorted(_square(mechanism, np.array([0.0, 1.0]))))
    # The square of an estimated mean is too large by that mean's own variance.
    variances = (square - (mean @ axes) ** 2) * n / max(n - 1, 1)
    coins = n * np.maximum(variances, _min_coins(mechanism))
    return _less_books(mechanism, books, (scale * by_book, cells[books].sum(axis=1)), coins, axes)


def _min_coins(mechanism: VectorCodes) -> float:
    """The least variance of what a report adds to a coordinate, whatever its vector is."""
    across, along = _square(mechanism, np.array([0.0, 1.0]))
    return float(min(across, along - 1))


def _less_books(
    mechanism: VectorCodes,
    numbers: Sequence[int],
    by_book: tuple[Floats, Floats],
    coins: Floats,
    axes: Floats,
) -> tuple[Floats, Floats]:
    """The mean without the known error of its books, and the variance of n times the mean.

    `by_book` has the books' summed contributions and report counts, `coins` the variance of the
    sums along each axis if no two reports share a book. Words are public, so a book's error for a
    given vector is known, and subtracted as far as a fit finds that it explains the mean's error (a
    control variate). Remaining differences between books are an error that more reports do not
    reduce; it is at most that of people who are all alike, and at least what `BooksErrors` leaves.
    """
    sums, sent = by_book
    n = float(sent.sum())
    mean = raw = sums.sum(axis=0) / n
    most = n**2 * _pool(mechanism)
    pool = books_variance(mechanism, sums @ axes, sent, coins)
    size = mechanism.dimensions
    typical = float(coins[:size].mean())
    if not _is_removed(mechanism, typical / n**2):
        return mean, coins + pool
    deviations = sums - sent[:, None] * raw
    errors_of_books = vector_book_errors.BooksErrors(mechanism, numbers, sent, scale_of(mechanism))
    means: list[Floats] = []
    coin_noise, mean_variance = coins, (typical + most) / n**2
    rounds = vector_book_errors.FEWER_ROUNDS
    while len(means) < rounds:
        errors, unknown = errors_of_books.about(mean, mean_variance)
        apart = errors - sent @ errors / n
        part = float(np.clip((apart * deviations).sum() / (sent @ apart**2).sum(), 0.0, 1.0))
        mean = raw - part * (sent @ errors) / n
        means.append(mean)
        coin_noise = np.maximum(coins - part**2 * (sent @ (apart @ axes) ** 2), coins * _LEAST)
        unexplained = (((deviations - part * sent[:, None] * apart) @ axes) ** 2).sum(axis=0)
        least = part**2 * n**2 * unknown
        pool = np.clip(unexplained - coin_noise, least, max(least, most))
        mean_variance = float(coin_noise[:size].mean() + least) / n**2
        if least > _MATTERS * typical:
            rounds = vector_book_errors.ROUNDS
    return np.mean(means[1:][-2:], axis=0), coin_noise + pool


def _is_removed(mechanism: VectorCodes, coins: float) -> bool:
    """Whether books are enough, and their error large enough beside that of coins."""
    return mechanism.books >= _BOOKS and _pool(mechanism) > _LITTLE * coins


def books_variance(mechanism: VectorCodes, sums: Floats, sent: Floats, coins: Floats) -> Floats:
    """Variance that shared books add to the sum over all reports, for each coordinate.

    `sums` has each book's contribution to the mean, of shape (books, dimensions), and `sent` its
    reports; `coins` is the variance of the sum if no two reports share a book. It is estimated from
    the books' differences beyond randomization, and at most the variance for people who are all
    alike. Fewer than `_BOOKS` books are too few for an estimate: then this most.
    """
    n = float(sent.sum())
    most = np.full_like(coins, n**2 * _pool(mechanism))
    if mechanism.books < _BOOKS:
        return most
    deviations = sums - sent[:, None] * (sums.sum(axis=0) / n)
    pool: Floats = np.clip((deviations**2).sum(axis=0) - coins, 0.0, most)
    return pool


def scale_of(mechanism: VectorCodes) -> float:
    """Factor from a word in steps to its contribution to the mean of unit-ball vectors."""
    return 1 / (UNIT * sqrt(mechanism.dimensions) * mechanism.reach)


def _square(mechanism: VectorCodes, squares: Floats) -> Floats:
    """Mean square of a report's contribution to coordinates of its direction, from its centre."""
    across = 1 - vector_book_errors.centre_square(mechanism)
    return (across + (mechanism.along - 1) * squares) * _unit(mechanism)


def _unit(mechanism: VectorCodes) -> float:
    """Square of a report's contribution to a coordinate, if its word's is a standard deviation."""
    return 1 / (mechanism.dimensions * mechanism.reach**2)


def _even(mechanism: VectorCodes) -> float:
    """Mean square of a report's contribution to a coordinate, if all coordinates are equal."""
    return float(_square(mechanism, np.array(1 / mechanism.dimensions)))


def _pool(mechanism: VectorCodes) -> float:
    """Variance of the mean over the choice of books, if all people hold the same vector."""
    keep, near = float(mechanism.keep.exact), mechanism.near
    squares = keep**2 / near + (1 - keep) ** 2 / (mechanism.words - near)
    return (
        _unit(mechanism) * (squares - vector_book_errors.centre_square(mechanism)) / mechanism.books
    )


def unit_of(vectors: Floats, rng: Generator) -> Floats:
    """Random unit vectors whose expectations are these vectors of length at most 1."""
    lengths, units = _lengths_and_directions(vectors)
    turned = rng.random(len(vectors)) < (1 - np.minimum(lengths, 1.0)) / 2
    return np.where(turned, -1.0, 1.0)[:, None] * units


def _lengths_and_directions(vectors: Floats) -> tuple[Floats, Floats]:
    """Shapes (vectors,) and (vectors, dimensions); the direction of zero is the first axis."""
    lengths = np.linalg.norm(vectors, axis=1)
    first, is_long = np.eye(1, vectors.shape[1]), lengths[:, None] > 0
    return lengths, np.where(is_long, vectors, first) / np.where(is_long, lengths[:, None], 1.0)


def drawn_words(mechanism: VectorCodes, reports: int, rng: Generator) -> tuple[Counts, Counts]:
    """Draws each report's book, and the rank of the word that it sends, 0 being the nearest."""
    books = rng.integers(0, mechanism.books, reports)
    is_true = rng.random(reports) < float(mechanism.keep.exact)
    near_ranks = rng.integers(0, mechanism.near, reports)
    far_ranks = rng.integers(mechanism.near, mechanism.words, reports)
    return books, np.where(is_true, near_ranks, far_ranks)
