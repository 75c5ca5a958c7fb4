"""The base of families of strings, and the sums of their cohorts."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.analysis.families.contract import NO_SUMS, BitSum, Family
from hubbub.errors import BadParameter
from hubbub.mechanisms import CohortBits
from hubbub.mechanisms.pure_protocols import Pure


class Strings(Family):
    """Strings that nobody listed: only candidates have names, and nothing can be released."""

    KIND = "strings"
    ONE_LOOK = NO_SUMS
    UNRELEASED = "a metric over strings cannot be released: list the strings as values"
    REHEARSES_DAYS = False

    def labels(self, mechanism: Any, values: Sequence[str] | None) -> NoReturn:
        raise BadParameter(self.UNRELEASED)

    def question(self, mechanism: Any) -> Mapping[str, Any]:
        return {"kind": "strings"}

    def far_apart(self, mechanism: Any) -> tuple[str, str]:
        return "a", "example.org"

    def examples(self, mechanism: Any) -> Sequence[str]:
        return [f"string {place}" for place in range(20)]

    def targets(self, mechanism: Any, number: int) -> Sequence[str]:
        """Strings that no example contains."""
        return [f"target {place}" for place in range(number)]

    def example_share(self, mechanism: Any, targets: Sequence[str]) -> float:
        return 0.0


def cohort_deviations(
    layout: CohortBits, cells: Floats, channel: Pure, hashes: int
) -> Iterator[BitSum]:
    """Deviations of each cohort's number of 1 bits, sent with p for own bits, else with q."""
    p, q = float(channel.p), float(channel.q)
    rows = cells.reshape(layout.cohorts, layout.bits + 1)
    reports, one_counts = rows[:, 0], rows[:, 1:].sum(axis=1)
    # Bits of a string may fall together, so between one and `hashes` of them are its own.
    low = reports * (p + (layout.bits - 1) * q)
    high = reports * (hashes * p + (layout.bits - hashes) * q)
    variance = reports * layout.bits * max(p * (1 - p), q * (1 - q))
    for word, excess in (("few", low - one_counts), ("many", one_counts - high)):
        cohort = int(np.argmax(excess / np.sqrt(np.maximum(variance, 1))))
        share = one_counts[cohort] / max(reports[cohort], 1)
        yield BitSum(
            f"too {word} bits of cohort {cohort + 1} are 1: {share:,.2f} a report",
            float(excess[cohort]),
            float(variance[cohort]),
            times=layout.cohorts,
        )
