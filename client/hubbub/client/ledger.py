"""The ledger: the record of all reports of this device, checked before any coin is drawn.

Reports of one unchanged value under a permanent response cost together no more than that response
(RAPPOR, theorem 1); another value costs again.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import inf
from typing import Any, Final, Self

from hubbub.catalog import EPOCH_SECONDS, SPANS, Metric, days_at_most, days_of_period
from hubbub.catalog.crowds.gaussian_privacy import crowd_cost, room_of
from hubbub.client.outcome import Outcome
from hubbub.epochs import begins

FOREIGN: Final = (
    ArithmeticError,
    AttributeError,
    KeyError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What reading a document that is none of ours may raise."""

# Number of reported epochs that are stored one by one, so that a device whose clock jumped ahead
# and back can still report today. All older epochs count as reported.
_EPOCHS: Final = 64
# Number of days for which losses are stored one by one, more than the longest span of a cap. Older
# days are summed up.
_DAYS: Final = 400
_DAY_SECONDS: Final = EPOCH_SECONDS["day"]
# Version 0.1 stored epochs without their length. Their numbers show it: those of hours are above
# 300,000 since 2005, those of weeks stay below 10,000 until the year 2161.
_HOURS_FROM: Final = 300_000
_WEEKS_BELOW: Final = 10_000
_MAX_WHOLE: Final = 1 << 32  # epochs have 32 bits on the wire, and no epoch has as many reports
_MAX_NATS: Final = 1e15
_LONGEST_NAME: Final = 255
_ROUNDING: Final = 1e-9  # error of sums of costs, in nats


