"""The standard error that estimates will have, before a single report: exact, for every mechanism.

Of most a formula of the mechanism itself (`variance`). Of strings it depends on who shares bits
with whom: of a sketch through the collisions, of RAPPOR through the candidates' design, all cohorts
weighing alike. Of `wave` through the least squares from places to buckets.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from hubbub.analysis.distribution import unbiased
from hubbub.analysis.hashed import bloom_places
from hubbub.analysis.intervals import Floats
from hubbub.analysis.sketch import Sketch
from hubbub.mechanisms import AnyMechanism, Rappor, Totals
from hubbub.mechanisms.cms import CountMeanSketch
from hubbub.mechanisms.hcms import HadamardSketch
from hubbub.mechanisms.mean_one_bit import OneBitMean
from hubbub.mechanisms.mean_piecewise import PiecewiseMean
from hubbub.mechanisms.wave import SquareWave

__all__ = ["Expected", "expected"]

_PLACES = (0.0, 0.25, 0.5, 0.75, 1.0)
# Strings that stand for all where there are more candidates than a joint decode takes.
_DECODED = 256


@dataclass(frozen=True, slots=True)
class Expected:
    """Standard errors as shares of all reports: per value, and of a value that nobody holds.

    Of a mean, as shares of its range, where they are largest.
    """

    stderrs: Floats
    absent: Floats


def expected(
    mechanism: AnyMechanism, values: Sequence[object], shares: Floats, reports: float
) -> Expected:
    """What to expect if shares[i] of `reports` hold values[i]; shares add up to 1 or less.

    values: indices, strings, or numbers, the middles of buckets; of a mean they are not looked at.
    """
    match mechanism:
        case OneBitMean() | PiecewiseMean():
            each = max(mechanism.variance(place * 1000, 1000) for place in _PLACES) / 1000
            return _alike(np.array([sqrt(each / reports)]))
        case CountMeanSketch() | HadamardSketch():
            return _sketch(mechanism, shares, reports)
        case Rappor():
            return _decode(mechanism, values, shares, reports)
        case SquareWave():
            return _wave(mechanism, shares, reports)
        case _:
            held = mechanism.variance(1.0, 1) / reports
            other = mechanism.variance(0.0, 1) / reports
            return Expected(
                np.sqrt(shares * held + (1 - shares) * other), np.full_like(shares, sqrt(other))
            )


def _alike(errors: Floats) -> Expected:
    return Expected(errors, errors)


def _sketch(mechanism: Sketch, shares: Floats, reports: float) -> Expected:
    """Coins, and what the others' collisions add over the choice of hash functions."""
    width, functions = mechanism.width, mechanism.hashes
    held, other = mechanism.channel.variance(1, 1), mechanism.channel.variance(0, 1)
    spread, stretch = (1 - 1 / width) / width, width / (width - 1)

    def error(own: Floats) -> Floats:
        inside = own + (1 - own) / width
        coins = (inside * held + (1 - inside) * other) / reports
        squares = (shares**2).sum() - own**2
        collisions = spread * (squares / functions + (1 - own) / reports)
        answer: Floats = stretch * np.sqrt(coins + collisions)
        return answer

    return Expected(error(shares), error(np.zeros_like(shares)))


def _decode(
    mechanism: Rappor, values: Sequence[object], shares: Floats, reports: float
) -> Expected:
    """The decoder's least squares with every candidate a column, on the noise there will be.

    Of a bit's count: the coins, and which of its strings' reports fell into the cohort.
    """
    cohorts, bits, channel = mechanism.cohorts, mechanism.bits, mechanism.chain.channel
    # Of more strings than its bits can tell apart, a decoder fits those that stand out.
    many = max(1, min(_DECODED, cohorts * bits // 4))
    strings = [str(value) for value in values[:many]]
    places = bloom_places(mechanism, strings)
    own = np.zeros(cohorts * bits + 1)
    np.add.at(own, places, (shares[: len(strings), None] / cohorts))
    rows = np.zeros((cohorts * bits + 1, len(strings) + 1))
    np.put_along_axis(rows.T[:-1], places.astype(np.int64), 1 / cohorts, axis=1)
    rows[:, -1] = (1 - (1 - 1 / bits) ** mechanism.hashes) / cohorts
    inverse = (np.linalg.pinv(rows.T @ rows) @ rows[:-1].T)[:-1]
    held, other = channel.variance(1, 1), channel.variance(0, 1)
    coins = (inverse**2) @ (own[:-1] * held + (1 / cohorts - own[:-1]) * other)
    # A string's reports fall into cohorts at random. How many there are of it is fixed, and so is,
    # to who decodes, how many reports a cohort has: only what is uneven beyond that is noise.
    padded = np.column_stack([inverse, np.zeros(len(inverse))])
    split = np.zeros(len(strings))
    for string, share in zip(places.reshape(len(strings), cohorts, -1), shares, strict=False):
        split += share * padded[:, string].sum(axis=2).var(axis=1)
    whole = inverse.reshape(len(strings), cohorts, bits) * own[:-1].reshape(cohorts, bits)
    split -= (cohorts * whole.sum(axis=2)).var(axis=1)
    errors = np.sqrt((coins + split) / reports)
    beyond = np.full(len(shares) - len(strings), float(errors.mean()))
    return _alike(np.concatenate([errors, beyond]))


def _wave(mechanism: SquareWave, shares: Floats, reports: float) -> Expected:
    many = 10**12
    near, far = float(mechanism.window.near), float(mechanism.window.far)
    padded = np.append(0.0, np.cumsum(np.append(shares, np.zeros(mechanism.window.width - 1))))
    last = np.arange(1, mechanism.layout.size + 1)
    covered = padded[last] - padded[np.maximum(last - mechanism.window.width, 0)]
    cells = np.rint((far + (near - far) * covered) * many).astype(np.int64)
    _, stderrs = unbiased(mechanism, Totals(cells.tolist(), many))
    return _alike(stderrs / many * sqrt(many / reports))
