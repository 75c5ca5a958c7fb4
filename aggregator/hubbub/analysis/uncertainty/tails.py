"""Tails: how far chance goes with what nobody holds, where the normal law says too little.

Few reports or a large epsilon make counts of a handful; a sketch's collisions with what is frequent
hit few functions. Both have a longer upper tail than the normal law, which a list of many values
reads far out. Here are the laws themselves.
"""

from dataclasses import replace
from typing import Final

import numpy as np
from scipy.special import bdtrc, ndtri

from hubbub.analysis.arrays import Floats
from hubbub.analysis.binomials import likely, pmf
from hubbub.analysis.uncertainty.intervals import Tail
from hubbub.mechanisms import Totals
from hubbub.mechanisms.pure import Pure

# From this variance on, of the supports of what nobody holds, a normal score of 5 is worth 4.97.
_MANY: Final = 10_000
# Scores past this are told from each other by their order alone.
_FAR: Final = 8.0
_STEPS: Final = 20
# Of the sum of outputs: points of its law, and how many are a standard error; that of what makes it
# smooth; and the excess kurtosis of the sum from which on it counts (at .02 an end is off by .001).
_POINTS: Final = 512
_PER_SCORE: Final = 16
_BLUR: Final = 0.06
_PEAKED: Final = 0.02
# Below it a chance is the transform's own rounding.
_MIN_CHANCE: Final = 1e-12


def pure_tail(channel: Pure, reports: int, totals: Totals | None = None) -> Tail | None:
    """Of a value that none of so many reports holds: its supports are binomial.

    totals: with dummies, each any of the categories, they are the sum of two; of three with those
        that name a value, and then chance goes as far downwards.

    None where they are as good as normal.
    """
    q = float(channel.q)
    if totals and totals.value_law:
        return _noisy_tail(q, totals)
    if totals and totals.dummies:
        return _padded_tail(q, reports, totals.dummies, 1 / len(totals.cells))
    mean, variance = reports * q, reports * q * (1 - q)
    if variance > _MANY:
        return None
    deviation = np.sqrt(variance)
    first, last = int(mean), int(mean + (_FAR + 2) * deviation) + 12
    counts = np.arange(first, min(last, reports) + 1)
    # The chance of so many or more.
    worth = np.maximum(-ndtri(bdtrc(counts - 1, reports, q)), -_FAR)
    mask = np.append(True, np.diff(np.maximum.accumulate(worth)) > 0) & (worth <= _FAR)
    mask[0] = True
    return Tail((counts[mask] - mean) / deviation, worth[mask])


def _padded_tail(q: float, reports: int, dummies: int, share: float) -> Tail | None:
    """Of the sum of what reports and dummies name."""
    variance = reports * q * (1 - q) + dummies * share * (1 - share)
    if variance > _MANY:
        return None
    deviation, mean = np.sqrt(variance), reports * q + dummies * share
    reach = int((_FAR + 2) * deviation) + 12
    first = [max(0, int(reports * q) - reach), max(0, int(dummies * share) - reach)]
    law = np.convolve(
        pmf(first[0] + np.arange(2 * reach), reports, q),
        pmf(first[1] + np.arange(2 * reach), dummies, share),
    )
    return _upper(law, sum(first), mean, deviation)


def _noisy_tail(q: float, totals: Totals) -> Tail:
    """Of the sum of what reports, dummies of any value and those of one value name."""
    share = 1 / len(totals.cells)
    law: Floats = np.array(totals.value_law)
    first = 0
    mean = float(law @ np.arange(len(law)))
    variance = float(law @ (np.arange(len(law)) - mean) ** 2)
    for trials, chance in ((totals.reports, q), (round(totals.evenly()), share)):
        numbers = likely(trials, chance, _MIN_CHANCE**3)
        law, first = np.convolve(law, pmf(numbers, trials, chance)), first + int(numbers[0])
        mean += trials * chance
        variance += trials * chance * (1 - chance)
    tail = _upper(law, first, mean, float(np.sqrt(variance)))
    return replace(tail, down=tail)


def _upper(law: Floats, first: int, mean: float, deviation: float) -> Tail:
    """The tail of a law of counts, from the first on."""
    counts = first + np.arange(float(len(law)))
    upper = np.cumsum(law[::-1])[::-1][counts >= int(mean)]
    counts = counts[counts >= int(mean)]
    worth = np.maximum.accumulate(-ndtri(np.clip(upper, _MIN_CHANCE**2, 1 - _MIN_CHANCE)))
    mask = np.append(True, np.diff(worth) > 0) & (worth <= _FAR)
    mask[0] = True
    return Tail((counts[mask] - mean) / deviation, worth[mask])


