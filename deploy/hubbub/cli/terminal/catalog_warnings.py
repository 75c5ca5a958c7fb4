"""Warnings about a catalog: metrics and models that end, too few reports, wide rates."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from math import floor, hypot, sqrt
from operator import itemgetter
from statistics import NormalDist
from typing import Any, Final

from hubbub.authoring import Catalog
from hubbub.catalog import EPOCH_SECONDS, Metric, epoch_start
from hubbub.catalog.values.event_history_kinds import Activity, Retention
from hubbub.cli.terminal.answer_tables import expired_sentence
from hubbub.cli.terminal.output import first_second
from hubbub.epochs import epoch_date
from hubbub.errors.message_words import at_most, several

_RATE: Final = 0.2
_DAYS: Final = 365


def obsolete_metrics(catalog: Catalog) -> Iterator[str]:
    """Yields which metrics devices report no more, or in no arm, and which models cannot finish.

    They stay in the catalog for the data that is still held.
    """
    now = datetime.now(UTC)
    for metric in catalog.metrics.values():
        if metric.expires < now.date():
            yield expired_sentence(metric.name, metric.expires)
        elif (experiment := metric.experiment) and experiment.is_over(()):
            live = experiment.live_arms(())
            arms = f"draw again among {', '.join(live)}" if live[1:] else f"get {live[0]}"
            yield (
                f'{metric.name}: the experiment "{experiment.name}" has ended, since an arm has '
                f"weight 0: devices {arms}, and report in no arm"
            )
        elif sentence := _unfinished_warning(metric, now):
            yield f"{metric.name}: {sentence}"


def wide_rates(metrics: Iterable[Metric]) -> Iterator[str]:
    """Yields the error of rates that are answered no better than a guess, and what lowers it."""
    for metric in metrics:
        if not (metric.rate and metric.choice):
            continue
        codes: Any = metric.randomizer
        count, reports = metric.rate.most / 4, metric.choice.reports
        # Both counts have an error; their ratio has that of the denominator times the rate, too.
        of_one = metric.rate.most * sqrt(codes.squared_error) * hypot(1, _RATE) / count
        ends = NormalDist().inv_cdf(0.975) * of_one / sqrt(reports)
        precise_ends = _RATE / 2
        if ends >= precise_ends:
            yield (
                f"{metric.name}: with {reports:,} reports a rate of {_RATE:.0%} at {count:g} "
                f"{metric.rate.per} a device has an interval of +-{ends:.0%}: raise epsilon, lower "
                f"most, or expect {reports * (ends / precise_ends) ** 2:,.0f} reports for "
                f"+-{precise_ends:.0%}"
            )


def too_few_reports(metrics: Iterable[Metric]) -> Iterator[str]:
    """Yields a warning for each metric with too few expected reports for an answer."""
    for metric in metrics:
        if metric.choice is None:
            continue
        reports, of_arm = metric.choice.reports, ""
        if (experiment := metric.experiment) and not experiment.is_over(()):
            arm, weight = min(experiment.arms.items(), key=itemgetter(1))
            reports = reports * weight // sum(experiment.arms.values())
            of_arm = f"of arm {arm} "
        if reports < metric.fewest:
            yield (
                f"{metric.name}: {reports:,} expected reports {of_arm}in an epoch never leave the "
                f"shuffler, which waits for {metric.fewest:,}: lower min_batch, or write a longer "
                "epoch and its number of reports"
            )


def too_short_lives(metrics: Iterable[Metric]) -> Iterator[str]:
    """Yields a warning for each metric that counts devices which its lifetime limit has stopped."""
    for metric in metrics:
        loss, kind = metric.report_loss, metric.value_kind
        reports, weeks = floor(metric.limits.lifetime_epsilon / loss), len(metric.values or ()) - 1
        if isinstance(kind, Activity) and reports < _DAYS:
            yield (
                f"{metric.name}: a device stops after {several(reports, 'day')} of use and is not "
                f"active from then on: raise lifetime_epsilon ({at_most(_DAYS * loss, '.4g')} for "
                "a year), or lower epsilon"
            )
        if isinstance(kind, Retention) and reports < weeks:
            yield (
                f"{metric.name}: a device stops after {several(reports, 'week')} of use, so later "
                f"weeks are too low: raise lifetime_epsilon ({at_most(weeks * loss, '.4g')} for "
                "all weeks), lower epsilon, or ask for fewer weeks"
            )


def _unfinished_warning(metric: Metric, now: datetime) -> str:
    """Why a model will not learn in all its rounds; "" if it will."""
    model = metric.model
    if model is None:
        return ""
    first_epoch = model.first_epoch(metric.epoch, now.timestamp())
    last_epoch = model.epoch_of(model.last_round, metric.epoch, first_epoch)
    if epoch_start(last_epoch + 1, metric.epoch) > first_second(metric.expires + timedelta(days=1)):
        return (
            f"expires on {metric.expires}, before its last round, of "
            f"{_date(metric, last_epoch)}, is over: it never finishes; let it expire later, begin "
            "sooner or have fewer rounds"
        )
    if epoch_start(first_epoch + 1, metric.epoch) <= now.timestamp():
        return (
            f"its first round, of {_date(metric, first_epoch)}, is over: devices that receive it "
            "only now do not help to measure its columns; unless it was shipped by then, set a "
            "later begin"
        )
    return ""


def _date(metric: Metric, epoch: int) -> str:
    return epoch_date(epoch, EPOCH_SECONDS[metric.epoch])
