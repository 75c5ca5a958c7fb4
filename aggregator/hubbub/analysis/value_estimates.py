"""Each value's estimate and its errors, before intervals and marks are made of them."""

from dataclasses import dataclass, replace

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.analysis.uncertainty.intervals import Tail


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueEstimates:
    """Of each value, in reports: estimate, its standard error, and that if nobody held the value.

    absent: a value is judged by these. growth: how much variance a report adds to its own value's
        estimate. bend: by how much less with every report that it has already. tail: of what nobody
        holds, where the normal law does not do. step: what one report more makes of an estimate.
    typical: the variance that tiers are weighed by, where it is not that of what nobody holds.
    smooth: a likelier shape, where there is one.
    unsure: how many more reports than are told there may be at most, where their number is an
        estimate; a value may be held by as many.
    number_variance, number_covariance: of the number of reports where it is an estimate, and of it
        with every value's estimate.
    noise_variance: what of every value's variance is of noise dummies, whose law is two-sided
        exponential and not normal.
    place: of ranges, the same of one figure, the sum of the numbers' places: 0 at low, 1 at high.
    """

    estimates: Floats
    stderrs: Floats
    absent: Floats
    growth: Floats
    tail: Tail | None = None
    bend: float = 0.0
    step: float = 0.0
    typical: float | None = None
    smooth: Floats | None = None
    unsure: int = 0
    number_variance: float = 0.0
    number_covariance: float = 0.0
    noise_variance: float = 0.0
    place: "ValueEstimates | None" = None

    def of_shares(self, reports: int, repeats: int = 0) -> "ValueEstimates":
        """The same with the errors of shares, times all the reports.

        Of t of n, where n is an estimate, the error is of t - s n for a share s.
        repeats: of the population's share, how many of the reports one device may have made: who
            happens to report varies by t (1 - t / n), and as often. 0: of those who reported.
        """
        number = max(reports, 1)
        whole, both = self.number_variance, self.number_covariance
        growth = repeats - 2 * both / number
        bend = repeats / number - whole / number**2
        counts = np.clip(self.estimates, 0.0, number)
        square = self.stderrs**2 + growth * counts - bend * counts**2
        return replace(
            self,
            stderrs=np.sqrt(np.maximum(square, 0.0)),
            growth=self.growth + growth,
            bend=self.bend + bend,
            unsure=0,
        )
