"""Reports computed from a device's past: events are counted, and reported once per epoch.

report() counts an event in memory; the sender moves the counts into the state and reports from
there. Kinds that count events report once the epoch is over, other kinds at once. The ledger
allows one report and one charge per epoch, and so decides whether an epoch was reported.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from hubbub.catalog import late_from
from hubbub.catalog.breakdown import streams_of
from hubbub.client.device_metric import AskedMetric
from hubbub.client.state.device_state import DeviceState
from hubbub.epochs import begins


def settled_epochs(
    questions: Mapping[str, AskedMetric], device: DeviceState, now: float
) -> set[tuple[str, int]]:
    """Pairs of metric and epoch whose events are of no more use: late, reported or not asked."""
    return {
        (name, epoch)
        for name, epoch, _ in device.events
        if name not in questions
        or now >= late_from(epoch, questions[name].catalog_metric.epoch)
        or device.account(questions[name].catalog_metric).reported(epoch) != 0
    }


def due(
    questions: Mapping[str, AskedMetric], device: DeviceState, now: float
) -> Iterator[tuple[AskedMetric, Any, str | None, float]]:
    """Yield reports that follow from stored events, one per metric and epoch, earliest first.

    Each is the metric, the code, the cell of the events (None for the device's own cell), and the
    first second of the epoch.
    """
    settled_pairs = settled_epochs(questions, device, now)
    epochs: dict[tuple[str, int], dict[str, int]] = {}
    for (name, epoch, event), number in sorted(device.events.items()):
        if (name, epoch) not in settled_pairs:
            epochs.setdefault((name, epoch), {})[event] = number
    for (name, epoch), events in sorted(epochs.items(), key=lambda pair: pair[0][1]):
        question = questions[name]
        metric = question.catalog_metric
        kind: Any = metric.value_kind
        cells = streams_of(name, metric.breakdown)
        permitted = {*(cells if kind.VALUELESS else metric.values or ())}
        permitted_events = {event: n for event, n in events.items() if event in permitted}
        if not permitted_events or (kind.COUNTS and epoch >= question.epoch_of(now)):
            continue
        epochs_reported = device.accounts[name].epochs.items()
        reported = [other for other, reports in epochs_reported if reports and other != epoch]
        code = metric.code(kind.computed(metric, epoch, permitted_events, reported))
        cell = next(iter(permitted_events)) if kind.VALUELESS else None
        yield question, code, cell, begins(epoch, question.epoch_seconds)
