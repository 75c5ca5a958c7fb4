"""Piecewise mechanism, in discrete form: the average of a number, best for larger epsilon.

Idea: the range is cut into `steps`; the number is rounded up or down to a step at random, so that
    its mean stays. The report is a place on a longer line, most likely in a window that begins at
    the number's step. The mean place is linear in the number.
Guarantee: log(near / far) <= epsilon, the chances of one place inside and outside the window; the
    rounding is a mixture of two windows and cannot say more than the worse of them.
Sends: an index in [0, steps + width), width = steps/sqrt(e): 2 bytes.
Estimator and variance: a report x has mean a i + b at step i, a = inside - width far, so the sum of
    the numbers' places in the range (0 at low, 1 at high) is (sum x - n b)/(a steps). The variance
    is linear in n, sum i and sum i^2, and the last is estimated from sum x^2. In the limit of many
    steps and for a number t in [-1, 1]: (t^2/(sqrt(e)-1) + (sqrt(e)+3)/(3 (sqrt(e)-1)^2)) / 4 a
    report.
Source: Wang N. et al. (ICDE 2019), algorithm 2; the discrete form and its exact moments are ours
    (docs/decisions/0212-mechanisms-and-families.md).
"""

import math
from collections.abc import Sequence
from dataclasses import field
from fractions import Fraction

from hubbub.fields.frozen import frozen, set_derived
from hubbub.mechanisms import number_range
from hubbub.mechanisms.layout import Estimates, Totals
from hubbub.mechanisms.mechanism import check_whole, whole
from hubbub.mechanisms.near_outcomes import Window, Windowed
from hubbub.mechanisms.number_range import MAX_BUCKETS, Range
from hubbub.mechanisms.probability import DIGITS, exp_at_most


@frozen()
class PiecewiseMean(Windowed, number_range.OfMean):
    """The mean of numbers in [low, high] from a place on a line each."""

    epsilon: float
    low: float = field(metadata=number_range.LOW)
    high: float = field(metadata=number_range.HIGH)
    steps: int = field(
        default=256,
        metadata=whole("Number of steps of the range.", 2, MAX_BUCKETS, example=256),
    )
    range: Range = field(init=False, repr=False)
    window: Window = field(init=False, repr=False)

    NAME = "mean.piecewise"
    VERSION = 1
    SMALL = (
        {"epsilon": 0.1, "low": 0, "high": 1, "steps": 2},
        {"epsilon": 1.0, "low": -2.5, "high": 7, "steps": 8},
        {"epsilon": 3.0, "low": 0, "high": 3600, "steps": 16},
    )

    def __post_init__(self) -> None:
        check_whole(self, "steps")  # one step has no inside
        width = max(1, round(self.steps / exp_at_most(self.epsilon, Fraction(1, 2))))
        window = Window(self.epsilon, self.steps + 1, width)
        set_derived(self, range=Range(self.low, self.high), window=window)

    @property
    def contributions(self) -> Sequence[float]:
        """What a report of each place adds to the estimate."""
        slope, base, *_ = map(float, self._moments())
        return [(x - base) / (slope * self.steps) for x in range(self.layout.size)]

    def estimate(self, totals: Totals) -> Estimates:
        """One estimate: the sum over all reports of the number's place in the range, in [0, 1]."""
        totals.check(self.layout)
        reports, size = totals.reports, self.layout.size
        # Dummies are uniform over all places, but for those at both ends.
        padding = Fraction(totals.dummies * (size - 1), 6)
        at_ends = Fraction(totals.at_ends * (size - 1) * (size - 2), 6)
        weighted_sum = sum(x * count for x, count in enumerate(totals.cells)) - 3 * padding
        all_squares = sum(x * x * count for x, count in enumerate(totals.cells))
        square_sum = all_squares - (2 * size - 1) * padding - at_ends
        slope, base, square_base, square_slope = self._moments()
        places = (weighted_sum - reports * base) / slope
        squares = (square_sum - reports * square_base - places * square_slope) / slope
        value = places / self.steps
        places = min(max(places, Fraction(0)), Fraction(reports * self.steps))
        least = places**2 / reports if reports else Fraction(0)
        squares = min(max(squares, least), places * self.steps)
        # The position between two steps is unknown: assume the most that rounding adds.
        variance = float(self._variance(places, squares, reports, Fraction(reports, 4)))
        if totals.has_dummies:
            variance += number_range.dummies_variance(
                self.contributions, totals, float(places / self.steps)
            )
        return Estimates((float(value),), (variance,), reports)

    def variance(self, true: float, reports: int) -> float:
        """As in Mechanism; exact if every report holds the number at true/reports."""
        if not reports:
            return 0.0
        place = Fraction(true) / reports * self.steps
        remainder = place - math.floor(place)
        squares = place**2 + remainder * (1 - remainder)  # the step to which it is rounded
        return float(
            reports * self._variance(place, squares, 1, spread=remainder * (1 - remainder))
        )

    def step(self, value: float) -> tuple[int, int]:
        return divmod(self.range.scaled(value, self.steps << DIGITS), 1 << DIGITS)

    def _moments(self) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        """a, b, c, d: a report x at step i has mean a i + b and mean square a i^2 + d i + c."""
        width, size, far = self.window.width, self.layout.size, self.window.far
        slope = self.window.inside.exact - width * far
        sum_of_indices = Fraction(size * (size - 1), 2)
        squares = Fraction((size - 1) * size * (2 * size - 1), 6)
        middle = Fraction(width - 1, 2)
        base = slope * middle + far * sum_of_indices
        square_base = slope * Fraction((width - 1) * (2 * width - 1), 6) + far * squares
        return slope, base, square_base, slope * (width - 1)

    def _variance(
        self, places: Fraction, squares: Fraction, reports: int, spread: Fraction = Fraction(0)
    ) -> Fraction:
        """The estimate's variance; `spread` is the part of `squares` that rounding adds."""
        slope, base, square_base, square_slope = self._moments()
        mean_squares = reports * square_base + places * square_slope + slope * squares
        means_squared = (
            slope**2 * (squares - spread) + 2 * slope * base * places + reports * base**2
        )
        return (mean_squares - means_squared) / (slope * self.steps) ** 2
