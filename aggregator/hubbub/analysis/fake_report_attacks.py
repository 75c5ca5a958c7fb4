"""What fake reports can do: those that look like honest ones cannot be seen in totals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.analysis.families import family_for
from hubbub.errors import BadParameter
from hubbub.mechanisms import AnyMechanism, BitVector, CohortBits, Layout, OneHot, Samples, Subset

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
