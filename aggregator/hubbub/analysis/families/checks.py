"""Checks: sums of bits whose mean is known, whatever people hold."""

from collections.abc import Iterator

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.analysis.families.contract import BitSum
from hubbub.mechanisms import CohortBits
from hubbub.mechanisms.pure import Pure


def between(
    what: str, supports: Floats, trials: Floats, pure: Pure, more: float = 0.0
) -> Iterator[BitSum]:
    """Whatever people hold, of those asked q to p support a cell: beyond is chance, or no honesty.

    more: variance of the supports that is not the reports'. The worst case of the one is that
    nobody holds the value, of the other that everybody does.
    """
    for chance, direction, word in ((float(pure.q), -1, "least"), (float(pure.p), 1, "most")):
        off = direction * (supports - trials * chance)
        variance = trials * chance * (1 - chance) + more
        place = int(np.argmax(off / np.sqrt(np.maximum(variance, 1))))
        share = supports[place] / max(trials[place], 1)
        yield BitSum(
            f"{what} {place + 1} is supported by {share:.2%} of reports, by honest ones it would "
            f"be {chance:.2%} at {word}",
            float(off[place]),
            float(variance[place]),
            times=len(supports),
        )


def in_cohorts(layout: CohortBits, cells: Floats, channel: Pure, hashes: int) -> Iterator[BitSum]:
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
        yield BitSum(
            f"too {word} bits of cohort {cohort + 1} are 1: {share:,.2f} a report",
            float(off[cohort]),
            float(variance[cohort]),
            times=layout.cohorts,
        )
