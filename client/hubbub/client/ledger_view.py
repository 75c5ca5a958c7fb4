"""What a person may see: the sent payloads, their possible meanings, and the remaining budget."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Final

from hubbub.bundles import Bundle
from hubbub.bundles.bundle import Runs
from hubbub.bundles.reduction_notice import Notice
from hubbub.catalog import EPOCH_SECONDS, SPANS, Metric, conditions_in, days_of_period, epoch_at
from hubbub.catalog.crowds.gaussian_privacy import spent_of
from hubbub.catalog.payload_meanings import meanings_of
from hubbub.client.device_metric import stored_notice
from hubbub.client.epochs_to_cover import FILLER
from hubbub.client.ledger import crowds_since, reported_of
from hubbub.client.state.contract import PayloadRecord
from hubbub.client.state.device_state import DeviceState, own_counts_of
from hubbub.fields.frozen import frozen
from hubbub.fields.rules import metric_name_of
from hubbub.sealing.hpke import X25519, Kem

_DAY_SECONDS: Final = EPOCH_SECONDS["day"]


@frozen(kw_only=True)
class MetricView:
    """One metric's budget on this device. All epsilons and sums in nats.

    Attributes:
        epsilon: of one report at this person's tier; 0 if the person allows none.
        reports: number in the running epoch, at most `reports_per_epoch`; in the running period for
            a metric with a period.
        spent_in_epoch: privacy loss of those reports.
        spent: upper bound on the privacy loss of all reports so far, at most `lifetime_epsilon`,
            for any observer, even if shuffler and aggregator cooperate.
        central_epsilon, delta: promise for an observer who sees only whole epochs, while the
            shuffler is honest; None without a promise.
        central_period: days in a row that the promise covers together; "" for each epoch alone,
            "life" for a model.
        kem: how reports are encrypted, "x25519" or "x-wing".
        central: upper bound on the loss of all reports so far for that observer, at most
            `lifetime_central_epsilon`.
        sampling: probability that a device takes part in the running epoch; 0 if the operator has
            stopped the metric.
        lowered: whether a notice has lowered it below the bundle's.
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


@frozen(kw_only=True)
class PayloadView:
    """One payload: its time (seconds since 1970), its content, its fate.

    Attributes:
        fate: "waiting", "sent", or the reason why it was discarded.
        payload: empty for a filler or a dummy, which contain no answer.
    """

    metric: str
    epoch: int
    made: float
    payload: bytes
    fate: str
    stream: Metric | None = field(repr=False)

    @property
    def is_filler(self) -> bool:
        """Returns whether it contains no answer: a filler, or a dummy of a crowd."""
        return self.payload == FILLER

    @property
    def public(self) -> dict[str, str]:
        """Returns its public fields of this device, as {"os": "linux"}."""
        field_values = conditions_in(self.stream.name) if self.stream else {}
        return {field: ", ".join(values) for field, values in field_values.items()}

    def meanings(self, candidates: Sequence[str] = ()) -> list[tuple[str, float]]:
        """Returns each value with its probability given this payload, from a uniform prior.

        The likeliest is first; for metrics over strings `candidates` are the values to compare.
        Empty without values, for a metric that is no longer asked, or for a damaged payload.
        """
        if self.stream is None or self.is_filler:
            return []
        return meanings_of(self.stream, self.payload, candidates)


@frozen(kw_only=True)
class LedgerView:
    """Everything that this device stores.

    Attributes:
        on: whether this device reports at all.
        metrics: the budget of each metric.
        payloads: the newest last.
        counts: discarded payloads by reason, and events of the state itself.
        crowds_in_year: upper bound on the loss of all crowds of the last 366 days for an observer
            of whole epochs, in nats, at most `crowds_cap`; None if the catalog has no cap.
        notice, notice_until: number and end, in seconds since 1970, of the stored notice of the
            operator; None without a notice.
        runs: the parties that run shuffler and aggregator, as the operator signed them; None if
            unknown.
        own_counts: counts of local mode, never sent: by metric, number of reports of each value.
        events: counts of epochs that are reported later: by metric, number of each event.
        tokens: name of the issuer of tokens in the bundle; "" for none.
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
    bundle: Bundle, device: DeviceState, payload_records: Sequence[PayloadRecord], now: float
) -> LedgerView:
    """Returns the content of a state, with the bundle's names."""
    notice = stored_notice(device.notice, bundle.operator)
    metrics = tuple(_metric(bundle, m, device, now, notice) for m in bundle.metrics.values())
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
    cap, year_epsilon = bundle.caps.central_epsilon_per_year, None
    if cap is not None:
        costs = crowds_since(device.accounts.values(), int(now // _DAY_SECONDS) - SPANS["year"])
        year_epsilon = spent_of(bundle.caps, costs)
    number, until = (notice.number, notice.until) if notice else (None, None)
    counts, own_counts = own_counts_of(device.counts)
    events: dict[str, Counter[str]] = {}
    for (metric, _, event), count in sorted(device.events.items()):
        events.setdefault(metric, Counter())[event] += count
    issuer = bundle.tokens.terms.issuer if bundle.tokens else ""
    return LedgerView(
        on=device.is_on,
        metrics=metrics,
        payloads=payloads,
        counts=counts,
        own_counts=own_counts,
        events={metric: dict(event_counts) for metric, event_counts in events.items()},
        crowds_in_year=year_epsilon,
        crowds_cap=cap,
        notice=number,
        notice_until=until,
        runs=bundle.runs,
        tokens=issuer,
    )


def _metric(
    bundle: Bundle, metric: Metric, device: DeviceState, now: float, notice: Notice | None
) -> MetricView:
    account = device.account(metric)
    stream = metric.stream_within(device.consent.preference, device.consent.local)
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
        central_period=("life" if metric.model else promise.period) if promise else "",
    )
