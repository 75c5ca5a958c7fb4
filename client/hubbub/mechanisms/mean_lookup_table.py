"""Mean by table: the average of a number, near the least worst-case variance that there is.

Idea: a window slides over a line of outcomes, as in `mean.piecewise`, but the outcomes stand for
    outputs that are not evenly spaced. The number is rounded at random to one of two neighbouring
    windows, so that the mean output is linear in it.
Guarantee: log(near / far) <= epsilon, the chances of one outcome inside and outside the window,
    whatever the outputs are; the rounding is a mixture of two windows and cannot say more than the
    worse of them.
Sends: an index in [0, steps + width): 1 byte up to epsilon 9.
Estimator and variance: outcome j has the output y_j, and all outputs add up to 0. Window i has the
    sum W_i of its outputs and S_i of their squares. With gap = near - far, its mean output is
    gap W_i, and its mean square far sum_j y_j^2 + gap S_i. A number's place p in the range (0 at
    low, 1 at high) has W = W_0 + p span, span = W_steps - W_0, so the sum of the places is
    (sum y / gap - n W_0) / span. Variance at p: (far sum_j y_j^2 + gap S - (gap W)^2) /
    (gap span)^2 a report, S by linear interpolation between two windows. It is nearly the same at
    all places; an estimate has the largest.
Source: Kairouz, Oh, Viswanath (JMLR 2016), section 3: the best table of chances is a linear
    program's, and has two chances in each column, near and far. For a mean its columns are these
    windows. The outputs are ours (benchmarks/mean_table.py works them out;
    docs/decisions/0212-mechanisms-and-families.md).
"""

from bisect import bisect_right
from dataclasses import field
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Final

from hubbub.fields.frozen import frozen, set_derived
from hubbub.mechanisms import number_range
from hubbub.mechanisms.layout import Estimates, Totals
from hubbub.mechanisms.near_outcomes import Window, Windowed
from hubbub.mechanisms.number_range import Range
from hubbub.mechanisms.probability import DIGITS, exp_at_most

# Per row: epsilon, width, steps, and the outputs as a function of the outcome's place t in [-1, 1]:
# coefficients of sign(t), t, t^3, t^5 and t^7. Between two rows of one width all are interpolated.
# A change of any number is a change of the wire format: it needs another VERSION.
ROWS: Final[tuple[tuple[float, int, int, tuple[int, ...]], ...]] = (
    (0.25, 12, 12, (7877, 1936, 280, -110, 17)),
    (0.5, 12, 12, (6246, 3116, 911, -317, 44)),
    (1, 12, 12, (4103, 4094, 2350, -613, 66)),
    (1, 5, 6, (7449, -3070, 28841, -41454, 18234)),
    (1.25, 5, 6, (6654, -4255, 37020, -51159, 21739)),
    (1.5, 5, 6, (6014, -5084, 42043, -55591, 22618)),
    (1.5, 4, 6, (-5820, 58153, -151005, 201656, -92985)),
    (1.9, 4, 6, (-3066, 37709, -87260, 115959, -53342)),
    (1.9, 5, 8, (-7294, 58646, -139433, 171443, -73361)),
    (2, 5, 8, (-6117, 51001, -114044, 135147, -55987)),
    (2.3, 5, 8, (-3561, 34132, -58587, 56024, -18009)),
    (2.3, 4, 7, (-6097, 47627, -97646, 107965, -41849)),
    (2.7, 4, 7, (-3965, 33574, -57352, 56929, -19185)),
    (2.7, 5, 10, (-1263, 25995, -33952, 29135, -9915)),
    (3, 5, 10, (-601, 19895, -19260, 16202, -6235)),
    (3, 12, 25, (169, 17712, -3756, -14214, 10088)),
    (3.5, 12, 29, (100, 16799, -5484, -6088, 4672)),
    (4, 12, 33, (27, 15679, -5766, -1430, 1489)),
    (4.5, 12, 41, (0, 16152, -7009, 909, -52)),
    (5, 12, 48, (0, 15287, -5942, 691, -36)),
    (6, 12, 67, (0, 14335, -4793, 480, -22)),
    (7, 12, 94, (0, 13801, -4161, 376, -15)),
    (8, 12, 131, (0, 13388, -3679, 303, -11)),
    (9, 12, 183, (0, 13135, -3387, 262, -9)),
    (10, 12, 256, (0, 12979, -3209, 238, -8)),
    (11, 12, 357, (0, 12847, -3058, 218, -7)),
    (12, 12, 498, (0, 12756, -2954, 205, -6)),
    (14, 12, 970, (0, 12652, -2837, 191, -6)),
    (16, 12, 1888, (0, 12594, -2771, 183, -5)),
)
# Number of units into which an epsilon between two rows is divided.
_UNITS: Final = 1 << 12


