"""DeviceState: a device's knowledge of itself before a report: secret, consent, ledger, counts."""

from collections import Counter
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Final

from hubbub.catalog import Metric, epoch_at
from hubbub.client.ledger import Account
from hubbub.client.state.consent import Consent, is_on

_OWN: Final = ": "
Event = tuple[str, int, str]
"""A metric, an epoch, and what happened then: an event that the app reported, or the cell of a
breakdown that the report of the epoch goes to."""


def own_count(metric: str, label: str) -> str:
    """Returns the name of a local count among `counts`; no reason or event contains its mark."""
    return f"{metric}{_OWN}{label if label.isprintable() else 'unprintable'}"


def own_counts_of(counts: Mapping[str, int]) -> tuple[dict[str, int], dict[str, dict[str, int]]]:
    """Returns reasons and events; and local counts, by metric and value."""
    others: dict[str, int] = {}
    own_counts: dict[str, dict[str, int]] = {}
    for name, number in counts.items():
        metric, mark, label = name.partition(_OWN)
        if mark:
            own_counts.setdefault(metric, {})[label] = number
        else:
            others[name] = number
    return others, own_counts


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class DeviceState:
    """The state that all processes of the app share.

    Args:
        may_send: whether spending can be stored; otherwise nothing may leave.
        counts: dropped payloads by reason, events by name, and local counts (`own_count`).
        events: how often each event happened of which no report was made yet.
        notice: the newest signed notice of the operator; empty for none.
    """

    secret: bytes
    consent: Consent = Consent()  # noqa: RUF009 a frozen value
    may_send: bool = True
    accounts: dict[str, Account] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    events: Counter[Event] = field(default_factory=Counter)
    notice: bytes = b""

    @property
    def is_on(self) -> bool:
        """Returns whether the person lets this device report."""
        return is_on(self.consent.generation)

    def settle(self, settled: Container[tuple[str, int]]) -> None:
        """Deletes the events of these metrics in these epochs."""
        for event in [event for event in self.events if event[:2] in settled]:
            del self.events[event]

    def account(self, metric: Metric) -> Account:
        """Returns the metric's account, perhaps a new one; epochs before a forgetting are over."""
        account = self.accounts.setdefault(metric.base_name, Account())
        if self.consent.since:
            account.close(epoch_at(self.consent.since, metric.epoch))
        return account