@dataclass(slots=True, kw_only=True)
class Account:
    """What a device spent on one metric, over all its tiers: counts and tags, never a value.

    Args:
        spent: upper bound on the privacy loss of all reports so far, in nats, for any observer.
        floor: epochs up to this number count as reported.
        epochs: reports per epoch above the floor; 0 for an epoch with a `default` still to send.
        responses: reports per permanent response, by a name that only this device can compute.
        losses: privacy loss per epoch, in nats; an unchanged permanent response costs in the epoch
            in which it was drawn.
        days: privacy loss by the last day of the epoch, for the caps over all metrics.
        central: upper bound on the loss for an observer who sees only whole shuffled epochs: the
            sum of the central promises, and of the local loss of reports without one.
        crowds: like `days`, of crowds, as mu squared (catalog/crowds/gaussian_privacy.py), if the
            catalog caps them.
        filled: epochs above the floor for which only a filler was sent (`cover`).
    """

    spent: float = 0.0
    floor: int = -1
    epochs: dict[int, int] = field(default_factory=dict)
    responses: dict[str, int] = field(default_factory=dict)
    losses: dict[int, float] = field(default_factory=dict)
    days: dict[int, float] = field(default_factory=dict)
    central: float = 0.0
    crowds: dict[int, float] = field(default_factory=dict)
    filled: set[int] = field(default_factory=set)

    def data(self) -> dict[str, Any]:
        """Returns all of it as JSON values."""
        epochs = {str(epoch): reports for epoch, reports in self.epochs.items()}
        losses = {str(epoch): loss for epoch, loss in self.losses.items()}
        days = {str(day): loss for day, loss in self.days.items()}
        crowds = {str(day): cost for day, cost in self.crowds.items()}
        return {
            "spent": self.spent,
            "central": self.central,
            "floor": self.floor,
            "epochs": epochs,
            "responses": dict(self.responses),
            "losses": losses,
            "days": days,
            **({"crowds": crowds} if crowds else {}),
            **({"filled": sorted(self.filled)} if self.filled else {}),
        }

    @classmethod
    def load(cls, data: Mapping[str, Any]) -> Self:
        """Reads what `data()` returned. Raises what `FOREIGN` lists for anything else."""
        spent, floor = _nats(data["spent"]), _whole_number(data["floor"], -1)
        losses = {_epoch(epoch): _nats(loss) for epoch, loss in data["losses"].items()}
        if "days" in data:
            days = {_epoch(day): _nats(loss) for day, loss in data["days"].items()}
        else:
            days = _losses_by_day(spent, floor, losses)
        return cls(
            spent=spent,
            floor=floor,
            epochs={
                _epoch(epoch): _whole_number(reports) for epoch, reports in data["epochs"].items()
            },
            responses={
                _name(tag): _whole_number(reports) for tag, reports in data["responses"].items()
            },
            losses=losses,
            days=days,
            # Former versions stored none; the loss for any observer is at least as large.
            central=_nats(data.get("central", spent)),
            crowds={_epoch(day): _nats(cost) for day, cost in data.get("crowds", {}).items()},
            filled={_whole_number(epoch) for epoch in data.get("filled", [])},
        )

    def reported(self, epoch: int) -> int | None:
        """Returns the number of reports in the epoch; None if that is no longer known."""
        return None if epoch <= self.floor else self.epochs.get(epoch, 0)

    def is_untouched(self, epoch: int) -> bool:
        """Returns whether nothing is recorded for an epoch, not even that the device ran in it."""
        return epoch > self.floor and epoch not in self.epochs

    def note_run(self, epoch: int) -> None:
        """Records that the device runs in this epoch, and has not reported for it."""
        if self.is_untouched(epoch):
            self.epochs[epoch] = 0
            self._bound()

    def fill(self, epoch: int) -> bool:
        """Enters a filler; returns False if the epoch had one, or a report, or that is unknown."""
        if epoch <= self.floor or epoch in self.filled or self.epochs.get(epoch):
            return False
        self.note_run(epoch)
        self.filled.add(epoch)
        return True

    def add(self, metric: Metric, epoch: int, tag: str) -> None:
        """Enters one report without checking limits."""
        cost = _cost(self, metric, tag)
        self.enter(metric, epoch, tag, cost, _central_cost(self, metric, epoch, cost))

    def enter(self, metric: Metric, epoch: int, tag: str, cost: float, central_cost: float) -> None:
        """Enters one report; costs in nats, for any observer and for one of whole epochs."""
        self.central += central_cost
        self.spent += cost
        self.losses[epoch] = self.losses.get(epoch, 0.0) + cost
        self.epochs[epoch] = self.epochs.get(epoch, 0) + 1
        if tag:
            name = _response(metric, tag)
            self.responses[name] = self.responses.get(name, 0) + 1
        day = _last_day(epoch, EPOCH_SECONDS[metric.epoch])
        _enter(self.days, day, cost)
        if metric.caps.central_mu and (in_crowds := crowd_cost(metric)):
            _enter(self.crowds, day, in_crowds)
        if len(self.epochs) > _EPOCHS:
            self._bound()

    def _bound(self) -> None:
        while len(self.epochs) > _EPOCHS:
            self.close(min(self.epochs))

    def sums(self, now: float) -> Self:
        """Returns the sums that limits need when all else is forgotten: no epochs, tags or days.

        PRIVACY: receivers still have what was sent, so its loss stays spent. All days of a cap's
        span become one sum, on the newest day that it may belong to. So the sum counts for at least
        as long as its days would have, and at most one span longer.
        """
        days, crowds = _sums_by_span(self.days, now), _sums_by_span(self.crowds, now)
        sums = type(self)(spent=self.spent, days=days, central=self.central, crowds=crowds)
        if max(self.days, default=0) > now // _DAY_SECONDS:  # the clock may have been set back
            sums.floor = max([self.floor, *self.epochs])
        return sums

    def close(self, epoch: int) -> None:
        """Counts every epoch up to this one as reported."""
        if epoch <= self.floor:
            return
        self.floor = epoch
        self.epochs = {e: reports for e, reports in self.epochs.items() if e > self.floor}
        self.losses = {e: loss for e, loss in self.losses.items() if e > self.floor}
        self.filled = {e for e in self.filled if e > self.floor}


def load_accounts(data: Mapping[str, Any]) -> dict[str, Account]:
    """Returns accounts by metric. Raises what `FOREIGN` lists for malformed data."""
    return {_name(metric): Account.load(account) for metric, account in data.items()}


def forgotten(accounts: Mapping[str, Account], now: float) -> dict[str, Account]:
    """Returns what remains of accounts when all is forgotten: the sums of charged ones."""
    return {name: account.sums(now) for name, account in accounts.items() if account.spent}