def repeated_tail(
    lied: float, show_chance: float, lie: float, devices: int, repeats: int
) -> Tail | None:
    """Of a value that none of some devices holds, each of which reports so often.

    lied: the chance that a device's permanent bit is set all the same. show_chance, lie: the chance
        that a report supports the value if it is, and if it is not. The sum's law is that of one
        device, folded with itself by its characteristic function.

    None where as many bits are set as make it normal.
    """
    if devices * lied * (1 - lied) > _MANY:
        return None
    of_device = repeats * (lied * show_chance + (1 - lied) * lie)
    fresh = lied * show_chance * (1 - show_chance) + (1 - lied) * lie * (1 - lie)
    spread = repeats * fresh + lied * (1 - lied) * (repeats * (show_chance - lie)) ** 2
    mean, deviation = devices * of_device, np.sqrt(devices * spread)
    length = 1 << int(2 * (_FAR + 2) * deviation + 20 * repeats + 64).bit_length()
    first = int(mean)
    turn = 2j * np.pi * np.fft.rfftfreq(length)
    set_, unset = (
        np.exp(repeats * np.log1p(chance * np.expm1(turn))) for chance in (show_chance, lie)
    )
    law = np.exp(devices * np.log(lied * set_ + (1 - lied) * unset) - turn * (first - length // 4))
    chances = np.fft.irfft(law.conj(), length)[length // 4 :]
    upper = np.cumsum(chances[::-1])[::-1]
    counts = first + np.arange(len(upper))
    worth = np.maximum.accumulate(-ndtri(np.clip(upper, _MIN_CHANCE, 1 - _MIN_CHANCE)))
    mask = np.append(True, np.diff(worth) > 0) & (upper > _MIN_CHANCE) & (worth <= _FAR)
    mask[0] = True
    return Tail((counts[mask] - mean) / deviation, worth[mask])


def sum_tail(chances: Floats, outputs: Floats, reports: int) -> Tail | None:
    """Of a sum of outputs that each of so many reports draws by these chances, both ways.

    Few of a large epsilon's reports are lies, each of which moves the sum by much. The law is that
    of one report, folded by its characteristic function, and made smooth by a narrow normal one.

    None where it is as good as normal.
    """
    off = outputs - chances @ outputs
    square = float(chances @ off**2)
    if float(chances @ off**4) <= _PEAKED * reports * square**2:
        return None
    turn = -2j * np.pi * np.fft.rfftfreq(_POINTS, 1 / _PER_SCORE)
    of_report = np.exp(np.outer(turn, off / np.sqrt(reports * square))) @ chances
    law = np.fft.irfft(of_report**reports * np.exp((turn * _BLUR) ** 2 / 2), _POINTS)
    middle = _POINTS // 2
    up, down = (
        _upper(np.maximum(side, 0.0), 0, 0.0, _PER_SCORE)
        for side in (law[:middle], np.roll(law[::-1], 1)[:middle])
    )
    return replace(up, down=down)


def collision_tail(bucket_counts: Floats, deviation: float) -> Tail | None:
    """Of a string that nobody holds, in a sketch with so much in its buckets.

    bucket_counts: per function and bucket, in any unit; the string has one bucket of each, any with
        the same chance, whatever the others have. deviation: what a score of 1 is, in that unit.

    The law of such a sum by its saddlepoint, to a relative error of some percent however far out.
    Source: Barndorff-Nielsen (1986); Lugannani and Rice (1980).
    """
    off = bucket_counts - bucket_counts.mean(axis=1, keepdims=True)
    own = np.sqrt(np.square(off).mean(axis=1).sum())
    widest = np.abs(off).max()
    if not own > 0:
        return None
    scores, worth = [0.0], [0.0]
    # From a score of about .3 to the far end, by equal steps of the logarithm.
    for tilt in np.geomspace(0.3 / own, max(60.0 / widest, 9.0 / own), _STEPS).tolist():
        weight = np.exp(tilt * (off - off.max(axis=1, keepdims=True)))
        sums = weight.sum(axis=1)
        mean = (weight * off).sum(axis=1) / sums
        second = (weight * off**2).sum(axis=1) / sums
        log = (np.log(sums / off.shape[1]) + tilt * off.max(axis=1)).sum()
        place, spread = mean.sum(), (second - mean**2).sum()
        deep = 2 * (tilt * place - log)
        if not (deep > 0 and spread > 0):
            break
        root = np.sqrt(deep)
        score = place / deviation
        next_worth = root + np.log(tilt * np.sqrt(spread) / root) / root
        if not (score > scores[-1] and next_worth > worth[-1]):
            continue
        scores.append(score)
        worth.append(next_worth)
        if next_worth > _FAR:
            break
    return Tail(np.array(scores), np.array(worth))
