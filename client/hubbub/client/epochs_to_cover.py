"""Cover: which epochs still need a default or filler, and which reports wait for their epoch's end.

Reports of a metric with a default leave after their epoch is over, whatever the value. So neither
the existence of a report nor its time reveals whether the app reported a value. An epoch in which
the device ran is in the ledger with no reports. If the catalog sets `cover`, every stream without a
report of such an epoch gets a filler.
"""

from collections.abc import Sequence
from typing import Final

from hubbub.bundles import Bundle
from hubbub.catalog import Metric, epoch_at, epoch_start
from hubbub.client.outcome import Outcome

WaitingEpochs = Sequence[tuple[str, int, int]]
"""Streams, each with the first and last epoch whose reports wait."""

NOTHING: Final[WaitingEpochs] = ()
LAST_EPOCH: Final = (1 << 32) - 1
"""The largest epoch: epochs are 32 bits on the wire."""

FILLER: Final = b""
"""The stored payload of a filler: empty. A sealed filler is as long as a sealed report."""

# Bundle and notices reveal the other reasons.
OF_THE_DEVICE: Final = frozenset(
    {
        Outcome.ALREADY_REPORTED,
        Outcome.DECLINED,
        Outcome.NOT_ITS_DAY,
        Outcome.NOT_SAMPLED,
        Outcome.OVER_BUDGET,
    }
)
"""Reasons of the device itself: a filler replaces a report that is refused for one of them."""


def fills(bundle: Bundle) -> bool:
    """Whether devices send fillers; never in development, where no device needs to hide."""
    return bundle.cover and not bundle.development


def other_tiers(bundle: Bundle, stream: str) -> list[Metric]:
    """The metric's other tiers, which get fillers when a report or filler goes to `stream`."""
    if not fills(bundle):
        return []
    tiers = bundle.metrics[bundle.streams[stream].base_name].own_streams
    # The stream may belong to an older list of values, whose other tiers are not known here.
    return [bundle.streams[name] for name in tiers if name != stream] if stream in tiers else []


def waiting_epochs(bundle: Bundle, now: float) -> list[tuple[str, int, int]]:
    """Streams and epochs whose reports wait; none in development, to show results at once."""
    if bundle.development:
        return []
    return [
        (name, epoch_at(now, stream.epoch), LAST_EPOCH)
        for name, stream in bundle.streams.items()
        if _leaves_later(stream)
    ]


def seconds_to_next(bundle: Bundle, now: float) -> float | None:
    """Seconds until an epoch ends whose reports wait for its end; None if no metric has any."""
    lengths = {metric.epoch for metric in bundle.metrics.values() if _leaves_later(metric)}
    ends = [epoch_start(epoch_at(now, length) + 1, length) for length in lengths]
    return max(0.0, min(ends) - now) if ends else None


def _leaves_later(metric: Metric) -> bool:
    """Whether reports of this metric leave only after their epoch is over."""
    return metric.default is not None or metric.value_kind.COUNTS
