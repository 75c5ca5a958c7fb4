"""What a person may see: what left this device, what it could have meant, what is left to spend."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from hubbub.bundles import Bundle
from hubbub.bundles.notice import Notice
from hubbub.bundles.runs import Runs
from hubbub.catalog import (
    EPOCH_SECONDS,
    SPANS,
    X25519,
    Kem,
    Metric,
    days_of_period,
    epoch_at,
    metric_name_of,
    told_by,
)
from hubbub.catalog.central_cap import spent_of
from hubbub.catalog.meanings import meanings_of
from hubbub.client.cover import FILLER
from hubbub.client.ledger import crowds_since, reported_of
from hubbub.client.notices import kept_notice
from hubbub.client.state.contract import PayloadRecord
from hubbub.client.state.device_state import DeviceState, own_counts_of

_DAY_SECONDS: Final = EPOCH_SECONDS["day"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricView:
    """One metric's budget on this device. Epsilon and spent in nats.

    Attributes:
        epsilon: of one report at this person's tier; 0 if the person allows none.
        reports: in the epoch that runs now, of `reports_per_epoch` that may be; of a metric that
            asks on one day of a period, in the period.
        spent_in_epoch: by those.
        spent: the most that all reports so far can say, of `lifetime_epsilon` that may be, whoever
            looks: shuffler and aggregator together among them.
        central_epsilon, delta: the promise to who sees whole epochs alone, while the shuffler is
            honest; None where there is none.
        central_period: for how many days in a row that is, all epochs together; "" for each epoch,
            "life" of a model.
        kem: what its reports are sealed with, "x25519" or "x-wing".
        central: the most that all reports so far can say to those, of `lifetime_central_epsilon`.
        sampling: the chance that a device takes part in the epoch that runs now; 0 where the
            operator has stopped the metric.
        lowered: whether that is less than the app was made with.
    """

    name: str
    description: str
    epsilon: float
    reports: int
    reports_per_epoch: int
    spent_in_epoch: float
    spent: float
    lifetime_epsilon: float
    central_epsilon: float | None = None
    delta: float | None = None
    central: float = 0.0
    lifetime_central_epsilon: float | None = None
    kem: Kem = X25519
    sampling: float = 1.0
    lowered: bool = False
    central_period: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PayloadView:
    """One payload: when it was made (seconds since 1970), what it was, what became of it.

    Attributes:
        fate: "waiting", "sent", or why it was given up.
        payload: empty of a filler or a dummy, which says nothing.
    """

    metric: str
    epoch: int
    made: float
    payload: bytes
    fate: str
    stream: Metric | None = field(repr=False)

    @property
    def is_filler(self) -> bool:
        """Whether it says nothing of a person: a filler, or a dummy of a crowd."""
        return self.payload == FILLER

    @property
    def public(self) -> dict[str, str]:
        """What it says in the clear of this device, as {"os": "linux"}."""
        field_values = told_by(self.stream.name) if self.stream else {}
        return {field: ", ".join(values) for field, values in field_values.items()}

    def meanings(self, candidates: Sequence[str] = ()) -> list[tuple[str, float]]:
        """Each value with its probability, given this payload and every value as likely before.

        Args:
            candidates: what to weigh where values are strings.

        Returns:
            The likeliest first. Empty if nothing is to be weighed, the metric is no longer asked,
                or the payload is damaged.
        """
        if self.stream is None or self.is_filler:
            return []
        return meanings_of(self.stream, self.payload, candidates)


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerView:
    """All of it.

    Attributes:
        on: whether this device reports at all.
        metrics: each with its budget.
        payloads: the newest last.
        counts: payloads given up by reason, and what befell the state itself.
        crowds_in_year: the most that all crowds of the last 366 days can say to who sees whole
            epochs alone, in nats, of `crowds_cap` that may be; None where the catalog has no cap.
        notice, notice_until: the number of the operator's notice that is kept here, and until when
            it holds, in seconds since 1970; None where there is none.
        runs: who runs the shuffler and the aggregator, as the operator signed it; None where it
            does not say.
        own_counts: what local mode counted, which was never sent: by metric, how often each value
            was reported.
        events: what is counted here of epochs whose report is still to come: by metric, how often
            each event happened.
        tokens: who issues the tokens that reports go with, as the bundle names it; "" for nobody.
    """

    on: bool
    metrics: tuple[MetricView, ...]
    payloads: tuple[PayloadView, ...]
    counts: Mapping[str, int]
    crowds_in_year: float | None = None
    crowds_cap: float | None = None
    notice: int | None = None
    notice_until: int | None = None
    runs: Runs | None = None
    tokens: str = ""
    own_counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    events: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


def view(
    bundle: Bundle, standing: DeviceState, payload_records: Sequence[PayloadRecord], now: float
) -> LedgerView:
    """What the state holds, in the bundle's words."""
    notice = kept_notice(standing.notice, bundle.operator)
    metrics = tuple(_metric(bundle, m, standing, now, notice) for m in bundle.metrics.values())
    payloads = tuple(
        PayloadView(
            metric=metric_name_of(record.stream),
            epoch=record.epoch,
            made=record.made,
            payload=record.payload,
            fate=record.fate or "waiting",
            stream=bundle.streams.get(record.stream),
        )
        for record in payload_records
    )
    cap, spent = bundle.caps.central_epsilon_per_year, None
    if cap is not None:
        costs = crowds_since(standing.accounts.values(), int(now // _DAY_SECONDS) - SPANS["year"])
        spent = spent_of(bundle.caps, costs)
    number, until = (notice.number, notice.until) if notice else (None, None)
    counts, own_counts = own_counts_of(standing.counts)
    issuer = bundle.tokens.terms.issuer if bundle.tokens else ""
    return LedgerView(
        on=standing.on,
        metrics=metrics,
        payloads=payloads,
        counts=counts,
        own_counts=own_counts,
        events=_events(standing),
        crowds_in_year=spent,
        crowds_cap=cap,
        notice=number,
        notice_until=until,
        runs=bundle.runs,
        tokens=issuer,
    )


def _events(standing: DeviceState) -> dict[str, dict[str, int]]:
    """How often each event happened whose report is still to come, by metric, over all epochs."""
    numbers: dict[str, Counter[str]] = {}
    for (metric, _, event), number in sorted(standing.events.items()):
        numbers.setdefault(metric, Counter())[event] += number
    return {metric: dict(counts) for metric, counts in numbers.items()}


def _metric(
    bundle: Bundle, metric: Metric, standing: DeviceState, now: float, notice: Notice | None
) -> MetricView:
    account = standing.account(metric)
    stream = metric.stream_within(standing.preference, standing.max_local)
    epoch = epoch_at(now, metric.epoch)
    reported = reported_of(account, metric, epoch)
    days = days_of_period(metric.period, epoch) if metric.report_on else (epoch,)
    limits, promise = metric.limits, metric.central
    sampling = notice.sampling(metric, epoch) if notice else metric.sampling
    return MetricView(
        name=metric.name,
        description=metric.description,
        epsilon=bundle.streams[stream].report_loss if stream else 0.0,
        reports=limits.reports_per_epoch if reported is None else reported,
        reports_per_epoch=limits.reports_per_epoch,
        spent_in_epoch=sum(account.losses.get(day, 0.0) for day in days),
        spent=account.spent,
        lifetime_epsilon=limits.lifetime_epsilon,
        central_epsilon=promise.epsilon if promise else None,
        delta=promise.delta if promise else None,
        central=account.central,
        lifetime_central_epsilon=limits.lifetime_central_epsilon,
        kem=metric.kem,
        sampling=sampling,
        lowered=sampling < metric.sampling,
        central_period=("life" if metric.model else metric.central_period) if promise else "",
    )
