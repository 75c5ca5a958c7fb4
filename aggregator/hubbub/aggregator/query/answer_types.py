"""Answers about one metric, and the overview of all: their only shape, for every interface.

Rows about single values come from analysis: ValueAnswer, Mean, TopValue, Change, Cell.
whose: an answer is about the reporters, or about the population from which they come; then its
errors include sampling.
notice: precedes the answer: in development, that nobody is protected; if devices send dummies, that
numbers of reports are estimates.
Times are ISO 8601, UTC. `date` is an epoch for people, 2026-11-22; for hours 2026-11-22T14:00, for
weeks the first day. `dates` are several, in the form of a query's `epochs`.
None means unknown or not applicable.
"""

from dataclasses import dataclass, field

from hubbub.analysis.answer import Twins, ValueAnswer
from hubbub.analysis.comparisons.association import Association
from hubbub.analysis.comparisons.change import Change
from hubbub.analysis.comparisons.cross_tables import Cell, Slice
from hubbub.analysis.comparisons.order_confidence import TopValue
from hubbub.analysis.percentiles import Percentile, PercentileShift, ShareBelow
from hubbub.analysis.strings.likely_strings import LikelyString
from hubbub.analysis.uncertainty.intervals import POPULATION, REPORTERS, Whose
from hubbub.analysis.value_estimates import Mean
from hubbub.privacy.card import Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """One epoch of a metric, with its number of reports; a closed epoch accepts no more."""

    epoch: int
    date: str
    begins: str
    reports: int
    closed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricLine:
    """A metric and its reports.

    Args:
        kind: values (listed), strings, ranges, mean or vector.
        epsilon: of one report, in nats, proven, rounded up.
        total_values: number of listed values or coordinates.
        candidates: number of candidates in the catalog; None if the metric finds strings.
        waiting, withheld: reports at the shuffler, and deleted there; None if unknown or hidden.
        updated: when the last report was counted.
        epochs: the newest, ascending; `reports` includes all epochs.
        facts: further fields of the catalog.
        unit, lowest, highest: unit and range of numbers.
        until_first_batch: why there is no answer yet, or which reports were withheld.
        parts: parts that can be crossed.
        experiment: name of the metric's experiment; "" for none.
        one_look: why there are no anytime intervals; "" if there are.
        discover: share of devices that feed the stream NAME/tree.
        ways: number of parts that a device reports together.
        figures: funnel, rate, activity or retention; "" for others.
    """

    name: str
    description: str
    owner: str
    expires: str
    mechanism: str
    kind: str
    epsilon: float
    tiers: list[float]
    epoch_length: str
    min_batch: int
    total_values: int | None
    candidates: int | None
    reports: int
    waiting: int | None
    withheld: int | None
    updated: str | None
    epochs: list[Epoch]
    facts: list[Fact]
    unit: str
    lowest: float | None
    highest: float | None
    until_first_batch: str
    notice: str
    parts: list[str] = field(default_factory=list)
    public: list[str] = field(default_factory=list)
    experiment: str = ""
    one_look: str = ""
    discover: float = 0.0
    ways: int = 0
    figures: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shuffled:
    """Central privacy of one report in the smallest batch of an answer.

    Args:
        epsilon: central, in nats.
        reports: number of reports in that batch.
        assumption: what the epsilon relies on.
        rests_on: epsilon and assumption in one short sentence.
    """

    epsilon: float
    delta: float
    reports: int
    assumption: str
    rests_on: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricDetail:
    """A metric, and what one person's reports reveal, in nats.

    Args:
        per_report, per_epoch: loss of one report, and of all in an epoch.
        unchanged: loss of all reports of one unchanged value, with a permanent response.
        lifetime_epsilon: loss at which the device stops.
        max_posterior: largest certainty of an observer after one report, from 50:50.
        shuffled: one report in the smallest batch.
        alert: rule and newest verdict; "" without.
    """

    metric: MetricLine
    per_report: float
    reports_per_epoch: int
    per_epoch: float
    unchanged: float | None
    lifetime_epsilon: float
    max_posterior: float
    sentence: str
    shuffled: Shuffled
    alert: str
    alert_raised: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """Fields that every answer about a metric has.

    Args:
        kind: values, ranges, mean or vector.
        epochs, dates, reports: those that the answer covers.
        final: whether all epochs are closed.
        lists: sources of the strings: "catalog", saved lists, and "given" for those of the request.
        unit: of numbers.
        notice: a warning to show before the answer; "" for none.
        whose: "reporters": intervals cover the randomization noise, not who chose to report.
    """

    metric: str
    kind: str
    confidence: float
    epochs: list[int]
    dates: str
    final: bool
    reports: int
    lists: list[str]
    unit: str
    notice: str = ""
    whose: Whose = POPULATION


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimated(Envelope):
    """Estimates of one metric, summed over epochs.

    Args:
        since, until: begin of the first epoch and end of the last.
        updated: when the last report was counted.
        shuffled: one report in the actual batches.
        honest_p_value: upper bound on the probability of such totals from honest reports alone.
        findings: what is wrong, if `honest_p_value` is below one in a million.
        others: for RAPPOR, number of reports with an unlisted string; None with too many
            candidates.
        fit_p_value: upper bound on the probability of totals so far from a correct fit; near 0,
            list more strings.
        total: number of values; `values` may be a page of them.
        promised: one report in the smallest batch that may leave.
        lowest, highest: range of numbers.
        beginnings: discovered strings that are only beginnings of longer ones.
        likely: further strings that are probably held, if requested.
        edges: edges of the parts of a number's range.
        percentiles: those requested, the metric's, or the usual.
        below: shares below requested numbers.
        anytime: whether the intervals hold at every look.
        reports_stderr: standard error of `reports`; 0 if they are counted exactly.
        figures: funnel, rate, activity or retention, whose values have an order of their own; ""
            for other metrics.
    """

    description: str
    since: str
    until: str
    updated: str | None
    waiting: int | None
    withheld: int | None
    mechanism: str
    epsilon: float
    shuffled: Shuffled | None
    honest_p_value: float
    findings: list[str]
    mean: Mean | None
    others: Mean | None
    fit_p_value: float | None
    twins: list[Twins]
    total: int
    values: list[ValueAnswer]
    promised: Shuffled
    lowest: float | None
    highest: float | None
    notes: list[str]
    beginnings: list[str] = field(default_factory=list)
    likely: list[LikelyString] = field(default_factory=list)
    edges: list[float] = field(default_factory=list)
    percentiles: list[Percentile] = field(default_factory=list)
    below: list[ShareBelow] = field(default_factory=list)
    anytime: bool = False
    whose: Whose = REPORTERS
    reports_stderr: float = 0.0
    figures: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopList(Envelope):
    """The most frequent values.

    Args:
        set_confidence: lower bound on the confidence that these are the top values.
        order_confidence: lower bound on the confidence that their order is right.
        notes: why a share may be below 0 or above 100%; values that may be absent.
    """

    set_confidence: float
    order_confidence: float
    values: list[TopValue]
    notes: list[str]
    whose: Whose = REPORTERS


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared(Envelope):
    """Two ranges of epochs of one metric.

    Args:
        chosen: why these ranges, if the request named none.
        percentiles: shifts of those requested, the metric's, or the usual.
        notes: why a difference may be outside its interval.
    """

    before_epochs: list[int]
    after_epochs: list[int]
    before_dates: str
    after_dates: str
    before_reports: int
    after_reports: int
    total: int
    values: list[Change]
    chosen: str = ""
    percentiles: list[PercentileShift] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossed(Envelope):
    """Two parts of a metric as a table, or as a table for each value of a third part.

    Estimates describe the reporters; shares within rows, marks and association the population.

    Args:
        rows, columns: two of `parts`.
        values: the cells, row by row.
        by: the third part, or "".
        slices: its values; the association then tests all of them together.
    """

    rows: str
    columns: str
    association: Association
    values: list[Cell]
    parts: list[str]
    by: str = ""
    slices: list[Slice] = field(default_factory=list)
