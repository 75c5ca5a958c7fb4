"""Figures: of every value, what totals say and how sure, before anything is judged by it.

The columns that all answers begin with; tiers and repeated reports are put together here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt

import numpy as np

from hubbub.analysis.distribution import least_stderrs, placed, smooth, unbiased
from hubbub.analysis.estimate import estimate
from hubbub.analysis.intervals import Floats, Tail
from hubbub.analysis.repeated import spreads
from hubbub.analysis.sketch import count
from hubbub.analysis.tails import pure_tail
from hubbub.mechanisms import AnyMechanism, BitVector, Memoized, Samples, Totals
from hubbub.mechanisms.buckets import BucketFlips
from hubbub.mechanisms.cms import CountMeanSketch
from hubbub.mechanisms.grr import GeneralizedRandomizedResponse
from hubbub.mechanisms.hcms import HadamardSketch
from hubbub.mechanisms.long_grr import LongitudinalGrr
from hubbub.mechanisms.mean_one_bit import OneBitMean
from hubbub.mechanisms.mean_piecewise import PiecewiseMean
from hubbub.mechanisms.pure import Pure
from hubbub.mechanisms.rr import RandomizedResponse
from hubbub.mechanisms.wave import SquareWave

__all__ = ["Figures", "chosen_by", "correlation", "figures", "merged", "tier_scales"]


@dataclass(frozen=True, slots=True)
class Figures:
    """Of each value, in reports: estimate, its standard error, and that if nobody held the value.

    absent: a value is judged by these. growth: how much variance a report adds to its own value's
        estimate. tail: of what nobody holds, where the normal law does not do.
    smooth: a likelier shape, where there is one.
    place: of numbers in ranges, the sum of their places, 0 at low and 1 at high, and its standard
        error.
    """

    estimates: Floats
    stderrs: Floats
    absent: Floats
    growth: Floats
    tail: Tail | None = None
    smooth: Floats | None = None
    place: tuple[float, float] | None = None


def figures(
    mechanism: AnyMechanism,
    totals: Totals,
    candidates: Sequence[str],
    repeats: int = 1,
    *,
    shape: bool = True,
) -> Figures:
    """The figures of one mechanism's totals; of `candidates` if it is over strings.

    repeats: how many of the reports one device may have made. With a permanent response they share
        their lies, so that n of them err as one does: at most sqrt(n) times the error of n fresh
        ones. The errors are widened by that, where part of a lie is fresh by less; see repeated.py.
    shape: whether the smooth shape is wanted, which takes longest.

    Raises:
        BatchTooSmall: not a single report.
        ShapeMismatch: totals of another shape than the mechanism's.
    """
    found = _figures(mechanism, totals, candidates, shape=shape)
    if repeats > 1 and isinstance(mechanism, Memoized):
        if mechanism.VALUES == "categories":
            held, other = spreads(mechanism, repeats)
            inside = np.clip(found.estimates, 0.0, totals.reports)
            return replace(
                found,
                stderrs=np.sqrt(inside * held + (totals.reports - inside) * other),
                absent=np.full_like(found.absent, sqrt(totals.reports * other)),
                growth=np.full_like(found.growth, held - other),
                tail=None,
            )
        wider = sqrt(repeats)
        place = found.place and (found.place[0], wider * found.place[1])
        return replace(
            found,
            stderrs=wider * found.stderrs,
            absent=wider * found.absent,
            growth=repeats * found.growth,
            tail=None,
            place=place,
        )
    return found


def _figures(
    mechanism: AnyMechanism, totals: Totals, candidates: Sequence[str], *, shape: bool
) -> Figures:
    match mechanism:
        case CountMeanSketch() | HadamardSketch():
            counted = count(mechanism, totals, candidates)
            return Figures(*counted[:3], _risen(*counted[:3], totals.reports), counted[3])
        case SquareWave():
            estimates, stderrs = unbiased(mechanism, totals)
            likeliest = smooth(mechanism, totals) if shape else None
            place, window = placed(mechanism, totals), mechanism.channel
            # As of its windows, which are pure: an empty one may hold a stray report.
            wide = np.maximum(stderrs, least_stderrs(mechanism, totals))
            growth = np.full_like(stderrs, window.variance(1, 1) - window.variance(0, 1))
            return Figures(
                estimates,
                stderrs,
                wide,
                np.maximum(growth, 0.0),
                pure_tail(window, totals.reports),
                likeliest,
                place,
            )
        case OneBitMean() | PiecewiseMean():
            given = mechanism.estimate(totals)
            absent = mechanism.variance(totals.reports / 2, totals.reports)  # there is no absence
        case _:
            given = estimate(mechanism, totals)
            absent = mechanism.variance(0, totals.reports)
    estimates, stderrs = np.array(given.values), np.sqrt(np.array(given.variances))
    centre: tuple[float, float] | None = None
    if isinstance(mechanism, BucketFlips):
        # Given a report's number, its answers about two buckets do not vary together: the mean of
        # one of them at least is 0.
        middles = (np.arange(mechanism.buckets) + 0.5) / mechanism.buckets
        off = (middles - 0.5) * stderrs
        whole = totals.reports / 2 + float((middles - 0.5) @ estimates)
        centre = whole, float(np.sqrt(off @ off))
    flat = np.full_like(stderrs, sqrt(absent))
    growth = _risen(estimates, stderrs, flat, totals.reports)
    tail: Tail | None = None
    channel = getattr(mechanism, "channel", None)
    if mechanism.VALUES == "categories" and isinstance(channel, Pure):
        growth = np.full_like(stderrs, channel.variance(1, 1) - channel.variance(0, 1))
        tail = pure_tail(channel, totals.reports)
    return Figures(estimates, stderrs, flat, growth, tail, place=centre)


def _risen(estimates: Floats, stderrs: Floats, absent: Floats, reports: int) -> Floats:
    """The growth that makes a held value's standard error what it is."""
    held = np.clip(estimates, 0.0, reports)
    more = stderrs**2 - absent**2
    return np.divide(more, held, out=np.zeros_like(more), where=held > 0)


