"""Rows of an answer: interval, share, rank and detection of each value."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from hubbub.analysis.answer import ValueAnswer
from hubbub.analysis.arrays import Floats, Mask, records
from hubbub.analysis.estimators.consistency import within_ends
from hubbub.analysis.value_estimates import ValueEstimates


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Estimates, standard errors, ends of intervals, in reports; and what stands out."""

    estimates: Floats
    stderrs: Floats
    low: Floats
    high: Floats
    detected: Mask
    reports: int

    @classmethod
    def of(cls, figures: ValueEstimates, reports: int, confidence: float) -> Self:
        """The columns with intervals and detections that are valid for the top of the list."""
        usable = replace(figures, absent=np.maximum(figures.absent, 1e-9))
        low, high, detected = usable.ranked(reports + figures.unsure, confidence)
        return cls(
            estimates=figures.estimates,
            stderrs=figures.stderrs,
            # The true counts sum to the reports, so no lower end may exceed them.
            low=np.minimum(low, reports),
            high=high,
            detected=detected,
            reports=reports,
        )

    def rows(self, names: Sequence[str], consistent: Floats) -> tuple[ValueAnswer, ...]:
        """A row for each name, with rank and share."""
        number = max(self.reports, 1)
        return records(
            ValueAnswer,
            names,
            estimate=self.estimates,
            stderr=self.stderrs,
            low=self.low,
            high=self.high,
            share=self.estimates / number,
            rank=np.argsort(np.argsort(-self.estimates, kind="stable")) + 1,
            detected=self.detected,
            consistent=consistent,
            share_low=self.low / number,
            share_high=np.minimum(self.high / number, 1.0),
        )

    def nearest(self, absent: Floats, *, others: bool = False) -> Floats:
        """The histogram nearest to the estimates and inside their intervals.

        With `others`, the rest belongs to other strings. All values have the weight of absent ones:
        with their own errors, frequent values would give up most, since some mechanisms estimate
        them less precisely than rare ones.
        """
        estimates, low, high = self.estimates, self.low, self.high
        variances = np.maximum(absent, 1e-9) ** 2
        if others:
            estimates = np.append(estimates, self.reports - estimates.sum())
            variances = np.append(variances, variances.sum())
            low, high = np.append(low, 0.0), np.append(high, float(self.reports))
        return within_ends(estimates, variances, (low, high), self.reports)[: len(absent)]
