"""What one person can have said in a day, a month, a year: sums over metrics, and caps on them.

A span of days is taken where it touches the most epochs, since all reports of an epoch may be made
in any part of it. Nothing is said past a metric's lifetime limit, which the device's ledger keeps.
"""

from collections.abc import Iterable
from functools import cache
from math import floor
from typing import Final

from hubbub.catalog.metric import Metric
from hubbub.catalog.periods import days_of_period
from hubbub.catalog.policy import SPANS, Caps
from hubbub.epochs import MONTH_SECONDS, begins, holding

_DAY: Final = 86_400


def epochs_within(epoch: str, days: int) -> int:
    """The most epochs of this length that so many days of UTC touch."""
    match epoch:
        case "minute":
            return 24 * 60 * days
        case "hour":
            return 24 * days
        case "day":
            return days
        case "28d":
            return (days + 26) // 28 + 1
        case "month":
            return _months_within(days)
        case _:
            return (days + 5) // 7 + 1


@cache
def _months_within(days: int) -> int:
    """The most months that begin or go on in so many days, over the calendar's 400 years."""
    ends = [begins(month + 1, MONTH_SECONDS) // _DAY - 1 for month in range(4800)]
    # Worst are days that begin on a month's last.
    return max(
        holding((end + days - 1) * _DAY, MONTH_SECONDS) - month + 1
        for month, end in enumerate(ends)
    )


def reported_within(metric: Metric, days: int) -> int:
    """The most epochs of so many days in which one person reports: of periods one each."""
    if not metric.report_on:
        return epochs_within(metric.epoch, days)
    length = len(days_of_period(metric.period, 0))
    return _months_within(days) if metric.period == "month" else (days + length - 2) // length + 1


def exposure(metric: Metric, days: int) -> float:
    """The most that one person's reports of a metric can say in so many days, in nats."""
    return min(_reported(metric, days), metric.limits.lifetime_epsilon)


def crowds_within(metric: Metric, days: int) -> int:
    """The most crowds that one person is in, in so many days: one an epoch, until the limit."""
    epochs = reported_within(metric, days)
    most = metric.limits.lifetime_central_epsilon
    if most is None or metric.central is None:
        return epochs
    return min(epochs, floor(most / min(metric.central.epsilon, metric.report_loss) + 1e-6))


def unchanged_exposure(metric: Metric, days: int) -> float:
    """The same for a person whose value never changes: a permanent response bounds it."""
    return min(exposure(metric, days), metric.lifetime_loss)


def over_caps(metrics: Iterable[Metric], caps: Caps) -> list[tuple[str, str]]:
    """Per cap that the metrics break: its field, and what is wrong with the remedy."""
    problems = []
    for span, days in SPANS.items():
        cap = caps.of(span)
        parts = sorted(((exposure(metric, days), metric.name) for metric in metrics), reverse=True)
        total = sum(part for part, _ in parts)
        if cap is not None and not total <= cap:
            most = ", ".join(f"{name} {part:.4g}" for part, name in parts[:5])
            problems.append(
                (
                    f"epsilon_per_{span}",
                    (
                        f"all metrics together can say {total:.4g} nats about one person in a "
                        f"{span}, above the cap of {cap:g} ({most}); lower epsilon, "
                        "reports_per_epoch or lifetime_epsilon, choose longer epochs, or raise "
                        "the cap"
                    ),
                )
            )
    return problems


def _reported(metric: Metric, days: int) -> float:
    reports = reported_within(metric, days) * metric.limits.reports_per_epoch
    return reports * metric.report_loss
