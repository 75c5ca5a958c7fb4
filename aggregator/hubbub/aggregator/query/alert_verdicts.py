"""Verdicts of alerts: whether a finished epoch meets the condition of the catalog's alert.

For a change, the smallest p-value counts, times the number of values; for a share, mean or
percentile that the catalog names, the end of its one-sided interval. So among epochs that do not
meet the condition, at most a share 1 - confidence raise an alert, for every metric.
"""

from dataclasses import dataclass

from hubbub.aggregator.query.answer_types import Compared
from hubbub.aggregator.query.engine import QueryEngine
from hubbub.aggregator.query.epoch_range import EpochRange
from hubbub.aggregator.query.estimating import EstimateQuery
from hubbub.aggregator.query.questions import compare
from hubbub.aggregator.query.totals import EpochSelection
from hubbub.aggregator.query.trends import Point, Trended, trend
from hubbub.analysis.answer import OF_NUMBERS
from hubbub.analysis.comparisons.change import Change
from hubbub.catalog import Metric
from hubbub.catalog.alerts import Alert, Rule
from hubbub.query_results.unit_text import End, measured


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
    over = [
        epoch
        for epoch in selection.epochs
        if query.collected.is_closed(metric, epoch) and reports[epoch] >= metric.fewest
    ]
    return selection.only(over[-newest:])


async def judge(query: QueryEngine, metric: Metric, epoch: int) -> AlertVerdict | None:
    """The verdict on an epoch; None without an alert, or without an epoch to compare with."""
    alert = metric.alert
    if alert is None:
        return None
    rule = alert.rule()
    here = EpochRange(epochs=str(epoch))
    if rule.of == "change":
        older = await judged_epochs(query, metric, newest=1 << 30)
        earlier = [older_epoch for older_epoch in older.epochs if older_epoch < epoch]
        if not earlier:
            return None
        before = EpochRange(epochs=str(earlier[-1]))
        compared = await compare(query, metric.name, EstimateQuery(range=before), here)
        values, sentence = _of_change(compared, alert.confidence)
    else:
        # Strings are looked for beside the catalog's list.
        of_string = rule.of == "share" and metric.values is None
        one_sided = EstimateQuery(
            range=here,
            confidence=1 - 2 * (1 - alert.confidence),
            candidates=(rule.value,) if of_string else (),
            lists=("catalog",) if of_string and metric.candidates else (),
            percentiles=(rule.percentile,) if rule.of == "percentile" else (),
        )
        names = [rule.value] if rule.of == "share" else []
        trended = await trend(query, metric.name, one_sided, names)
        values, sentence = _of_limit(trended, rule, alert)
    date = (await query.collected.find(metric.name, here)).date(epoch)
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


def _of_change(comparison: Compared, confidence: float) -> tuple[list[str], str]:
    # Without any true change, none with this confidence: by Bonferroni, since the p-values of one
    # answer depend on each other in unknown ways.
    changes = comparison.values
    changed = [change for change in changes if change.p_value * len(changes) <= 1 - confidence]
    if not changed:
        return [], f"no change since {comparison.before_dates} beyond what chance explains"
    of_mean = comparison.kind in OF_NUMBERS
    texts = [
        f"{change.value[:80]} {_figure(change.before, change, of_mean)} to "
        f"{_figure(change.after, change, of_mean)}"
        for change in changed[:5]
    ]
    rest_text = f", and {len(changed) - 5} more" if len(changed) > 5 else ""  # noqa: PLR2004 as above
    sentence = f"since {comparison.before_dates} {', '.join(texts)}{rest_text}"
    return [change.value for change in changed], sentence


def _of_limit(trend: Trended, rule: Rule, alert: Alert) -> tuple[list[str], str]:
    [series] = trend.series
    point = series.points[-1]
    of_mean = rule.of != "share"
    fired = point.low > rule.limit if rule.above else point.high < rule.limit
    if rule.above:
        end = f"at least {_figure(point.low, point, of_mean, 'low')}"
    else:
        end = f"at most {_figure(point.high, point, of_mean, 'high')}"
    sentence = (
        f"{series.value[:80]} {_figure(point.share, point, of_mean)}, {end} with "
        f"{alert.confidence:.4%} confidence; the limit is {rule.limit:g}"
    )
    return ([series.value] if fired else []), sentence


def _figure(number: float, row: Point | Change, of_mean: bool, end: End = "") -> str:  # noqa: FBT001 what kind it is of
    return measured(number, row.stderr, end=end) if of_mean else f"{number:.2%}"
