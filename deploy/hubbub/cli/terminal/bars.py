"""Bars with whiskers, in characters: an estimate from zero, and across its end the interval."""

from collections.abc import Sequence
from typing import Final

_EIGHTHS: Final = " ▏▎▍▌▋▊▉"


def bars(rows: Intervals, width: int = 32) -> list[str]:
    """One line per row, all on one scale that holds zero and every interval.

    rows: of each an estimate, and the low and high end of its interval.
    """
    if not rows:
        return []
    least = min(0.0, *(row[1] for row in rows))
    most = max(0.0, *(row[2] for row in rows))
    step = (most - least) / width or 1.0
    return [_bar(row, least, step, width) for row in rows]


def _bar(row: tuple[float, float, float], least: float, step: float, width: int) -> str:
    estimate, low, high = ((number - least) / step for number in row)
    zero = -least / step
    begin, end = sorted((zero, estimate))
    cells = []
    for cell in range(width):
        covered = min(end, cell + 1) - max(begin, cell)
        if covered >= 1 - 1e-9:
            cells.append("█")
        elif covered > 0 and cell < zero <= cell + 1 and estimate < zero:
            cells.append("▐")  # what lies below zero begins at its right end
        else:
            cells.append(_EIGHTHS[max(0, int(8 * covered))])
    first, last = (min(max(int(place), 0), width - 1) for place in (low, high))
    if first < last:
        cells[first], cells[last] = "├", "┤"
        cells[first + 1 : last] = "─" * (last - first - 1)
    middle = min(max(int(estimate), 0), width - 1)
    cells[middle] = "┼" if first < last else "│"
    return "".join(cells).rstrip()
