"""Could honest reports alone have made these totals? A flag for the analyst, not a filter.

Whatever values people hold, some sums have a known mean: how many values a report supports, and an
estimate that cannot be below 0 or above the reports. A sum that is further away than chance allows
says that some reports were not made by the mechanism. What fake reports do that look like honest
ones cannot be seen in totals, only bounded: poisoning.py.

p-values are upper bounds for any number of reports, by Bernstein's inequality: for a sum of
independent terms with variance v, each within b of its mean, P(sum - mean >= t) is at most
exp(-t^2 / (2 (v + b t / 3))); over several sums they are added up (Bonferroni).
Source: Bernstein (1924), in Boucheron, Lugosi, Massart, Concentration Inequalities (2013), 2.8; the
idea of telling fakes by how many values they support: Cao, Jia, Gong (2021), section 6.2.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp
from typing import Any, Final

import numpy as np

from hubbub.analysis.estimate import estimate
from hubbub.analysis.intervals import Floats
from hubbub.mechanisms import AnyMechanism, BitVector, CohortBits, Memoized, Rappor, Totals
from hubbub.mechanisms.buckets import BucketFlips
from hubbub.mechanisms.cms import CountMeanSketch
from hubbub.mechanisms.hcms import HadamardSketch
from hubbub.mechanisms.mean_one_bit import OneBitMean
from hubbub.mechanisms.mean_piecewise import PiecewiseMean
from hubbub.mechanisms.pure import Pure
from hubbub.mechanisms.wave import SquareWave

__all__ = ["Plausibility", "plausibility", "together"]

# At this false-alarm rate an answer is called suspicious.
_ALARM: Final = 1e-6
_LARGEST: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Plausibility:
    """p_value: an upper bound on the chance that honest reports lie so far off; 1 is unremarkable.

    findings: what is off, where the p-value is below one in a million.
    """

    p_value: float
    findings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Sum:
    """A sum of bits: how far it is off, its largest variance, and of how many sums it is the worst.

    A bit is within 1 of its mean, whatever that is.
    """

    what: str
    off: float
    variance: float
    times: int

    def p_value(self, repeats: int) -> float:
        if self.off <= 0:
            return 1.0
        # Reports of one device may be the same coins over again: `repeats` of them are one term.
        spread = repeats * (self.variance + self.off / 3)
        return self.times * exp(-(self.off**2) / (2 * spread))


def plausibility(mechanism: AnyMechanism, totals: Totals, repeats: int = 1) -> Plausibility:
    """How plausible totals are.

    repeats: how many of these reports one device may have made with the same permanent response;
        only looked at where the mechanism has one.
    """
    repeats = repeats if isinstance(mechanism, Memoized) else 1
    told = [(one.p_value(repeats), one.what) for one in _sums(mechanism, totals)]
    overall = min([1.0, *(len(told) * p for p, _ in told)])
    findings = [what for p, what in told if len(told) * p < _ALARM]
    return Plausibility(overall, tuple(findings))


def together(parts: Sequence[Plausibility]) -> Plausibility:
    """Of several disjoint sets of reports: as suspicious as the worst, reckoned among them all."""
    overall = min([1.0, *(len(parts) * part.p_value for part in parts)])
    return Plausibility(overall, tuple(finding for part in parts for finding in part.findings))


def _sums(mechanism: AnyMechanism, totals: Totals) -> Iterator[_Sum]:
    layout, n = mechanism.layout, totals.reports
    if not n or layout.size > _LARGEST:
        return
    cells = np.array(totals.cells, dtype=np.float64)
    match mechanism:
        case Rappor():
            channel = mechanism.chain.channel
            yield from _cohorts(mechanism.layout, cells, channel, mechanism.hashes)
        case CountMeanSketch():
            yield from _cohorts(mechanism.layout, cells, mechanism.channel, 1)
        case HadamardSketch():
            each = mechanism.hashes * mechanism.width
            low, high = mechanism.keep.complement.exact / each, mechanism.keep.exact / each
            yield from _between("index", cells, np.full_like(cells, n), Pure(high, low))
        case SquareWave() | PiecewiseMean():
            pure = Pure(mechanism.window.near, mechanism.window.far)
            yield from _between("place", cells, np.full_like(cells, n), pure)
        case OneBitMean():
            pure = Pure(mechanism.keep.exact, mechanism.keep.complement.exact)
            yield from _between("answer", cells, np.full_like(cells, n), pure)
        case BucketFlips():
            asked = cells.reshape(-1, 2).sum(axis=1)
            pure = Pure(mechanism.lie.complement.exact, mechanism.lie.exact)
            yield from _between("bucket", cells[1::2], asked, pure)
        case _:
            yield from _listed(mechanism, cells, totals)


def _listed(mechanism: Any, cells: Floats, totals: Totals) -> Iterator[_Sum]:  # noqa: ANN401 any with a channel
    """Listed values: each is supported by q of all reports at least and by p at most.

    Where every bit is drawn for itself, how many a report supports has a known mean, too.
    """
    channel, n, d = mechanism.channel, totals.reports, mechanism.categories
    p, q = float(channel.p), float(channel.q)
    if isinstance(mechanism.layout, BitVector):
        expected = p + (d - 1) * q
        yield _Sum(
            f"reports support {cells.sum() / n:,.2f} values each, honest ones {expected:,.2f}",
            abs(float(cells.sum()) - n * expected),
            n * (p * (1 - p) + (d - 1) * q * (1 - q)),
            times=2,
        )
    supports = np.array(estimate(mechanism, totals).values) * (p - q) + n * q
    yield from _between("value", supports, np.full_like(supports, n), channel)


def _between(what: str, supports: Floats, asked: Floats, pure: Pure) -> Iterator[_Sum]:
    """Whatever people hold, of those asked q to p support a cell: beyond is chance, or no honesty.

    The worst case of the one is that nobody holds the value, of the other that everybody does.
    """
    for chance, direction, word in ((float(pure.q), -1, "least"), (float(pure.p), 1, "most")):
        off = direction * (supports - asked * chance)
        variance = asked * chance * (1 - chance)
        place = int(np.argmax(off / np.sqrt(np.maximum(variance, 1))))
        share = supports[place] / max(asked[place], 1)
        yield _Sum(
            f"{what} {place + 1} is supported by {share:.2%} of reports, by honest ones it would "
            f"be {chance:.2%} at {word}",
            float(off[place]),
            float(variance[place]),
            times=len(supports),
        )


def _cohorts(layout: CohortBits, cells: Floats, channel: Pure, hashes: int) -> Iterator[_Sum]:
    """How many bits of a cohort's reports are 1: those of the string by p, all others by q."""
    p, q = float(channel.p), float(channel.q)
    rows = cells.reshape(layout.cohorts, layout.bits + 1)
    reports, ones = rows[:, 0], rows[:, 1:].sum(axis=1)
    # Bits of a string may fall together, so between one and `hashes` of them are its own.
    low = reports * (p + (layout.bits - 1) * q)
    high = reports * (hashes * p + (layout.bits - hashes) * q)
    variance = reports * layout.bits * max(p * (1 - p), q * (1 - q))
    for word, off in (("few", low - ones), ("many", ones - high)):
        cohort = int(np.argmax(off / np.sqrt(np.maximum(variance, 1))))
        share = ones[cohort] / max(reports[cohort], 1)
        yield _Sum(
            f"too {word} bits of cohort {cohort + 1} are 1: {share:,.2f} a report",
            float(off[cohort]),
            float(variance[cohort]),
            times=layout.cohorts,
        )
