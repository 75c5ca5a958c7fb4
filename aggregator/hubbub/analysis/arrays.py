"""Arrays of this package: one number, or one truth value, per value of a metric."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
