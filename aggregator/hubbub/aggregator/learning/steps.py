"""A step: from a round's totals and the rounds before it to the state after it. Pure."""

import numpy as np

from hubbub.aggregator.learning.rounds import FinishedRound
from hubbub.aggregator.store.contract import Integers
from hubbub.analysis.models import Round, centre_of, mean_of_cells, rate_of, stepped
from hubbub.catalog import Metric
from hubbub.catalog.models.learning import Learning
from hubbub.catalog.models.of_metric import codes_of_round


def step(
    metric: Metric, learning: Learning, before: list[FinishedRound], cells: Integers, at: int
) -> FinishedRound:
    """The round after those before, from the totals of its epoch.

    cells: empty, or of fewer reports than the metric's minimum batch: then it teaches nothing, and
    the state stays as it was.
    """
    number, reports = len(before), int(cells.sum())
    columns = learning.dimensions - 1
    last = before[-1] if before else None
    centre = np.array(last.centre if last else np.zeros(columns))
    weights = np.array(last.weights if last else np.zeros(columns + 1))
    spread, noise, rate = np.zeros(columns + 1), 0.0, 0.0
    if reports >= max(metric.fewest, 2):
        codes = codes_of_round(metric, number)
        found = mean_of_cells(codes, cells.astype(np.float64))
        noise = float(np.sqrt(found[1].sum()))
        if number == 0:
            centre = centre_of(*found)
        else:
            expected = float(np.sqrt(codes.squared_error / reports))
            rate = rate_of(learning.kind, centre, expected)
            state = Round(number - 1, weights)
            after, spread = stepped(learning.kind, learning.penalty, state, found, rate)
            weights = after.weights
    return FinishedRound(
        number,
        reports,
        noise,
        rate,
        centre.tolist(),
        weights.tolist(),
        spread.tolist(),
        at,
    )
