"""Verdicts of alerts: whether a finished epoch meets the condition of the catalog's alert.

For a change, the values count that stand out at this rate; for a share, mean, percentile or figure
that the catalog names, the end of its one-sided interval. So among epochs that do not meet the
condition, at most a share 1 - confidence raise an alert, for every metric. The share that came back
in a week is judged of the devices whose week it is: those of one first week.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import compress
from math import inf

import numpy as np

from hubbub.aggregator.query.answer_types import Compared, MetricDetail
from hubbub.aggregator.query.derived_answers import compare, figures_of
from hubbub.aggregator.query.engine import QueryEngine
from hubbub.aggregator.query.epoch_range import EpochRange
from hubbub.aggregator.query.estimating import EstimateQuery
from hubbub.aggregator.query.totals import EpochSelection
from hubbub.aggregator.query.trends import MEAN, trend
from hubbub.analysis.answer import OF_NUMBERS
from hubbub.analysis.funnels_retention_and_rates import Figure
from hubbub.analysis.uncertainty.intervals import stand_out
from hubbub.catalog import Metric
from hubbub.catalog.alerts import Alert
from hubbub.catalog.values.event_history_kinds import Rate, Retention
from hubbub.errors import BatchTooSmall, TotalsUnreadable
from hubbub.errors.message_words import several
from hubbub.query_results.answer_table import End, number_text


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertVerdict:
    """The verdict on one epoch.

    Args:
        fired: whether the condition holds, with the alert's confidence.
        sentence: the observation in words.
        values: those that changed, or that the rule names.
    """

    metric: str
    epoch: int
    date: str
    when: str
    confidence: float
    fired: bool
    sentence: str
    values: list[str]


async def judged_epochs(query: QueryEngine, metric: Metric, newest: int = 1) -> EpochSelection:
    """The newest epochs of a metric that can be judged: closed, and with the minimum batch."""
    selection = await query.collected.find(metric.name, EpochRange(epochs="all"))
    reports = selection.by_epoch()
    closed_epochs = [
        epoch
        for epoch in selection.epochs
        if query.collected.is_closed(metric, epoch) and reports[epoch] >= metric.fewest
    ]
    return selection.pick(closed_epochs[-newest:])


async def judge(query: QueryEngine, metric: Metric, epoch: int) -> AlertVerdict | None:
    """The verdict on an epoch; None without an alert, or without an epoch to compare with."""
    alert = metric.alert
    if alert is None:
        return None
    rule = alert.rule()
    this_epoch = EpochRange(epochs=str(epoch))
    if rule.of == "change":
        older = await judged_epochs(query, metric, newest=1 << 30)
        earlier = [older_epoch for older_epoch in older.epochs if older_epoch < epoch]
        if not earlier:
            return None
        before = EpochRange(epochs=str(earlier[-1]))
        compared = await compare(query, metric.name, EstimateQuery(range=before), this_epoch)
        values, sentence = _change_finding(compared, alert.confidence)
    elif rule.of == "figure":
        figure = await _figure_of(query, metric, epoch, alert)
        if figure is None or figure.estimate is None:
            return None
        numbers = figure.estimate, figure.low, inf if figure.high is None else figure.high
        stderr = (figure.stderr or 0.0) if isinstance(metric.value_kind, Rate) else None
        values, sentence = _limit_finding(rule.value, numbers, stderr, alert)
    else:
        # Strings are looked for beside the catalog's list.
        of_string = rule.of == "share" and metric.values is None
        one_sided = EstimateQuery(
            range=this_epoch,
            confidence=_two_sided(alert),
            candidates=(rule.value,) if of_string else (),
            lists=("catalog",) if of_string and metric.candidates else (),
            percentiles=(rule.percentile,) if rule.of == "percentile" else (),
        )
        trended_values = [] if rule.of == "percentile" else [rule.value or MEAN]
        [series] = (await trend(query, metric.name, one_sided, trended_values)).series
        point = series.points[-1]
        stderr = None if rule.of == "share" else point.stderr
        numbers = point.share, point.low, point.high
        values, sentence = _limit_finding(series.value, numbers, stderr, alert)
    date = (await query.collected.find(metric.name, this_epoch)).date(epoch)
    return AlertVerdict(
        metric=metric.name,
        epoch=epoch,
        date=date,
        when=alert.when,
        confidence=alert.confidence,
        fired=bool(values),
        sentence=f"{metric.name}, {date}: {sentence}",
        values=values,
    )


async def newest_verdict(query: QueryEngine, metric: Metric) -> AlertVerdict | None:
    """The verdict on the newest epoch that can be judged; None as judge(), and without one."""
    with suppress(BatchTooSmall, TotalsUnreadable):  # deleted meanwhile, or unreadable
        if metric.alert and (newest := (await judged_epochs(query, metric)).epochs):
            return await judge(query, metric, newest[-1])
    return None


async def with_alert(query: QueryEngine, detail: MetricDetail) -> MetricDetail:
    """The detail with the verdict of the metric's alert, if it has one, on the newest epoch."""
    metric = query.collected.bundle.metric(detail.metric.name)
    if metric.alert is None:
        return detail
    rule = f'"{metric.alert.when[:80]}" with {100 * metric.alert.confidence:g}% confidence'
    if verdict := await newest_verdict(query, metric):
        state = "Raised" if verdict.fired else "Not raised"
        sentence = f"{state}: {verdict.sentence}"
        return replace(detail, alert=f"Alert {rule}. {sentence}.", alert_raised=verdict.fired)
    needs = f"closed, readable epochs of at least {several(metric.fewest, 'report')}"
    which = "the newest, and any that the rule compares it with"
    return replace(detail, alert=f"Alert {rule}. Not judged yet: it needs {needs}: {which}.")


