"""A question before it is a metric: its kind and size, and the mechanisms that could answer it."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import exp, prod, sqrt
from typing import Any, Final, Literal

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.mechanisms import names_of
from hubbub.mechanisms.pairs_of_parts import PairedParts
from hubbub.mechanisms.privset import PrivSet
from hubbub.mechanisms.vector_codes import VectorCodes, pool_for

Kind = Literal["values", "strings", "mean", "ranges", "sets", "parts", "vector"]

MEANS: Final = ("mean", "vector")
"""Questions of numbers, whose errors are shares of their range."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricDraft:
    """A question about listed values, candidate strings, a range, a mean, sets, parts or a vector.

    Args:
        size: number of listed values, candidates, buckets, cells of all tables, or coordinates.
        low, high: range of numbers; of a vector, from -high to high.
        permanent_epsilon: for values that are reported repeatedly, lifetime epsilon of each.
        most: for sets, number of values that a person reports.
        parts: number of values of each part.
        ways: number of parts in a table.
    """

    kind: Kind
    size: int
    low: float = 0.0
    high: float = 1.0
    permanent_epsilon: float | None = None
    most: int = 1
    parts: tuple[int, ...] = ()
    ways: int = 2

    def suitable(self, epsilon: float, reports: float = 0) -> dict[str, dict[str, Any]]:  # noqa: PLR0911 one for each kind
        """The mechanisms that can answer it, with parameters for one report at epsilon.

        `reports` is the number of an epoch, 0 if it is unknown.
        """
        ends = {"epsilon": epsilon, "low": self.low, "high": self.high}
        match self.kind:
            case "values":
                parameters = {"epsilon": epsilon, "categories": self.size}
                chain = _chain(epsilon, self.permanent_epsilon)
                basic = {"rappor.basic": {"categories": self.size, **chain}}
                if self.permanent_epsilon is None:
                    same = "grr" if self.size == 2 else "rr"  # noqa: PLR2004 for two values they are one
                    names = names_of("listed", *parameters)
                    return {name: parameters for name in names if name != same} | basic
                lasting = {**parameters, "permanent_epsilon": self.permanent_epsilon}
                return dict.fromkeys(names_of("listed", *lasting), lasting) | basic
            case "strings":
                sketch = {"epsilon": epsilon, "hashes": 1024, "width": 1024}
                chain = _chain(epsilon, self.permanent_epsilon)
                bloom = {"rappor": {"bits": 128, "hashes": 1, "cohorts": 64, **chain}}
                names = ("cms", "hcms") if self.permanent_epsilon is None else ()
                return bloom | dict.fromkeys(names, sketch)
            case "mean":
                return dict.fromkeys(names_of("mean", *ends), ends)
            case "ranges":
                buckets = {**ends, "buckets": self.size}
                sampled = {**buckets, "sampled": min(self.size, 4)}
                names = names_of("ranges", *buckets)
                return dict.fromkeys(names, buckets) | {"buckets": sampled}
            case "sets":
                arguments: dict[str, Any] = {"categories": self.size, "most": self.most}
                return {PrivSet.NAME: {"epsilon": epsilon, **arguments}}
            case "parts":
                arguments = {"sizes": self.parts, "ways": self.ways}
                return {PairedParts.NAME: {"epsilon": epsilon, **arguments}}
            case "vector":
                arguments = {"dimensions": self.size, "max_length": self.high}
                pool = pool_for(epsilon, reports, self.size)
                return {VectorCodes.NAME: {"epsilon": epsilon, **pool, **arguments}}

    def values(self) -> Sequence[Any]:
        """Example values with equal shares: indices, strings, or middles of buckets.

        One for each estimate; for sets, each value with the next ones, as many as are reported; for
        parts, some that cover every value.
        """
        match self.kind:
            case "sets":
                offsets = range(min(self.most, self.size))
                return [
                    sum(1 << (place + offset) % self.size for offset in offsets)
                    for place in range(self.size)
                ]
            case "parts":
                return PairedParts(1.0, self.parts).probes()
            case "strings":
                return [f"string {place}" for place in range(self.size)]
            case "ranges" | "mean":
                wide = (self.high - self.low) / self.size
                return [self.low + (place + 0.5) * wide for place in range(self.size)]
            case "vector":
                return [(self.high / sqrt(self.size),) * self.size]
            case _:
                return range(self.size)

    def even(self) -> Floats:
        """Share of each estimate, if all example values are equally frequent."""
        match self.kind:
            case "sets":
                return np.full(self.size, min(self.most / self.size, 1.0))
            case "parts":
                tables = [prod(sizes) for sizes in combinations(self.parts, self.ways)]
                return np.repeat([1 / cells for cells in tables], tables)
            case _:
                return np.full(self.size, 1 / self.size)

    def holding(self, place: int, share: float) -> tuple[Sequence[Any], Floats]:
        """Values and their shares, if the estimate at `place` has `share` and the rest is even."""
        match self.kind:
            case "sets":
                return [1 << place, 0], np.array([share, 1 - share])
            case "parts":
                mechanism = PairedParts(1.0, self.parts, self.ways)
                sample_values = [mechanism.with_cell(place, turn) for turn in (0, 1)]
                return sample_values, np.array([share, 1 - share])
            case _:
                shares = np.full(self.size, (1 - share) / max(self.size - 1, 1))
                shares[place] = share
                return self.values(), shares


def _chain(epsilon: float, permanent: float | None) -> dict[str, float]:
    """RAPPOR's f, p and q, for one hash; without a permanent epsilon f is a quarter if that fits.

    A report loses 2 ln(q* / (1 - q*)), all of them 2 ln((1 - f/2) / (f/2)).
    """
    slack = 1 - 2**-36  # a hair below what epsilon allows, for the rounding of probabilities
    p_one = 1 / (1 + exp(-epsilon / 2 * slack))
    f = min(0.25, 1.8 * (1 - p_one))
    if permanent is not None:
        f = 2 / (1 + exp(permanent / 2 * slack))
    q = (p_one - f / 2) / (1 - f)
    return {"f": f, "p": 1 - q, "q": q}
