"""Answers: their one shape, for every face. gRPC's messages have the same names and fields.

What is said of a single value is analysis' own: ValueAnswer, Mean, TopValue, Change, Cell.

whose: an answer is about those who reported, or about the population that they are from; then its
errors cover the choice of who reported, too.
notice: what stands before all of it: of a development installation that it protects nobody; of
numbers of reports, where devices send dummies too, that they are estimates, and their errors.
Times are ISO 8601, UTC. `date` is an epoch as people say it, 2026-11-22; of hours 2026-11-22T14:00,
of weeks the first day. `dates` are several, as `epochs` of a question takes them.
None stands for what is not known or does not apply.
"""

from dataclasses import dataclass, field

from hubbub.analysis import (
    FALSE_ALARM,
    POPULATION,
    REPORTERS,
    Association,
    Cell,
    Change,
    LikelyString,
    Mean,
    Percentile,
    PercentileShift,
    ShareBelow,
    Slice,
    TopValue,
    Twins,
    ValueAnswer,
    Whose,
)
from hubbub.analysis.percentiles import Reaches
from hubbub.privacy.metric_facts import Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One value in one epoch: its share, or a mean, with its interval.

    reports: how many were asked for it.
    line, line_low, line_high: the likely truth by all days together, with its band; None where
    there are too few, or all err alike. The band's confidence is of all days on average.
    reaches: as in Percentile.
    """

    epoch: int
    date: str
    share: float
    stderr: float
    low: float
    high: float
    reports: int
    line: float | None = None
    line_low: float | None = None
    line_high: float | None = None
    reaches: Reaches = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """A step of a line's level from one epoch to the next. date: of the first epoch after it.

    within: the epochs that this is among, at the trend's confidence. difference: how far up the
    level went, a share or in the metric's own unit, with its interval.
    """

    date: str
    within: str
    difference: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One value over the epochs that hold the minimum batch.

    not_asked: epochs in which a metric that this one goes on from asked, and not for this value; ""
    where there is none.
    shifts: the steps of its line. weekdays: their effects on it from Monday on, adding up to 0;
    none where the data do not show any.
    """

    value: str
    points: list[Point]
    not_asked: str = ""
    shifts: list[Shift] = field(default_factory=list)
    weekdays: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """One epoch of a metric, and how many reports it holds. closed: it takes no more."""

    epoch: int
    date: str
    begins: str
    reports: int
    closed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricLine:
    """A metric and its reports.

    kind: values (listed), strings, ranges, mean or vector.
    total_values: number of listed values or coordinates.
    candidates: number of the catalog's strings to look for; None if the metric finds strings.
    epsilon: nats per report, proven, rounded up.
    waiting, withheld: reports at the shuffler, and deleted there; None if unknown or hidden.
    unit, lowest, highest: of numbers, the unit and the ends of the range.
    parts: parts that can be crossed. ways: how many of them a device reports together.
    public: fields of the breakdown. experiment: its name; "" without.
    until_first_batch: why there is no answer yet; "" after the first batch.
    one_look: why there are no anytime intervals; "" if there are.
    discover: share of devices that feed the stream NAME/tree.
    updated: when the last report was counted.
    epochs: the newest, ascending; all are included in `reports`.
    facts: further fields of the catalog.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Shuffled:
    """(epsilon, delta) of one report in the smallest shuffled batch that an answer came from.

    reports: how many that batch had. assumption: what it rests on. rests_on: of what it is and what
    it rests on, in one short sentence.
    """

    epsilon: float
    delta: float
    reports: int
    assumption: str
    rests_on: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricDetail:
    """A metric, and what one person's reports reveal, in nats.

    per_report, per_epoch: of one report, and of all in an epoch.
    unchanged: of all reports of one unchanged value, with a permanent response.
    lifetime_epsilon: where the device stops.
    max_posterior: how sure an observer who starts from 50:50 is at most after one report.
    sentence: all of this in words.
    shuffled: of one report in the smallest batch.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """What every answer about a metric has, whatever the question was.

    kind: values, ranges, mean or vector. unit: of numbers.
    lists: sources of the strings: "catalog", saved lists, and "given" for those of the request.
    epochs, dates, reports: all that the answer comes from. final: all epochs are closed.
    notice: a warning that belongs before the answer; "" for none.
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

    since, until: begin of the first epoch and end of the last.
    updated: when the last report was counted.
    honest_p_value: upper bound on the probability of such totals from honest reports alone.
    findings: what is wrong, if that is below one in a million.
    others: of RAPPOR strings, number of reports with an unlisted string; None if too many are
    listed.
    fit_p_value: upper bound on the probability of totals so far from a correct fit; near 0, list
        more strings.
    twins: strings with equal bits. beginnings: found strings that are only beginnings of longer
    ones.
    likely: further strings that are probably held, if requested.
    total: number of values; `values` may be a page of them.
    promised: one report in the smallest batch that may leave. shuffled: in the actual batches.
    lowest, highest: of numbers, the ends of the range.
    notes: limits of a mean. anytime: the intervals hold at every look.
    edges, percentiles, below: of numbers in parts, the edges of these; the percentiles requested,
    or the usual ones; the shares below numbers that were requested.
    reports_stderr: standard error of `reports`; 0 if they are counted exactly.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TopList(Envelope):
    """The most frequent values.

    set_confidence: lower bound on the confidence that these are the top values.
    order_confidence: the same, in this order.
    """

    set_confidence: float
    order_confidence: float
    values: list[TopValue]
    whose: Whose = REPORTERS


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared(Envelope):
    """Two ranges of epochs of one metric.

    chosen: why these ranges, if the request named none.
    percentiles: of numbers in parts, how far each of those requested, or of the usual ones, moved.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossed(Envelope):
    """Two parts of a metric as a table, or as a table for each value of a third part.

    rows, columns: the parts, from `parts`. values: the cells, row by row.
    Estimates describe the reporters; shares within rows, marks and association the population.
    by: the third part, or "". slices: its values; the association then tests all of them together.
    """

    rows: str
    columns: str
    association: Association
    values: list[Cell]
    parts: list[str]
    by: str = ""
    slices: list[Slice] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trended(Envelope):
    """A metric, epoch by epoch.

    epochs: all requested ones; those below the minimum batch have no points.
    joined: former metrics whose reports are included, latest first.
    false_alarm: most probability of a shift in a line without a step.
    """

    min_batch: int
    epochs: list[Epoch]  # type: ignore[assignment]  # each with its number of reports
    series: list[Series]
    joined: list[str]
    false_alarm: float = FALSE_ALARM


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportCounts:
    """Terms of the conservation law for one stream in one epoch.

    acknowledged + dummies equals the sum of the others.
    acknowledged, dummies, pooled, in_flight, withheld: the shuffler's terms; None if unknown.
    fillers: reports without an answer. date: None for an unknown stream.
    deleted: counted reports whose totals were deleted.
    """

    stream: str
    epoch: int
    date: str | None
    acknowledged: int | None
    dummies: int | None
    pooled: int | None
    in_flight: int | None
    counted: int
    duplicate: int
    rejected: int
    fillers: int
    withheld: int | None
    balanced: bool | None
    deleted: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineStatus:
    """The conservation law: where every report is.

    complete: the shuffler's terms are known; otherwise `balanced` is None.
    """

    complete: bool
    balanced: bool | None
    total: ReportCounts
    windows: list[ReportCounts]
    notice: str = ""


@dataclass(frozen=True, slots=True)
class Meaning:
    """A value, and how likely it is, of one report and every value as likely before."""

    value: str
    probability: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrived:
    """One report of a development installation, as a device's ledger has it.

    number: from 1, as they came. at: when it was counted. epsilon: of it, in nats, as proven.
    payload: in hex. meanings: the likeliest; others: how many more values it could have meant.
    """

    number: int
    at: str
    stream: str
    date: str
    epsilon: float
    payload: str
    meanings: list[Meaning]
    others: int


@dataclass(frozen=True, slots=True)
class Watched:
    """Reports as they come; of production none, whose counts alone are told, in the law."""

    arrivals: list[Arrived]
    notice: str