def charge(
    accounts: Mapping[str, Account], metric: Metric, epoch: int, tag: str, *, enter: bool = True
) -> Outcome | None:
    """Enters one report; or returns the reason for refusing it, and enters nothing.

    `accounts` are of every metric that this device ever had, `metric` is at the tier that reports,
    and `tag` is the device's name of the permanent response if the metric is memoized, else "".
    Without `enter` it only checks.
    """
    account = accounts[metric.base_name]
    reported = reported_of(account, metric, epoch)
    used_up = reported is None or reported >= metric.limits.reports_per_epoch
    if used_up or epoch in account.filled:
        return Outcome.ALREADY_REPORTED
    cost = _cost(account, metric, tag)
    if account.spent + cost > metric.limits.lifetime_epsilon:
        return Outcome.OVER_BUDGET
    central_cost = cost
    if metric.central is not None:  # not in development
        central_cost = _central_cost(account, metric, epoch, cost)
        most = metric.limits.lifetime_central_epsilon or inf
        if account.central + central_cost > most + _ROUNDING:
            return Outcome.OVER_BUDGET
    caps = metric.caps
    if caps.by_days and not _is_within_caps(accounts, metric, epoch, cost):
        return Outcome.OVER_BUDGET
    if caps.central_mu and not _is_within_central_cap(accounts, metric, epoch):
        return Outcome.OVER_BUDGET
    if enter:
        account.enter(metric, epoch, tag, cost, central_cost)
    return None


def reported_of(account: Account, metric: Metric, epoch: int) -> int | None:
    """Returns the number of reports in the epoch or the metric's period; None if that is unknown.

    A period counts as reported once one of its days does: which day it was is not recorded.
    """
    if not metric.report_on:
        return account.reported(epoch)
    days = days_of_period(metric.period, epoch)
    if account.floor >= days.start:
        return None
    return sum(account.epochs.get(day, 0) for day in days)


def merge(account: Account, other: Account) -> Account:
    """Returns an account that allows no more than either; used after one of them was lost."""
    floor = max(account.floor, other.floor)
    epochs = {
        epoch: max(account.epochs.get(epoch, 0), other.epochs.get(epoch, 0))
        for epoch in account.epochs.keys() | other.epochs.keys()
        if epoch > floor
    }
    losses = {
        epoch: max(account.losses.get(epoch, 0.0), other.losses.get(epoch, 0.0)) for epoch in epochs
    }
    return Account(
        spent=max(account.spent, other.spent),
        floor=floor,
        epochs=epochs,
        responses=dict(account.responses),
        losses=losses,
        days=_larger_losses(account.days, other.days),
        central=max(account.central, other.central),
        crowds=_larger_losses(account.crowds, other.crowds),
        filled={epoch for epoch in account.filled | other.filled if epoch > floor},
    )


def _is_within_caps(
    accounts: Mapping[str, Account], metric: Metric, epoch: int, cost: float
) -> bool:
    """Returns whether all metrics together, retired ones included, stay within every cap."""
    caps = metric.caps.by_days
    if sum(account.spent for account in accounts.values()) + cost <= min(caps.values()):
        return True  # the usual case, which needs no sum over days
    today = _last_day(epoch, EPOCH_SECONDS[metric.epoch])
    losses = dict.fromkeys(caps, cost)
    for account in accounts.values():
        for day, loss in account.days.items():
            for length in losses:
                if day > today - length:  # PRIVACY: or later, if the clock was set back
                    losses[length] += loss
    return all(losses[length] <= cap + _ROUNDING for length, cap in caps.items())


def _is_within_central_cap(accounts: Mapping[str, Account], metric: Metric, epoch: int) -> bool:
    """Returns whether all crowds of a year together stay within their cap, as above."""
    cost, room = crowd_cost(metric), room_of(metric.caps)
    if not cost or room is None:
        return True
    since = _last_day(epoch, EPOCH_SECONDS[metric.epoch]) - SPANS["year"]
    return cost + crowds_since(accounts.values(), since) <= room * (1 + _ROUNDING)


def crowds_since(accounts: Iterable[Account], day: int) -> float:
    """Returns the loss of crowds after a day, future days included, as the sum of mu squared."""
    return sum(
        cost for account in accounts for cost_day, cost in account.crowds.items() if cost_day > day
    )


