"""The ledger: what this device has said so far, checked before any coin is drawn.

Memoization-aware: reports of one unchanged value under a permanent response cost together no more
than that response (the bound that RAPPOR's theorem 1 gives), and another value costs anew.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from hubbub.catalog import Metric
from hubbub.client.outcome import Outcome

__all__ = ["FOREIGN", "Account", "charge", "load_accounts", "merge"]

FOREIGN: Final = (
    ArithmeticError,
    AttributeError,
    KeyError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What reading a document that is none of ours may raise."""

# Every epoch that was reported is remembered by itself, so that a clock that jumped ahead and came
# back may still report today. Past this many the oldest count as reported, all of them.
_EPOCHS: Final = 64
_MOST_WHOLE: Final = 1 << 32  # epochs are 32 bits on the wire, and nobody reports so often in one
_MOST_NATS: Final = 1e15
_LONGEST_NAME: Final = 255


@dataclass(slots=True)
class Account:
    """What was said about one metric, over all its tiers. Holds counts and tags, never a value.

    spent: the most that all reports so far can say about this person, in nats.
    floor: epochs up to this one count as reported.
    epochs: reports per epoch above the floor. losses: what they can say, in nats; an unchanged
        permanent response costs in the epochs that it was paid in.
    responses: reports per permanent response, by a name that only this device can make.
    """

    spent: float = 0.0
    floor: int = -1
    epochs: dict[int, int] = field(default_factory=dict)
    responses: dict[str, int] = field(default_factory=dict)
    losses: dict[int, float] = field(default_factory=dict)

    def data(self) -> dict[str, Any]:
        """All of it, JSON-ready."""
        epochs = {str(epoch): reports for epoch, reports in self.epochs.items()}
        losses = {str(epoch): loss for epoch, loss in self.losses.items()}
        return {
            "spent": self.spent,
            "floor": self.floor,
            "epochs": epochs,
            "responses": dict(self.responses),
            "losses": losses,
        }

    @classmethod
    def load(cls, data: Mapping[str, Any]) -> Self:
        """The account that `data()` told. Raises what `FOREIGN` lists for any other."""
        return cls(
            _nats(data["spent"]),
            _whole(data["floor"], -1),
            {_epoch(epoch): _whole(reports) for epoch, reports in data["epochs"].items()},
            {_name(tag): _whole(reports) for tag, reports in data["responses"].items()},
            {_epoch(epoch): _nats(loss) for epoch, loss in data["losses"].items()},
        )

    def reported(self, epoch: int) -> int | None:
        """How many reports the epoch has had; None if that is no longer known."""
        return None if epoch <= self.floor else self.epochs.get(epoch, 0)

    def add(self, metric: Metric, epoch: int, tag: str) -> None:
        """Enter one report, whatever the limits say."""
        cost = _cost(self, metric, tag)
        self.spent += cost
        self.losses[epoch] = self.losses.get(epoch, 0.0) + cost
        self.epochs[epoch] = self.epochs.get(epoch, 0) + 1
        if tag:
            name = _response(metric, tag)
            self.responses[name] = self.responses.get(name, 0) + 1
        while len(self.epochs) > _EPOCHS:
            self.close(min(self.epochs))

    def close(self, epoch: int) -> None:
        """Let every epoch up to this one count as reported."""
        if epoch <= self.floor:
            return
        self.floor = epoch
        self.epochs = {e: reports for e, reports in self.epochs.items() if e > self.floor}
        self.losses = {e: loss for e, loss in self.losses.items() if e > self.floor}


def load_accounts(data: Mapping[str, Any]) -> dict[str, Account]:
    """Accounts by metric. Raises what `FOREIGN` lists for what is none."""
    return {_name(metric): Account.load(account) for metric, account in data.items()}


def charge(account: Account, metric: Metric, epoch: int, tag: str) -> Outcome | None:
    """Enter one report, or say why not (and then enter nothing).

    metric: of the tier that reports.
    tag: a device-made name of the permanent response if the metric is memoized, "" otherwise.
    """
    reported = account.reported(epoch)
    if reported is None or reported >= metric.limits.reports_per_epoch:
        return Outcome.ALREADY_REPORTED
    if account.spent + _cost(account, metric, tag) > metric.limits.lifetime_epsilon:
        return Outcome.OVER_BUDGET
    account.add(metric, epoch, tag)
    return None


def merge(one: Account, other: Account) -> Account:
    """An account that allows no more than either: for when one of them was lost for a while."""
    floor = max(one.floor, other.floor)
    epochs = {
        epoch: max(one.epochs.get(epoch, 0), other.epochs.get(epoch, 0))
        for epoch in one.epochs.keys() | other.epochs.keys()
        if epoch > floor
    }
    losses = {
        epoch: max(one.losses.get(epoch, 0.0), other.losses.get(epoch, 0.0)) for epoch in epochs
    }
    return Account(max(one.spent, other.spent), floor, epochs, dict(one.responses), losses)


def _cost(account: Account, metric: Metric, tag: str) -> float:
    if not tag:
        return metric.report_loss
    before = account.responses.get(_response(metric, tag), 0)
    return min((before + 1) * metric.report_loss, metric.lifetime_loss) - min(
        before * metric.report_loss, metric.lifetime_loss
    )


def _response(metric: Metric, tag: str) -> str:
    return f"{metric.tier}:{tag}"


def _whole(thing: Any, least: int = 0) -> int:  # noqa: ANN401 parsed JSON
    if not (type(thing) is int and least <= thing < _MOST_WHOLE):
        raise ValueError("not a count")
    return thing


def _epoch(thing: str) -> int:
    if not (thing.isascii() and thing.isdecimal()):
        raise ValueError("not an epoch")
    return _whole(int(thing))


def _nats(thing: Any) -> float:  # noqa: ANN401 parsed JSON
    if not (type(thing) in (int, float) and math.isfinite(thing) and 0 <= thing < _MOST_NATS):
        raise ValueError("not a number of nats")
    return float(thing)


def _name(thing: str) -> str:
    if not (thing.isprintable() and 0 < len(thing) <= _LONGEST_NAME):
        raise ValueError("not a name")
    return thing
