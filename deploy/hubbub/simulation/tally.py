"""A tally: what many rehearsals say together."""

from dataclasses import dataclass
from math import sqrt

from hubbub.simulation.rehearsal import Run


@dataclass(frozen=True, slots=True)
class Summary:
    """Over all runs. coverage: shares of intervals that hold the truth; None where there is none.

    false_flags: how many values that nobody holds are flagged in a run; false_share: of a run's
    flags, how many are false, on average. rms_error: of estimates, in reports, or a mean's unit.
    recall: of strings that are found 95 times in 100, how many were, whole; None where none is
    looked for. recall_begun: how many were whole or by their beginning.
    refused: runs without an answer, for having had fewer reports than the minimum batch.
    withheld: epochs that did not leave the shuffler, having had fewer reports than the crowd.
    coverage_associations, coverage_public: of Cramer's V of two parts; of shares among those of one
    public value.
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


@dataclass(slots=True)
class Tally:
    """Adds up what a summary needs, run by run."""

    runs: int = 0
    refused: int = 0
    rows: int = 0
    held: int = 0
    shown: int = 0
    shown_held: int = 0
    false: int = 0
    false_shares: float = 0.0
    squares: float = 0.0
    recalled: float = 0.0
    begun: float = 0.0
    associated: int = 0
    associated_held: int = 0
    public: int = 0
    public_held: int = 0
    recalls: int = 0
    withheld: int = 0

    def add(self, run: Run) -> None:
        """One more run."""
        self.withheld += run.withheld
        if not run.answered:
            self.refused += 1
            return
        if run.recall is not None and run.recall_begun is not None:
            self.recalled += run.recall
            self.begun += run.recall_begun
            self.recalls += 1
        self.associated += len(run.associations)
        self.associated_held += sum(one.low <= one.true <= one.high for one in run.associations)
        self.public += len(run.public)
        self.public_held += sum(one.low <= one.true <= one.high for one in run.public)
        flags = false = 0
        for row in run.values:
            holds = row.low <= row.true <= row.high
            self.held += holds
            self.shown += row.shown
            self.shown_held += row.shown and holds
            flags += bool(row.detected)
            false += bool(row.detected) and row.true == 0
            self.squares += (row.estimate - row.true) ** 2
        self.runs += 1
        self.rows += len(run.values)
        self.false += false
        self.false_shares += false / max(flags, 1)

    def summary(self) -> Summary:
        """What all runs say."""
        return Summary(
            self.held / self.rows if self.rows else None,
            self.shown_held / self.shown if self.shown else None,
            self.false / max(self.runs, 1),
            self.false_shares / max(self.runs, 1),
            sqrt(self.squares / max(self.rows, 1)),
            self.refused,
            self.recalled / self.recalls if self.recalls else None,
            self.begun / self.recalls if self.recalls else None,
            self.withheld,
            self.associated_held / self.associated if self.associated else None,
            self.public_held / self.public if self.public else None,
        )
