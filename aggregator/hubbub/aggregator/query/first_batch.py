"""Why there is no answer yet: how many reports wait for the first batch of an epoch, until when."""

from hubbub.aggregator.query.report_counts import Terms
from hubbub.catalog import Metric, epoch_start
from hubbub.catalog.epochs import grace_seconds
from hubbub.conservation import Window, minute


def until_first_batch(metric: Metric, terms: Terms | None, reserve: float | None) -> str:
    """In a sentence without its full stop; "" where nothing waits, or something has left.

    terms: the shuffler's, if it told them. reserve: how many minimum batches stay in an open pool
    at least, if it told that.
    """
    waiting = [
        window
        for window, counts in (terms or {}).items()
        if window.stream == metric.name
        and 0 < counts.get("pooled", 0) == counts.get("acknowledged")
    ]
    if not terms or not waiting:
        return ""
    newest = max(waiting, key=lambda window: window.epoch)
    return _said(metric, newest, terms[newest]["pooled"], reserve)


def _said(metric: Metric, window: Window, pooled: int, reserve: float | None) -> str:
    ends = epoch_start(window.epoch + 1, metric.epoch) + grace_seconds(metric.epoch)
    latest = minute(ends)
    if metric.mix == "epoch":
        return (
            f"{pooled:,} of the {metric.crowd:,} reports of a crowd wait at the shuffler; they "
            f"leave together at {latest}, or not at all"
        )
    reserve_count = round(metric.fewest * (reserve or 0.0)) if metric.mix == "pool" else 0
    stay = f", of which {reserve_count:,} stay behind" if reserve_count else ""
    return (
        f"{pooled:,} of {metric.fewest + reserve_count:,} reports wait at the shuffler until the "
        f"first batch{stay}, or until {latest} at the latest; fewer than {metric.fewest:,} by then "
        "are withheld"
    )
