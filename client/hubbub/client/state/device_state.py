"""DeviceState: what a device knows of itself before it reports: secret, consent, ledger, counts."""

import math
from collections import Counter
from dataclasses import dataclass, field

from hubbub.catalog import Metric, epoch_at
from hubbub.client.ledger import Account
from hubbub.client.state.consent import Consent, is_on


@dataclass(slots=True, kw_only=True)
class DeviceState:
    """What holds for this device, over all processes of the app.

    generation: of consent.
    preference: the most epsilon that the person allows a report, or infinity; of a metric with a
        crowd, in it. max_local: the most of any report to whoever looks.
    since: when the person had everything forgotten, or 0: epochs then running are over.
    may_send: whether what is spent can be written down; nothing may leave if not.
    notice: the operator's newest that was heard here, as it was signed; empty for none.
    counts: payloads given up by reason, and mishaps of the state itself by name.
    """

    secret: bytes = field(repr=False)
    generation: int = 0
    preference: float = math.inf
    since: float = 0.0
    may_send: bool = True
    accounts: dict[str, Account] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    max_local: float = math.inf
    notice: bytes = field(default=b"", repr=False)

    @property
    def consent(self) -> Consent:
        """What the person said. Raises ValueError for what nobody can have said."""
        return Consent(self.generation, self.preference, self.since, self.max_local)

    @property
    def on(self) -> bool:
        """Whether the person lets this device report."""
        return is_on(self.generation)

    def account(self, metric: Metric) -> Account:
        """The metric's account, opened if it has none; the epoch running at `since` is over."""
        account = self.accounts.setdefault(metric.base_name, Account())
        if self.since:
            account.close(epoch_at(self.since, metric.epoch))
        return account
