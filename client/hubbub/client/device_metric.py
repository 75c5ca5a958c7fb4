"""A metric as one device reports it: at this person's tier, in the device's epochs."""

from dataclasses import dataclass

from hubbub.bundles import Notice
from hubbub.catalog import Metric, days_of_period, grace_seconds
from hubbub.client.outcome import Outcome
from hubbub.client.state.secret import DeviceMemo
from hubbub.epochs import begins, holding
from hubbub.mechanisms import Probability


@dataclass(slots=True, kw_only=True)
class AskedMetric:
    """A metric at this person's tier, with everything that stays the same from report to report.

    Args:
        catalog_metric: the metric of the bundle, with all its tiers.
        metric: the stream at this person's tier; None if the person allows less than any tier.
        memo: the device's secret coins for the stream.
        own: the same for the metric at any tier, since a person may change it within a period.
        payload_bytes: length of one report's payload.
        stream_suffix: tier and list of values in the stream's name.
        notice: the operator's notice, if any.
        finder: the prefix tree that some devices answer instead (`discover`), if any.
    """

    catalog_metric: Metric
    metric: Metric | None
    memo: DeviceMemo
    own: DeviceMemo
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
    days: range = range(0)  # the period that `own_day` was drawn for
    own_day: int = -1
    own_rounds: frozenset[int] = frozenset()  # of a model, once drawn
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

    def is_late(self, epoch: int, now: float) -> bool:
        """Returns whether the shuffler accepts no more reports of an epoch."""
        return now >= begins(epoch + 1, self.epoch_seconds) + grace_seconds(
            self.catalog_metric.epoch
        )

    def left_out(self, metric: Metric, epoch: int) -> Outcome | None:
        """Returns why this device does not report in an epoch: a notice, or its own coin.

        The coin depends neither on the value nor on the chance. So the devices of a lower chance
        are among those of a higher one, and still a random sample of all.
        """
        if epoch != self.drawn_for:
            chance = self.notice.sampling(metric, epoch) if self.notice else metric.sampling
            self.stopped = not chance
            self.finds = self.finder is not None and self._looks(metric, epoch)
            if 0 < chance < 1:
                coins = self.memo.coins(b"sampling" + epoch.to_bytes(8, "big"))
                self.takes_part = coins.chance(Probability.at_most(chance))
            else:
                self.takes_part = True
            self.drawn_for = epoch
        if self.stopped:
            return Outcome.STOPPED
        return None if self.takes_part else Outcome.NOT_SAMPLED

    def _looks(self, metric: Metric, epoch: int) -> bool:
        """Returns whether this device helps to find unlisted strings in an epoch, or its period."""
        first = days_of_period(metric.period, epoch).start if metric.report_on else epoch
        # PRIVACY: follows from the secret and the calendar alone.
        coins = self.own.coins(b"discover" + first.to_bytes(8, "big"))
        return coins.chance(Probability.at_most(metric.discover))

    def is_asked_on(self, metric: Metric, epoch: int) -> bool:
        """Returns whether this is the device's own day of the period, or its round of a model."""
        if metric.model:
            if not self.own_rounds:  # PRIVACY: follows from the secret alone.
                self.own_rounds = metric.model.turns(self.own.coins(b"round"))
            number = metric.model.round_in(epoch, metric.epoch)
            if number not in self.own_rounds:
                return False
            self.round = number
            return True
        if metric.report_on and epoch not in self.days:
            # PRIVACY: follows from the secret and the calendar alone.
            self.days = days_of_period(metric.period, epoch)
            coins = self.own.coins(b"period" + self.days.start.to_bytes(8, "big"))
            self.own_day = self.days[coins.below(len(self.days))]
        return not metric.report_on or epoch == self.own_day
