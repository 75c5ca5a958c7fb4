"""Fake reports: whether honest ones alone could have made these totals, and what fakes can do.

Whatever values people hold, some sums have a known mean: how many values a report supports, and an
estimate that cannot be below 0 or above the reports. A sum further away than chance allows shows
that some reports were not made by the mechanism. Fake reports that look like honest ones cannot be
seen in totals; `maximal_gain` bounds their effect.

p-values are upper bounds for any number of reports, by Bernstein's inequality: for a sum of
independent terms with variance v, each within b of its mean, P(sum - mean >= t) is at most
exp(-t^2 / (2 (v + b t / 3))); over several sums they are added up (Bonferroni).
Source: Bernstein (1924), in Boucheron, Lugosi, Massart, Concentration Inequalities (2013), 2.8; the
idea to detect fakes by how many values they support: Cao, Jia, Gong (2021), section 6.2.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp
from typing import Any, Final

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.analysis.families import family_for
from hubbub.analysis.families.tiers import Tier
from hubbub.errors import BadParameter
from hubbub.mechanisms import (
    AnyMechanism,
    BitVector,
    CohortBits,
    Layout,
    Memoized,
    OneHot,
    Samples,
    Subset,
)

# At this false-alarm rate an answer is called suspicious.
_ALARM: Final = 1e-6
_MAX_CELLS: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Plausibility:
    """Result of a plausibility test; `findings` describes each deviation below one in a million.

    `p_value` is an upper bound on the probability that honest reports deviate so much; 1 is normal.
    """

    p_value: float
    findings: tuple[str, ...]


def plausibility(tiers: Sequence[Tier], repeats: int = 1) -> Plausibility:
    """Tests whether honest reports alone could have made the totals of all tiers: a flag.

    `repeats` is the largest number of these reports from one device with the same permanent
    response; it is ignored for mechanisms without one.
    """
    smallest, tested, findings = 1.0, 0, []
    for mechanism, totals in tiers:
        if not totals.reports or mechanism.layout.size > _MAX_CELLS:
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


_LARGEST: Final = 1 << 22  # cells times targets that are looked at


@dataclass(frozen=True, slots=True)
class Attack:
    """The most effective fake report for some targets.

    Args:
        cells: how much its payload adds to each cell.
        worth: how much it adds to the targets' estimates together, in reports; an honest report of
            a target adds 1 on average.
        margin: how much more the targets' share may grow where estimates are not linear.
    """

    cells: Mapping[int, int]
    worth: float
    margin: float = 0.0

    def gain(self, fake_share: float, true_share: float = 0.0) -> float:
        """Largest increase of the targets' share, if a share `fake_share` of reports is fake."""
        return fake_share * (self.worth - true_share) + self.margin

    def fake_share(self, gain: float, true_share: float = 0.0) -> float:
        """Share of fake reports needed for this gain, without the margin; above 1: impossible."""
        return gain / (self.worth - true_share)


def maximal_gain(mechanism: AnyMechanism, targets: Sequence[Any]) -> Attack:
    """The attack that promotes these targets most: the maximal gain attack, for every mechanism.

    An attacker who runs m of n + m clients needs no mechanism: each fake client sends the payload
    that moves the targets' estimates furthest. Estimates are linear in the cells, but for the known
    errors of a vector's books, which have a margin; so the worst payload is the heaviest that its
    layout allows. With a share b = m / (n + m) of all reports and a true share f of the targets
    among the honest, the targets' estimated share grows by b (worth - f). For GRR, worth =
    1 + (d - r) / (e^eps - 1); for OUE, r (2 + 2 / (e^eps - 1)), with r targets.
    Source: Cao, Jia, Gong, Data Poisoning Attacks to Local Differential Privacy Protocols (USENIX
    Security 2021), section 4; stated there for GRR, OUE and OLH.

    `targets` are places of listed values or of buckets of a range, or strings for a mechanism over
    strings; [0] for a mean. Raises BadParameter for no target, an unknown one, or too many.
    """
    if not targets:
        raise BadParameter("an attack needs at least one target")
    if mechanism.layout.size * len(targets) > _LARGEST:
        raise BadParameter(
            f"{len(targets)} targets over {mechanism.layout.size:,} cells are too many to examine"
        )
    family = family_for(mechanism)
    weights, base = family.weights(mechanism, targets)
    cells = _heaviest_payload(mechanism.layout, weights)
    worth = sum(float(weights[cell]) * number for cell, number in cells.items())
    return Attack(cells, worth + base, family.gain_margin(mechanism, targets))


def _heaviest_payload(layout: Layout, weights: Floats) -> dict[int, int]:
    """What the payload with the largest sum of weights adds to each cell."""
    match layout:
        case OneHot():
            return {int(np.argmax(weights)): 1}
        case BitVector():
            return dict.fromkeys(np.flatnonzero(weights > 0).tolist(), 1)
        case Subset():
            heaviest = np.argsort(-weights, kind="stable")[: layout.ones]
            return dict.fromkeys(sorted(heaviest.tolist()), 1)
        case Samples():
            answers = weights.reshape(layout.buckets, 2)
            sample = np.argsort(-answers.max(axis=1), kind="stable")[: layout.sampled]
            return {int(2 * b + answers[b].argmax()): 1 for b in sorted(sample.tolist())}
        case CohortBits():
            rows = weights.reshape(layout.cohorts, layout.bits + 1)
            cohort = int(np.argmax(rows[:, 0] + np.clip(rows[:, 1:], 0, None).sum(axis=1)))
            start = cohort * (layout.bits + 1)
            one_bits = start + 1 + np.flatnonzero(rows[cohort, 1:] > 0)
            return dict.fromkeys([start, *one_bits.tolist()], 1)
    raise AssertionError(f"no attack on {layout}")  # pragma: no cover
