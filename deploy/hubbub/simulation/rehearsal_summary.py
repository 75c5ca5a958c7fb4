"""Adds up the figures of many rehearsals."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hubbub.simulation.rehearsal import Run
from hubbub.simulation.truth import Comparison


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Errors and coverage over all runs.

    Attributes:
        coverage, coverage_*: part of the intervals that contain the truth; None without intervals.
        false_flags: mean number of detected values in a run that nobody holds; false_share: mean
            part of the detected values of a run that are such.
        rms_error: of estimates, in reports or a mean's unit.
        recall, recall_begun: means of those of Run; None if no strings are discovered.
        refused: runs below the minimum batch. withheld: epochs with fewer reports than the crowd.
        effects_shown: part of the runs that show an effect of an experiment; None without one.
    """

    coverage: float | None
    coverage_shown: float | None
    false_flags: float
    false_share: float
    rms_error: float
    refused: int
    recall: float | None = None
    recall_begun: float | None = None
    withheld: int = 0
    coverage_associations: float | None = None
    coverage_public: float | None = None
    coverage_percentiles: float | None = None
    effects_shown: float | None = None
    coverage_figures: float | None = None


def summary_of(runs: Iterable[Run]) -> Summary:
    """Adds up the figures of all runs, each as it comes."""
    compared: defaultdict[str, Comparison] = defaultdict(Comparison)
    numbers: defaultdict[str, list[float]] = defaultdict(list)
    refused = withheld = 0
    for run in runs:
        withheld += run.withheld
        if not run.answered:
            refused += 1
            continue
        if run.recall is not None and run.recall_begun is not None:
            numbers["recall"].append(run.recall)
            numbers["recall_begun"].append(run.recall_begun)
        _compare(run, compared)
        flagged = [row.true for row in run.values if row.detected]
        numbers["false_flags"].append(flagged.count(0))
        numbers["false_share"].append(flagged.count(0) / max(len(flagged), 1))
    means = {name: sum(values) / len(values) for name, values in numbers.items()}
    return Summary(
        coverage=compared["values"].coverage,
        coverage_shown=compared["shown"].coverage,
        false_flags=means.get("false_flags", 0.0),
        false_share=means.get("false_share", 0.0),
        rms_error=compared["values"].rms_error or 0.0,
        refused=refused,
        recall=means.get("recall"),
        recall_begun=means.get("recall_begun"),
        withheld=withheld,
        coverage_associations=compared["associations"].coverage,
        coverage_public=compared["public"].coverage,
        coverage_percentiles=compared["percentiles"].coverage,
        effects_shown=compared["effects"].coverage,
        coverage_figures=compared["figures"].coverage,
    )


def _compare(run: Run, compared: Mapping[str, Comparison]) -> None:
    for pair in run.associations:
        compared["associations"].add(pair.true, pair.low, pair.high)
    for share in run.public:
        compared["public"].add(share.true, share.low, share.high)
    for percentile in run.percentiles:
        compared["percentiles"].add(float(percentile.holds), 1.0, 1.0)
    for figure in run.figures:
        compared["figures"].add(float(figure.holds), 1.0, 1.0)
    if run.effects:
        compared["effects"].add(float(any(row.shown for row in run.effects)), 1.0, 1.0)
    for row in run.values:
        compared["values"].add(row.true, row.low, row.high, row.estimate)
        if row.shown:
            compared["shown"].add(row.true, row.low, row.high)
