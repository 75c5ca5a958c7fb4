"""Adds up the figures of many rehearsals."""

from collections import defaultdict
from dataclasses import dataclass, field

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


@dataclass(slots=True, kw_only=True)
class Tally:
    """Accumulates a summary, run by run."""

    runs: int = 0
    refused: int = 0
    withheld: int = 0
    compared: defaultdict[str, Comparison] = field(default_factory=lambda: defaultdict(Comparison))
    false: int = 0
    false_shares: float = 0.0
    recalled: float = 0.0
    begun: float = 0.0
    recalls: int = 0

    def add(self, run: Run) -> None:
        """Adds a run."""
        self.withheld += run.withheld
        if not run.answered:
            self.refused += 1
            return
        self.runs += 1
        if run.recall is not None and run.recall_begun is not None:
            self.recalled += run.recall
            self.begun += run.recall_begun
            self.recalls += 1
        for pair in run.associations:
            self.compared["associations"].add(pair.true, pair.low, pair.high)
        for share in run.public:
            self.compared["public"].add(share.true, share.low, share.high)
        for percentile in run.percentiles:
            self.compared["percentiles"].add(float(percentile.holds), 1.0, 1.0)
        for figure in run.figures:
            self.compared["figures"].add(float(figure.holds), 1.0, 1.0)
        if run.effects:
            self.compared["effects"].add(float(any(row.shown for row in run.effects)), 1.0, 1.0)
        for row in run.values:
            self.compared["values"].add(row.true, row.low, row.high, row.estimate)
            if row.shown:
                self.compared["shown"].add(row.true, row.low, row.high)
        flagged = [row.true for row in run.values if row.detected]
        self.false += flagged.count(0)
        self.false_shares += flagged.count(0) / max(len(flagged), 1)

    def summary(self) -> Summary:
        """The summary of all runs so far."""
        return Summary(
            coverage=self.compared["values"].coverage,
            coverage_shown=self.compared["shown"].coverage,
            false_flags=self.false / max(self.runs, 1),
            false_share=self.false_shares / max(self.runs, 1),
            rms_error=self.compared["values"].rms_error or 0.0,
            refused=self.refused,
            recall=self.recalled / self.recalls if self.recalls else None,
            recall_begun=self.begun / self.recalls if self.recalls else None,
            withheld=self.withheld,
            coverage_associations=self.compared["associations"].coverage,
            coverage_public=self.compared["public"].coverage,
            coverage_percentiles=self.compared["percentiles"].coverage,
            effects_shown=self.compared["effects"].coverage,
            coverage_figures=self.compared["figures"].coverage,
        )
