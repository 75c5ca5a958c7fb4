"""What is known of a line's points: how unsure each is, were its share what its neighbours say."""

from collections.abc import Sequence

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.analysis.numbers import Mean

_AROUND = 7


def known_variances(
    points: Sequence[Mean], reports: Sequence[int], ends: tuple[float, float]
) -> Floats:
    """The variances of estimates, in their unit squared, without each one's own chance.

    A report's error is a parabola in the truth, the same every day. Where an estimate happens to be
    low it seems surer than it is, and a line would lean to it: so the truth is taken from the days
    around, and the variance from the parabola.

    ends: between which the truth lies.
    """
    numbers = np.array(reports, dtype=np.float64)
    levels = np.clip([point.estimate for point in points], *ends)
    unit_variances = np.array([point.stderr for point in points]) ** 2 * numbers
    powers = np.vander(levels, 3)
    parabola = np.linalg.lstsq(powers, unit_variances, rcond=1e-9)[0]
    around = np.ones(2 * _AROUND + 1)
    width = min(len(around), len(levels))
    kernel = around[:width]
    near = np.convolve(levels * numbers, kernel, "same") / np.convolve(numbers, kernel, "same")
    fit_values = np.vander(near, 3) @ parabola
    answer: Floats = np.clip(fit_values, unit_variances.min(), unit_variances.max()) / numbers
    return answer