@frozen()
class TableMean(Windowed, number_range.OfMean):
    """The mean of numbers in [low, high] from one of a table's outcomes each."""

    epsilon: float
    low: float = field(metadata=number_range.LOW)
    high: float = field(metadata=number_range.HIGH)
    range: Range = field(init=False, repr=False)
    window: Window = field(init=False, repr=False)
    outputs: tuple[int, ...] = field(init=False, repr=False)
    sums: tuple[int, ...] = field(init=False, repr=False)
    squares: int = field(init=False, repr=False)

    NAME = "mean.table"
    VERSION = 1
    SMALL = (
        {"epsilon": 0.1, "low": 0, "high": 1},
        {"epsilon": 1.0, "low": -2.5, "high": 7},
        {"epsilon": 2.15, "low": 0, "high": 3600},
        {"epsilon": 4.0, "low": 0, "high": 3600},
    )

    def __post_init__(self) -> None:
        exp_at_most(self.epsilon)  # refuses what is no epsilon
        width, steps, outputs = _table(self.epsilon)
        running = [0, *accumulate(outputs)]
        sums = (running[start + width] - running[start] for start in range(steps + 1))
        set_derived(
            self,
            range=Range(self.low, self.high),
            window=Window(self.epsilon, steps + 1, width),
            outputs=outputs,
            sums=tuple(sums),
            squares=sum(output * output for output in outputs),
        )

    def estimate(self, totals: Totals) -> Estimates:
        """One estimate: the sum over all reports of the number's place in the range, in [0, 1]."""
        totals.check(self.layout)
        total = sum(y * count for y, count in zip(self.outputs, totals.cells, strict=True))
        value = (total / self._gap - totals.reports * self.sums[0]) / self._span
        return Estimates((float(value),), (totals.reports * _worst_variance(self),), totals.reports)

    def variance(self, true: float, reports: int) -> float:
        """As in Mechanism; exact if every report holds the number at true/reports."""
        if not reports:
            return 0.0
        total = self.sums[0] + Fraction(true) / reports * self._span
        start = bisect_right(self.sums, total, 1, len(self.sums) - 1) - 1
        y, end = self.outputs, start + self.window.width
        in_square = sum(x * x for x in y[start:end]) + (y[start] + y[end]) * (
            total - self.sums[start]
        )
        squares = self.window.far * self.squares + self._gap * in_square
        return float(reports * (squares - (self._gap * total) ** 2) / (self._gap * self._span) ** 2)

    def step(self, value: float) -> tuple[int, int]:
        lowest_sum = self.sums[0] << DIGITS
        total = lowest_sum + self.range.scaled(value, self._span << DIGITS)
        start = bisect_right(self.sums, total >> DIGITS) - 1
        if start == len(self.sums) - 1:
            return start, 0
        low, high = self.sums[start : start + 2]
        return start, (total - (low << DIGITS)) // (high - low)

    @property
    def _gap(self) -> Fraction:
        return self.window.near - self.window.far

    @property
    def _span(self) -> int:
        return self.sums[-1] - self.sums[0]


def _table(epsilon: float) -> tuple[int, int, tuple[int, ...]]:
    """Width, number of steps, and integer output of each outcome, the same on every machine."""
    nearest = max(epsilon, ROWS[0][0])
    row_number = min(bisect_right(ROWS, nearest, key=lambda row: row[0]), len(ROWS) - 1)
    (low, width, fewest, lower_coefficients), (high, _, most, upper_coefficients) = ROWS[
        row_number - 1 : row_number + 1
    ]
    above_units = Range(low, high).scaled(nearest, _UNITS)
    down = _UNITS - above_units
    steps = (fewest * down + most * above_units + _UNITS // 2) // _UNITS  # the nearest
    jump, *odd_points = (
        a * down + b * above_units
        for a, b in zip(lower_coefficients, upper_coefficients, strict=True)
    )
    end = steps + width - 1
    powers = (1, 3, 5, 7)
    upper = []
    for place in range(2 - end % 2, end + 1, 2):  # t = place / end
        total = sum(c * place**k * end ** (7 - k) for c, k in zip(odd_points, powers, strict=True))
        upper.append((jump * end**7 + total) // (_UNITS * end**7))
    middle = () if end % 2 else (0,)
    return width, steps, (*(-output for output in reversed(upper)), *middle, *upper)


@lru_cache(maxsize=256)
def _worst_variance(mechanism: TableMean) -> float:
    """The largest variance of one report. Between two windows it is a parabola in the place."""
    y, sums, width = mechanism.outputs, mechanism.sums, mechanism.window.width
    gap = mechanism.window.near - mechanism.window.far
    worst = 0.0
    for start, (low, high) in enumerate(pairwise(sums)):
        vertex = min(max((y[start] + y[start + width]) / (2 * gap), Fraction(low)), Fraction(high))
        place = float((vertex - sums[0]) / (sums[-1] - sums[0]))
        worst = max(worst, mechanism.variance(place, 1))
    return worst
