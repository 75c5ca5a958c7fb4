"""A step: from a round's totals and the rounds before it to the state after it. Pure."""

from dataclasses import replace

import numpy as np

from hubbub.aggregator.learning.rounds import FinishedRound, as_text
from hubbub.aggregator.store.contract import Integers
from hubbub.analysis.models import Round, centre_of, rate_of, stepped, told_by_cells
from hubbub.catalog import Metric
from hubbub.catalog.models.judging import judging
from hubbub.catalog.models.learning import Learning
from hubbub.catalog.models.of_metric import codes_of_round


def step(
    metric: Metric,
    learning: Learning,
    before: list[FinishedRound],
    cells: Integers,
    *,
    epoch: int,
    at: int,
) -> FinishedRound:
    """The round after those before, from the totals of its epoch.

    cells: empty, or of fewer reports than the metric's minimum batch: then it teaches nothing, and
    the state stays as it was.
    """
    number, reports = len(before), int(cells.sum())
    last = before[-1] if before else None
    centre = np.array(last.centre if last else np.zeros(len(learning.columns)))
    state = Round(number, np.array(last.weights if last else np.zeros(learning.dimensions)))
    told: tuple[int, ...] = ()
    if number > learning.rounds:
        told = tuple(cells[: judging(metric).categories].tolist())
    elif reports >= max(metric.fewest, 2):
        codes = codes_of_round(metric, number)
        found = told_by_cells(codes, cells.astype(np.float64))
        if number == 0:
            centre = centre_of(found.first(len(learning.columns) + 1))
            state = replace(state, noise=found.noise)
        else:
            expected = float(np.sqrt(codes.squared_error / reports))
            rate = rate_of(learning.kind, centre, expected)
            before_it = Round(number - 1, state.weights)
            state = stepped(learning.kind, learning.penalty, before_it, found, rate)
    return FinishedRound(
        number,
        epoch,
        reports,
        state.noise,
        state.rate,
        centre.tolist(),
        state.weights.tolist(),
        "" if state.outer is None else as_text(state.outer),
        at,
        told,
    )
