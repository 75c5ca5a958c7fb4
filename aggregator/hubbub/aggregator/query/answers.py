"""Answers: their one shape, for every face. gRPC's messages have the same names and fields.

What is said of a single value is analysis' own: ValueAnswer, Mean, TopValue, Change, Cell.

whose: an answer is about those who reported, or about the population that they are from; then its
errors hold who happened to report too.
notice: what stands before all of it: of a development installation that it protects nobody; of
numbers of reports, where devices send dummies too, that they are estimates, and their errors.
Times are ISO 8601, UTC. `date` is an epoch as people say it, 2026-11-22; of hours 2026-11-22T14:00,
of weeks the first day. `dates` are several, as `epochs` of a question takes them.
None stands for what is not known or does not apply.
"""

from dataclasses import dataclass, field

from hubbub.aggregator.query.trend_series import Series
from hubbub.analysis import (
    FALSE_ALARM,
    POPULATION,
    REPORTERS,
    Association,
    Cell,
    Change,
    LikelyString,
    Mean,
    Slice,
    TopValue,
    Twins,
    ValueAnswer,
    Whose,
)
from hubbub.catalog import Fact


@dataclass(frozen=True, slots=True)
class Epoch:
    """One epoch of a metric, and how many reports it holds. closed: it takes no more."""

    epoch: int
    date: str
    begins: str
    reports: int
    closed: bool


@dataclass(frozen=True, slots=True)
class MetricLine:
    """A metric, and what of it is held.

    kind: values (listed), strings, ranges, mean or vector. total_values: how many are listed, or
    coordinates there are. candidates: of strings, how many the catalog lists to look for; None
    where a metric finds them by itself.
    epsilon: nats a report, as proven, rounded up.
    waiting, withheld: reports still with the shuffler, and those it may never pass on; None where
    it does not tell, as of a hidden number of reports.
    unit, lowest, highest: of numbers, what they are measured in, and the ends of their range.
    parts: the parts that can be crossed, where it has some; ways: how many of them a device tells
    together. public: the public fields by which it
    is told apart.
    until_first_batch: why there is no answer yet, and when there is one; "" where a batch has left.
    one_look: why its intervals cannot hold at every look; "" where they can.
    discover: the share of its devices that look for strings that nobody listed, asked as NAME/tree;
    0 where none do.
    updated: when the last report was counted. epochs: the newest ones, ascending; all are counted
    in `reports`. facts: what the catalog says of it beside that, as people read it.
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
    one_look: str = ""
    discover: float = 0.0
    ways: int = 0


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class MetricDetail:
    """A metric, and what one person's report reveals; epsilons in nats.

    per_report: of one report. per_epoch: of all in an epoch. unchanged: of all ever of one value
    that does not change, where it has a permanent response. lifetime_epsilon: what the device stops
    at.
    max_posterior: who thought it even odds is this sure at most after one report. sentence: all of
    that in words. shuffled: of one report at the smallest batch.
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


@dataclass(frozen=True, slots=True)
class Estimated:
    """Estimates of one metric over the epochs that were added up.

    since, until: when the first of them begins and the last ends. final: all of them are closed.
    updated: when the last report was counted. kind: values, ranges, mean or vector.
    honest_p_value: an upper bound on the chance that honest reports alone lie so far from what they
    can be; 1 is unremarkable. findings: what is off, where that is below one in a million.
    others, fit_p_value: of RAPPOR strings, how many reports hold one that is no candidate; and, at
    most, the chance that totals lie so far from the fit if that is right: near 0 it is not. None
    where candidates are too many to tell. twins: those of them that nothing can tell apart.
    beginnings: of strings that were found, those that are only what longer ones begin with.
    likely: of strings that were found, further ones that may be held, where they were asked for.
    total: how many values there are that were asked for; `values` may be a page of them.
    lists: of strings, the lists that those looked for are from: "catalog", names of saved ones, and
    "given" for the question's own.
    promised: the privacy card's, of the smallest batch that may ever leave; shuffled: of those that
    this answer came from.
    unit, lowest, highest: of numbers, what they are measured in, and the ends of their range.
    notes: what a mean does not tell.
    anytime: intervals hold at every look while the epochs fill, all of them together.
    reports_stderr: the standard error of `reports`, 0 where they are counted: where devices send
    dummies it is an estimate.
    whose: "reporters": intervals hold what their coins made unsure, and not who happened to report.
    """

    metric: str
    description: str
    epochs: list[int]
    dates: str
    since: str
    until: str
    final: bool
    updated: str | None
    reports: int
    waiting: int | None
    withheld: int | None
    mechanism: str
    epsilon: float
    shuffled: Shuffled | None
    kind: str
    confidence: float
    honest_p_value: float
    findings: list[str]
    mean: Mean | None
    others: Mean | None
    fit_p_value: float | None
    twins: list[Twins]
    total: int
    values: list[ValueAnswer]
    lists: list[str]
    promised: Shuffled
    unit: str
    lowest: float | None
    highest: float | None
    notes: list[str]
    beginnings: list[str] = field(default_factory=list)
    likely: list[LikelyString] = field(default_factory=list)
    anytime: bool = False
    notice: str = ""
    whose: Whose = REPORTERS
    reports_stderr: float = 0.0


