"""Arrays of this package: one number, or one truth value, per value of a metric."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Record = TypeVar("Record")


def bisected(
    inner: Floats, outer: Floats, is_inside: Callable[[Floats], Mask], halvings: int
) -> tuple[Floats, Floats]:
    """The ends after halving each interval so often; `is_inside` holds on the side of `inner`."""
    for _ in range(halvings):
        middle = (inner + outer) / 2
        at_middle = is_inside(middle)
        inner, outer = np.where(at_middle, middle, inner), np.where(at_middle, outer, middle)
    return inner, outer


def records(
    kind: Callable[..., Record], names: Sequence[str], **columns: npt.NDArray[np.generic]
) -> tuple[Record, ...]:
    """A record for each name, which is its `value`, with its number of each column."""
    fields = ("value", *columns)
    rows = zip(names, *map(np.ndarray.tolist, columns.values()), strict=True)
    return tuple([kind(**dict(zip(fields, row, strict=True))) for row in rows])
