"""Could honest reports alone have made these totals? A flag for the analyst, not a filter.

Whatever values people hold, some sums have a known mean: how many values a report supports, and an
estimate that cannot be below 0 or above the reports. A sum further away than chance allows shows
that some reports were not made by the mechanism. Fake reports that look like honest ones cannot be
seen in totals; poisoning.py bounds their effect.

p-values are upper bounds for any number of reports, by Bernstein's inequality: for a sum of
independent terms with variance v, each within b of its mean, P(sum - mean >= t) is at most
exp(-t^2 / (2 (v + b t / 3))); over several sums they are added up (Bonferroni).
Source: Bernstein (1924), in Boucheron, Lugosi, Massart, Concentration Inequalities (2013), 2.8; the
idea to detect fakes by how many values they support: Cao, Jia, Gong (2021), section 6.2.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from typing import Final

import numpy as np

from hubbub.analysis.families import family_for
from hubbub.analysis.families.tiers import Tier
from hubbub.mechanisms import Memoized

# At this false-alarm rate an answer is called suspicious.
_ALARM: Final = 1e-6
_LARGEST: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Plausibility:
    """Result of a plausibility test; `findings` describes each deviation below one in a million.

    `p_value` is an upper bound on the probability that honest reports deviate so much; 1 is normal.
    """

    p_value: float
    findings: tuple[str, ...]


def plausibility(tiers: Sequence[Tier], repeats: int = 1) -> Plausibility:
    """Tests whether honest reports alone could have made the totals of all tiers.

    `repeats` is the largest number of these reports from one device with the same permanent
    response; it is ignored for mechanisms without one.
    """
    smallest, tested, findings = 1.0, 0, []
    for mechanism, totals in tiers:
        if not totals.reports or mechanism.layout.size > _LARGEST:
            continue
        cells = np.array(totals.cells, dtype=np.float64)
        sums = list(family_for(mechanism).sums(mechanism, cells, totals))
        own_repeats = repeats if isinstance(mechanism, Memoized) else 1
        tested += 1
        for bit_sum in sums:
            if bit_sum.off <= 0:
                continue
            # Reports of one device may be the same coins over again: `own_repeats` are one term.
            spread = own_repeats * (bit_sum.variance + bit_sum.off / 3)
            p_value = len(sums) * bit_sum.times * exp(-(bit_sum.off**2) / (2 * spread))
            smallest = min(smallest, p_value)
            if p_value < _ALARM:
                findings.append(bit_sum.what)
    return Plausibility(min(max(tested, 1) * smallest, 1.0), tuple(findings))