@dataclass(frozen=True, slots=True)
class TopList:
    """The most frequent values.

    final: all epochs are closed.
    set_confidence: how sure that it is these and no others; order_confidence: that it is these in
    this order; both at least so.
    """

    metric: str
    epochs: list[int]
    dates: str
    final: bool
    reports: int
    confidence: float
    set_confidence: float
    order_confidence: float
    values: list[TopValue]
    lists: list[str]
    notice: str
    whose: Whose = REPORTERS


@dataclass(frozen=True, slots=True)
class Compared:
    """Two ranges of epochs of one metric.

    final: all epochs of both are closed.
    chosen: why these, where a range was not named.
    """

    metric: str
    kind: str
    confidence: float
    before_epochs: list[int]
    after_epochs: list[int]
    before_dates: str
    after_dates: str
    final: bool
    before_reports: int
    after_reports: int
    total: int
    values: list[Change]
    lists: list[str]
    unit: str
    notice: str
    chosen: str = ""
    whose: Whose = POPULATION


@dataclass(frozen=True, slots=True)
class Crossed:
    """Two parts of a metric as a table; or one for each value of a third.

    rows, columns: the parts, of `parts`. values: its cells, row by row. Estimates are of the
    reporters; shares within rows, marks and the association of the population.
    by: the third part, "" of two. slices: its values, in the order of the cells; the association is
    then that within slices, of all together.
    """

    metric: str
    epochs: list[int]
    dates: str
    final: bool
    reports: int
    confidence: float
    rows: str
    columns: str
    association: Association
    values: list[Cell]
    parts: list[str]
    by: str = ""
    slices: list[Slice] = field(default_factory=list)
    notice: str = ""
    whose: Whose = POPULATION


@dataclass(frozen=True, slots=True)
class Trended:
    """A metric epoch by epoch.

    epochs: all that were asked; those below the minimum batch hold reports and have no points.
    final: all of them are closed.
    joined: the metrics that this one goes on from, whose reports are among these; latest first.
    false_alarm: how often, at most, a line whose level takes no step has one among its shifts.
    """

    metric: str
    kind: str
    confidence: float
    min_batch: int
    epochs: list[Epoch]
    final: bool
    series: list[Series]
    lists: list[str]
    unit: str
    joined: list[str]
    notice: str
    whose: Whose = POPULATION
    false_alarm: float = FALSE_ALARM


@dataclass(frozen=True, slots=True)
class ReportCounts:
    """One stream in one epoch: acknowledged + dummies = the sum of all others.

    acknowledged, dummies, pooled, in_flight, withheld: the shuffler's terms, None if it did not
    tell them; then whether they balance is not known either. fillers: reports that were none.
    date: None where the stream is not known. deleted: of those counted, of which no totals are
    held any more.
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


@dataclass(frozen=True, slots=True)
class PipelineStatus:
    """The conservation law: where every report is.

    complete: the shuffler told its terms too; without them the law cannot be checked, and
    `balanced` is None.
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


@dataclass(frozen=True, slots=True)
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
