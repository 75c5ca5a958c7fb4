"""The metrics as one device reports them: at this person's tiers, in the device's epochs."""

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta

from hubbub.bundles import Bundle, Notice, open_notice
from hubbub.catalog import EPOCH_SECONDS, Metric, days_of_period
from hubbub.catalog.values.event_history_kinds import PastKind
from hubbub.catalog.values.list_versions import FINDER
from hubbub.client.outcome import Outcome
from hubbub.client.state.device_state import DeviceState
from hubbub.client.state.secret import DeviceMemo
from hubbub.epochs import begins, holding
from hubbub.errors import NoticeRefused
from hubbub.mechanisms import Probability


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class AskedMetric:
    """A metric at this person's tier, with everything that stays the same from report to report.

    Args:
        catalog_metric: the metric of the bundle, with all its tiers.
        metric: the stream at this person's tier; None if the person allows less than any tier.
        memo: the device's secret coins for the stream.
        base_memo: the same for the metric at any tier: a person may change it within a period.
        stream_suffix: tier and list of values in the stream's name.
        finder: the prefix tree that some devices answer instead (`discover`), if any.
    """

    catalog_metric: Metric
    metric: Metric | None
    memo: DeviceMemo
    base_memo: DeviceMemo
    payload_bytes: int
    stream_suffix: str
    epoch_seconds: int
    expires: float
    notice: Notice | None
    finder: Metric | None = None
    keyed: int = -1  # the epoch last found to have a key
    drawn_for: int = -1  # the epoch that `takes_part` was drawn for
    takes_part: bool = True
    finds: bool = False
    stopped: bool = False
    days: range = range(0)  # the period that `day` was drawn for
    day: int = -1
    rounds: frozenset[int] = frozenset()  # of a model, once drawn
    round: int = -1  # of a model, that it was last asked in
    epoch: int = -1  # the running epoch, from `begins` to `ends`
    begins: float = 0.0
    ends: float = 0.0

    def epoch_of(self, now: float) -> int:
        """Returns the epoch that contains a moment, in seconds since 1970."""
        if not self.begins <= now < self.ends:
            self.epoch = holding(now, self.epoch_seconds)
            self.begins = begins(self.epoch, self.epoch_seconds)
            self.ends = begins(self.epoch + 1, self.epoch_seconds)
        return self.epoch

    def skip_outcome(self, metric: Metric, epoch: int) -> Outcome | None:
        """Returns why this device does not report in an epoch: a notice, or its own coin.

        The coin depends neither on the value nor on the chance. So the devices of a lower chance
        are among those of a higher one, and still a random sample of all.
        """
        if epoch != self.drawn_for:
            chance = self.notice.sampling(metric, epoch) if self.notice else metric.sampling
            self.stopped = not chance
            self.finds = self.finder is not None and self._finds_strings(metric, epoch)
            if 0 < chance < 1:
                coins = self.memo.coins(b"sampling" + epoch.to_bytes(8, "big"))
                self.takes_part = coins.chance(Probability.at_most(chance))
            else:
                self.takes_part = True
            self.drawn_for = epoch
        if self.stopped:
            return Outcome.STOPPED
        return None if self.takes_part else Outcome.NOT_SAMPLED

    def _finds_strings(self, metric: Metric, epoch: int) -> bool:
        """Returns whether this device helps to find unlisted strings in an epoch, or its period."""
        first = days_of_period(metric.period, epoch).start if metric.report_on else epoch
        # PRIVACY: follows from the secret and the calendar alone.
        coins = self.base_memo.coins(b"discover" + first.to_bytes(8, "big"))
        return coins.chance(Probability.at_most(metric.discover))

    def is_asked_on(self, metric: Metric, epoch: int) -> bool:
        """Returns whether this is the device's own day of the period, or its round of a model."""
        if metric.model:
            if not self.rounds:  # PRIVACY: follows from the secret alone.
                self.rounds = metric.model.turns(self.base_memo.coins(b"round"))
            number = metric.model.round_in(epoch, metric.epoch)
            if number not in self.rounds:
                return False
            self.round = number
            return True
        if metric.report_on and epoch not in self.days:
            # PRIVACY: follows from the secret and the calendar alone.
            self.days = days_of_period(metric.period, epoch)
            coins = self.base_memo.coins(b"period" + self.days.start.to_bytes(8, "big"))
            self.day = self.days[coins.below(len(self.days))]
        return not metric.report_on or epoch == self.day


class Questions:
    """The bundle's metrics as this device is asked them, by its secret, choices and notice.

    Attributes:
        now: metrics that report() reports, by name.
        past: metrics that are reported from events.
        arms: this device's arm of each experiment.
    """

    def __init__(self, bundle: Bundle, max_epsilon: float) -> None:
        self._bundle, self._max_epsilon = bundle, max_epsilon
        self._memos: dict[str, DeviceMemo] = {}
        self._grounds: tuple[object, ...] | None = None
        self.now: dict[str, AskedMetric] = {}
        self.past: dict[str, AskedMetric] = {}
        self.notice: Notice | None = None
        self.arms: dict[str, str] = {}

    def follow(self, device: DeviceState) -> None:
        """Asks everything anew if the state has another secret, choice or notice."""
        consent = device.consent
        grounds = (device.secret, consent.preference, consent.local, device.notice)
        if grounds == self._grounds:
            return
        if self._grounds is None or device.secret != self._grounds[0]:
            self._memos = {}
            self.arms = {
                # PRIVACY: an arm depends on the secret alone; reports use other coins.
                name: experiment.draw_arm(
                    DeviceMemo(device.secret, f"experiment/{name}").coins(experiment.purpose)
                )
                for name, experiment in self._bundle.experiments.items()
            }
        self.notice = stored_notice(device.notice, self._bundle.operator)
        now: dict[str, AskedMetric] = {}
        past_metrics: dict[str, AskedMetric] = {}
        for name, metric in self._bundle.metrics.items():
            group = past_metrics if isinstance(metric.value_kind, PastKind) else now
            group[name] = self._question(metric, device)
        self.now, self.past, self._grounds = now, past_metrics, grounds

    def _question(self, metric: Metric, device: DeviceState) -> AskedMetric:
        stream = metric.stream_within(
            min(self._max_epsilon, device.consent.preference),
            min(self._max_epsilon, device.consent.local),
        )
        chosen = self._bundle.streams[stream] if stream else None
        expiry = datetime.combine(metric.expires, time(), UTC) + timedelta(days=1)
        memo, base_memo = (
            self._memos.setdefault(name, DeviceMemo(device.secret, name))
            for name in (chosen.name if chosen else metric.name, metric.base_name)
        )
        return AskedMetric(
            catalog_metric=metric,
            metric=chosen,
            memo=memo,
            base_memo=base_memo,
            payload_bytes=chosen.randomizer.layout.payload_bytes if chosen else 0,
            stream_suffix=chosen.name.removeprefix(chosen.base_name) if chosen else "",
            epoch_seconds=EPOCH_SECONDS[metric.epoch],
            expires=expiry.timestamp(),
            notice=self.notice,
            finder=self._bundle.streams.get(f"{metric.base_name}/{FINDER}"),
        )


def stored_notice(signed: bytes, operator: bytes) -> Notice | None:
    """Returns a state's notice; None without one, or if the bundle's operator did not sign it."""
    try:
        return open_notice(signed, operator=operator) if signed else None
    except NoticeRefused:
        return None