def merged(parts: Sequence[Figures], reports: Sequence[int]) -> Figures:
    """One set of figures for all reports, from tiers with so many each, by inverse variance.

    The errors are the coins' and, of what somebody holds, that of who chose which tier.
    """
    if len(parts) == 1:
        return parts[0]
    # A weight that does not look at the estimates pulls them nowhere.
    scales = tier_scales([(tier.absent**2).mean() for tier in parts], reports)
    estimates = scales @ np.array([tier.estimates for tier in parts])
    coins = scales**2 @ np.array([tier.stderrs for tier in parts]) ** 2
    shapes = [tier.smooth for tier in parts if tier.smooth is not None]
    places = np.array([tier.place for tier in parts if tier.place is not None])
    place = None
    if len(places):
        whole, noise = scales @ places[:, 0], scales**2 @ places[:, 1] ** 2
        place = float(whole), float(np.sqrt(noise + chosen_by(scales, reports, whole)))
    stderrs = np.sqrt(coins + chosen_by(scales, reports, estimates))
    absent = np.sqrt(scales**2 @ np.array([tier.absent for tier in parts]) ** 2)
    numbers = np.array(reports, dtype=np.float64)
    growth = (scales**2 * numbers) @ np.array([tier.growth for tier in parts])
    shares = np.clip(estimates / max(numbers.sum(), 1.0), 0.0, 1.0)
    growth += (1 - shares) * (numbers @ (scales - 1) ** 2)
    growth /= max(numbers.sum(), 1.0)
    shape = scales @ np.array(shapes) if shapes else None
    return Figures(estimates, stderrs, absent, growth, smooth=shape, place=place)


def tier_scales(variances: Sequence[float], reports: Sequence[int]) -> Floats:
    """By how much each tier's estimates count for more than its own reports, by inverse variance.

    variances: of an estimate from a tier's reports alone, in reports squared.
    """
    numbers = np.array(reports, dtype=np.float64)
    precise = numbers**2 / np.array(variances)
    scales: Floats = precise / precise.sum() * numbers.sum() / numbers
    return scales


def chosen_by(
    scales: Floats, reports: Sequence[int], estimates: "Floats | np.float64"
) -> "Floats | np.float64":
    """The variance that tiers add: a tier whose scale is not 1 stands in for people of others.

    Which people are in a tier is chance, though its coins are counted: of n reports with scale c,
    of a value with share s, it moves the estimate by the variance s (1 - s) n (c - 1)^2 (sampling
    without replacement, from all who reported). Of numbers on [0, 1] with mean s that is the most.
    """
    numbers = np.array(reports, dtype=np.float64)
    shares = np.clip(estimates / max(numbers.sum(), 1.0), 0.0, 1.0)
    variance: Floats | np.float64 = shares * (1 - shares) * (numbers @ (scales - 1) ** 2)
    return variance


def correlation(mechanism: AnyMechanism) -> float:
    """The most that two of the estimates can vary against each other, in [0, 1], as a correlation.

    The difference of two estimates with standard errors s and t then has a variance of at most
    s^2 + t^2 + 2 c s t. Bits are drawn independently: 0. A report that names one value cannot name
    another: of a report from x, that it names i and that it names j have covariance -P(i) P(j),
    whose correlation is largest where x is one of the two; over many reports no pair passes the
    largest of one (Cauchy, Schwarz). Of anything else nothing is assumed: 1.
    """
    match mechanism:
        case GeneralizedRandomizedResponse() | RandomizedResponse() | LongitudinalGrr():
            p, q = mechanism.channel.p, mechanism.channel.q
            return _root(p * q / ((1 - p) * (1 - q)))
        case _ if isinstance(mechanism.layout, BitVector | Samples):
            return 0.0
        case _:
            return 1.0


def _root(square: Fraction) -> float:
    return min(sqrt(square), 1.0)