def _change_finding(comparison: Compared, confidence: float) -> tuple[list[str], str]:
    # Without any true change, none with this confidence (Simes 1986).
    p_values = np.array([change.p_value for change in comparison.values])
    marked = stand_out(p_values, 1 - confidence).tolist()
    changed = [*compress(comparison.values, marked)]
    if not changed:
        return [], f"no change since {comparison.before_dates} beyond what chance explains"
    is_of_means = comparison.kind in OF_NUMBERS
    texts = []
    for change in changed[:5]:
        stderr = change.stderr if is_of_means else None
        numbers = (_number(number, stderr) for number in (change.before, change.after))
        texts.append(f"{change.value[:80]} {' to '.join(numbers)}")
    rest_text = f", and {len(changed) - 5} more" if len(changed) > 5 else ""  # noqa: PLR2004 as above
    sentence = f"since {comparison.before_dates} {', '.join(texts)}{rest_text}"
    return [change.value for change in changed], sentence


def _limit_finding(
    name: str, numbers: tuple[float, float, float], stderr: float | None, alert: Alert
) -> tuple[list[str], str]:
    """Of an estimate and its ends; stderr: None for a share."""
    rule, (estimate, low, high) = alert.rule(), numbers
    fired = low > rule.limit if rule.above else high < rule.limit
    if rule.above:
        end = f"at least {_number(low, stderr, 'low')}"
    else:
        end = f"at most {_number(high, stderr, 'high')}"
    sentence = (
        f"{name[:80]} {_number(estimate, stderr)}, {end} with {100 * alert.confidence:g}% "
        f"confidence; the limit is {rule.limit:g}"
    )
    return ([name] if fired else []), sentence


async def _figure_of(query: QueryEngine, metric: Metric, epoch: int, alert: Alert) -> Figure | None:
    """The figure that the alert names; None without an estimate, or without the first week."""
    name = alert.rule().value
    epochs = {epoch}
    if isinstance(metric.value_kind, Retention):
        epochs.add(epoch - 1 - metric.value_kind.figures(metric).index(name))
    selection = (await query.collected.find(metric.name, EpochRange(epochs="all"))).pick(
        sorted(epochs)
    )
    reports = selection.by_epoch()
    if any(reports.get(used, 0) < metric.fewest for used in epochs):
        return None
    figures = await figures_of(query, selection, _two_sided(alert))
    return next(figure for figure in figures if figure.figure == name)


def _two_sided(alert: Alert) -> float:
    """The confidence of an interval of which each end has the alert's."""
    return 1 - 2 * (1 - alert.confidence)


def _number(number: float, stderr: float | None, end: End = "") -> str:
    return f"{number:.2%}" if stderr is None else number_text(number, stderr, end=end)
