"""What of a catalog no device reports in time, said after it is checked or built."""

from datetime import UTC, datetime, timedelta

from hubbub.authoring import Catalog
from hubbub.catalog import EPOCH_SECONDS, Metric, epoch_start
from hubbub.cli.terminal.days import first_second
from hubbub.cli.terminal.output import explain
from hubbub.conservation import epoch_date


def say_expired(catalog: Catalog) -> None:
    """Name the metrics that no device reports any more, and models that cannot finish.

    They stay for what is held of them.
    """
    now = datetime.now(UTC)
    for metric in catalog.metrics.values():
        if metric.expires < now.date():
            explain(f"{metric.name}: expired on {metric.expires}, so devices do not report it")
        elif sentence := _unfinished(metric, now):
            explain(f"{metric.name}: {sentence}")


def _unfinished(metric: Metric, now: datetime) -> str:
    """Why a model does not learn in all of its rounds, or nothing."""
    model = metric.model
    if model is None:
        return ""
    first = model.first_epoch(metric.epoch, now.timestamp())
    last = model.epoch_of(model.last, metric.epoch, first)
    if epoch_start(last + 1, metric.epoch) > first_second(metric.expires + timedelta(days=1)):
        return (
            f"expires on {metric.expires}, before its last round, of "
            f"{_date(metric, last)}, is over: it never finishes; let it expire later, begin sooner "
            "or have fewer rounds"
        )
    if epoch_start(first + 1, metric.epoch) <= now.timestamp():
        return (
            f"its first round, of {_date(metric, first)}, is over: devices that learn of it only "
            "now tell nothing of where its columns lie; unless it was out by then, let it begin "
            "on a day to come"
        )
    return ""


def _date(metric: Metric, epoch: int) -> str:
    return epoch_date(epoch, EPOCH_SECONDS[metric.epoch])
