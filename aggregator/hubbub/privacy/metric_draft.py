"""A question before it is a metric: what is asked, and which mechanisms could answer it."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from typing import Any, Literal

from hubbub.mechanisms import built_from

Kind = Literal["values", "strings", "mean", "ranges"]


@dataclass(frozen=True, slots=True)
class MetricDraft:
    """What is asked: `size` listed values, or candidate strings, or buckets of a range; or a mean.

    permanent_epsilon: if values are reported again and again, the epsilon for life of each.
    """

    kind: Kind
    size: int
    low: float = 0.0
    high: float = 1.0
    permanent_epsilon: float | None = None

    def suitable(self, epsilon: float) -> dict[str, dict[str, Any]]:
        """The mechanisms that answer it, with parameters for one report at epsilon."""
        ends = {"epsilon": epsilon, "low": self.low, "high": self.high}
        match self.kind:
            case "values":
                asked = {"epsilon": epsilon, "categories": self.size}
                same = "grr" if self.size == 2 else "rr"  # noqa: PLR2004 for two values they are one
                names = built_from("listed", *asked)
                plain = {name: asked for name in names if name != same}
                chain = _chain(epsilon, self.permanent_epsilon)
                basic = {"rappor.basic": {"categories": self.size, **chain}}
                if self.permanent_epsilon is None:
                    return plain | basic
                lasting = {**asked, "permanent_epsilon": self.permanent_epsilon}
                return dict.fromkeys(built_from("listed", *lasting), lasting) | basic
            case "strings":
                sketch = {"epsilon": epsilon, "hashes": 1024, "width": 1024}
                chain = _chain(epsilon, self.permanent_epsilon)
                bloom = {"rappor": {"bits": 128, "hashes": 1, "cohorts": 64, **chain}}
                if self.permanent_epsilon is None:
                    return bloom | dict.fromkeys(("cms", "hcms"), sketch)
                return bloom
            case "mean":
                return dict.fromkeys(built_from("mean", *ends), ends)
            case "ranges":
                buckets = {**ends, "buckets": self.size}
                return {"wave": buckets, "buckets": {**buckets, "sampled": min(self.size, 4)}}

    def values(self) -> Sequence[Any]:
        """One for each estimate: indices, strings, or the middles of buckets."""
        match self.kind:
            case "strings":
                return [f"string {place}" for place in range(self.size)]
            case "ranges":
                wide = (self.high - self.low) / self.size
                return [self.low + (place + 0.5) * wide for place in range(self.size)]
            case "mean":
                return [(self.low + self.high) / 2]
            case _:
                return range(self.size)


def _chain(epsilon: float, permanent: float | None) -> dict[str, float]:
    """RAPPOR's f, p and q, of one hash: a quarter lies for life where that fits, if none is given.

    A report loses 2 ln(q* / (1 - q*)), all of them 2 ln((1 - f/2) / (f/2)).
    """
    slack = 1 - 2**-36  # a hair below what epsilon allows, for the rounding of probabilities
    one = 1 / (1 + exp(-epsilon / 2 * slack))
    f = min(0.25, 1.8 * (1 - one))
    if permanent is not None:
        f = 2 / (1 + exp(permanent / 2 * slack))
    q = (one - f / 2) / (1 - f)
    return {"f": f, "p": 1 - q, "q": q}