def _enter(cost_by_day: dict[int, float], day: int, cost: float) -> None:
    """Adds a cost to a day; above the limit of days the oldest are summed up."""
    cost_by_day[day] = cost_by_day.get(day, 0.0) + cost
    while len(cost_by_day) > _DAYS:
        oldest, after, *_ = sorted(cost_by_day)
        cost_by_day[after] += cost_by_day.pop(oldest)


def _sums_by_span(days: Mapping[int, float], now: float) -> dict[int, float]:
    """Returns one sum per span of a cap, on the newest day that it may belong to."""
    today = int(now // _DAY_SECONDS)
    ages = [0, *sorted(SPANS.values())]
    losses: dict[int, float] = {}
    for day, loss in days.items():
        age = max((age for age in ages if age <= today - day), default=0)
        # Days may be in the future: after a wrong clock, or for an epoch that has not ended.
        newest = max(today, *days) if age == 0 else max(0, today - age)
        losses[newest] = losses.get(newest, 0.0) + loss
    return losses


def _larger_losses(losses: Mapping[int, float], other: Mapping[int, float]) -> dict[int, float]:
    return {
        day: max(losses.get(day, 0.0), other.get(day, 0.0)) for day in losses.keys() | other.keys()
    }


@lru_cache
def _last_day(epoch: int, seconds: int) -> int:
    """Returns the day, counted from 1970, in which an epoch of this length ends."""
    return (begins(epoch + 1, seconds) - 1) // _DAY_SECONDS


def _losses_by_day(spent: float, floor: int, losses: Mapping[int, float]) -> dict[int, float]:
    """Returns losses by day, from version 0.1's losses by epoch; older ones on the newest day."""
    days: dict[int, float] = {}
    for epoch, loss in losses.items():
        day = _last_day(epoch, _length(epoch))
        days[day] = days.get(day, 0.0) + loss
    older = spent - sum(losses.values())
    if older > 0:
        day = max(days, default=max(0, _last_day(floor, _length(floor))))
        days[day] = days.get(day, 0.0) + older
    return days


def _length(epoch: int) -> int:
    if epoch >= _HOURS_FROM:
        return EPOCH_SECONDS["hour"]
    return EPOCH_SECONDS["week" if epoch < _WEEKS_BELOW else "day"]


def _cost(account: Account, metric: Metric, tag: str) -> float:
    if not tag:
        return metric.report_loss
    before = account.responses.get(_response(metric, tag), 0)
    return min((before + 1) * metric.report_loss, metric.lifetime_loss) - min(
        before * metric.report_loss, metric.lifetime_loss
    )


def _central_cost(account: Account, metric: Metric, epoch: int, cost: float) -> float:
    """Returns a report's cost in nats for an observer of whole epochs; `cost`: for anybody."""
    if metric.central is None:
        return cost
    most, before = metric.central.epsilon, 0.0
    if metric.model:
        before = account.spent  # one promise for all reports of a model
    elif metric.central.period:
        # A promise for n days in a row costs at most itself in each n days from 1970 on.
        seconds, days = EPOCH_SECONDS[metric.epoch], days_at_most(metric.central.period)
        span = _last_day(epoch, seconds) // days
        before = sum(
            loss
            for loss_day, loss in account.losses.items()
            if _last_day(loss_day, seconds) // days == span
        )
    return min(most, before + cost) - min(most, before)


def _response(metric: Metric, tag: str) -> str:
    return f"{metric.tier}:{tag}"


def _whole_number(value: Any, least: int = 0) -> int:
    if not (type(value) is int and least <= value < _MAX_WHOLE):
        raise ValueError("not a count")
    return value


def _epoch(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise ValueError("not an epoch")
    return _whole_number(int(text))


def _nats(value: Any) -> float:
    if not (type(value) in (int, float) and math.isfinite(value) and 0 <= value < _MAX_NATS):
        raise ValueError("not a number of nats")
    return float(value)


def _name(text: str) -> str:
    if not (text.isprintable() and 0 < len(text) <= _LONGEST_NAME):
        raise ValueError("not a name")
    return text
