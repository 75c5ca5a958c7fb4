"""The arrays of this package: a figure, or a yes or no, for every value."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
