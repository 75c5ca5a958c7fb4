"""What a person may see: what left this device, what it could have meant, what is left to spend."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise

from hubbub.catalog import Bundle, Metric, epoch_at, metric_name_of
from hubbub.client.state.contract import PayloadRecord
from hubbub.client.state.device_state import DeviceState
from hubbub.errors import BadPayload

__all__ = ["LedgerView", "MetricView", "PayloadView", "view"]

# Numbers without buckets are told in so many slices of their range.
_SLICES = 8


@dataclass(frozen=True, slots=True)
class MetricView:
    """One metric's budget on this device. Epsilon and spent in nats.

    Attributes:
        epsilon: of one report at this person's tier; 0 if the person allows none.
        reports: in the epoch that runs now, of `reports_per_epoch` that may be.
        spent_in_epoch: by those.
        spent: the most that all reports so far can say, of `lifetime_epsilon` that may be.
    """

    name: str
    description: str
    epsilon: float
    reports: int
    reports_per_epoch: int
    spent_in_epoch: float
    spent: float
    lifetime_epsilon: float


@dataclass(frozen=True, slots=True)
class PayloadView:
    """One payload: when it was made (seconds since 1970), what it was, what became of it.

    Attributes:
        fate: "waiting", "sent", or why it was given up.
    """

    metric: str
    epoch: int
    made: float
    payload: bytes
    fate: str
    stream: Metric | None = field(repr=False)

    def meanings(self, candidates: Sequence[str] = ()) -> list[tuple[str, float]]:
        """Each value with its probability, given this payload and every value as likely before.

        Args:
            candidates: what to weigh where values are strings.

        Returns:
            The likeliest first. Empty if nothing is to be weighed, the metric is no longer asked,
                or the payload is damaged.
        """
        if self.stream is None:
            return []
        try:
            cells = self.stream.randomizer.layout.cells(self.payload)
        except BadPayload:  # what is remembered of it is damaged
            return []
        values = _values(self.stream, candidates)
        chances = {
            label: self.stream.randomizer.likelihood(value, cells)
            for label, value in values.items()
        }
        whole = sum(chances.values(), start=Fraction(0))
        meant = [(label, float(chance / whole)) for label, chance in chances.items()]
        return sorted(meant, key=lambda pair: -pair[1])


@dataclass(frozen=True, slots=True)
class LedgerView:
    """All of it.

    Attributes:
        on: whether this device reports at all.
        metrics: each with its budget.
        payloads: the newest last.
        counts: payloads given up by reason, and what befell the state itself.
    """

    on: bool
    metrics: tuple[MetricView, ...]
    payloads: tuple[PayloadView, ...]
    counts: Mapping[str, int]


def view(
    bundle: Bundle, standing: DeviceState, kept: Sequence[PayloadRecord], now: float
) -> LedgerView:
    """What the state holds, in the bundle's words."""
    metrics = tuple(_metric(bundle, metric, standing, now) for metric in bundle.metrics.values())
    payloads = tuple(
        PayloadView(
            metric_name_of(one.stream),
            one.epoch,
            one.made,
            one.payload,
            one.fate or "waiting",
            bundle.streams.get(one.stream),
        )
        for one in kept
    )
    return LedgerView(standing.on, metrics, payloads, dict(standing.counts))


def _metric(bundle: Bundle, metric: Metric, standing: DeviceState, now: float) -> MetricView:
    account = standing.account(metric)
    stream = metric.stream_within(standing.preference)
    epoch = epoch_at(now, metric.epoch)
    reported = account.reported(epoch)
    limits = metric.limits
    return MetricView(
        name=metric.name,
        description=metric.description,
        epsilon=bundle.streams[stream].report_loss if stream else 0.0,
        reports=limits.reports_per_epoch if reported is None else reported,
        reports_per_epoch=limits.reports_per_epoch,
        spent_in_epoch=account.losses.get(epoch, 0.0),
        spent=account.spent,
        lifetime_epsilon=limits.lifetime_epsilon,
    )


def _values(metric: Metric, candidates: Sequence[str]) -> dict[str, str | int | float]:
    """What to weigh: a name for people, and the mechanism's own value."""
    randomizer = metric.randomizer
    if metric.values is not None:
        return {name: index for index, name in enumerate(metric.values)}
    if randomizer.VALUES == "strings":
        return {string: string for string in candidates}
    edges = randomizer.edges() if hasattr(randomizer, "edges") else _slices(metric)
    return {f"{low:.6g} to {high:.6g}": (low + high) / 2 for low, high in pairwise(edges)}


def _slices(metric: Metric) -> list[float]:
    low, high = metric.parameters["low"], metric.parameters["high"]
    return [low + (high - low) * i / _SLICES for i in range(_SLICES + 1)]
