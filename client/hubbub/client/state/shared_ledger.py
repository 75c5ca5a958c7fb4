"""SharedLedger: one ledger and one consent for all processes that cannot use their state folder.

PRIVACY: each of them reads, merges and writes the witness elsewhere while it is alone there, before
anything leaves. One that is killed leaves at most too much charged.
"""

import contextlib
import logging
import secrets
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from hubbub.client.state.device_state import DeviceState
from hubbub.client.state.state_moment import StateMoment, agree
from hubbub.client.state.witness import Witnesses
from hubbub.client.state.witness_check import CONSENT_UNKNOWN, unknown
from hubbub.errors import StateUnusable

_log: Final = logging.getLogger("hubbub.client")


class SharedLedger:
    """One state's way to what is known of its folder. witnesses: None keeps nothing anywhere."""

    def __init__(
        self, witnesses: Witnesses | None, standing: DeviceState, clock: Callable[[], float]
    ) -> None:
        self._witnesses = witnesses
        self._known = StateMoment(
            state="", commits=0, head="", accounts={}, consent=standing.consent
        )
        self._heeded: list[StateMoment] | None = None
        self._clock = clock

    def usable(self) -> bool:
        """Whether what is spent can be written down."""
        return self._witnesses is None or self._witnesses.elsewhere.usable()

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other processes from charging at the same time. Raises StateUnusable."""
        with self._witnesses.elsewhere.alone() if self._witnesses else contextlib.nullcontext():
            yield

    def heed(self, standing: DeviceState) -> DeviceState | None:
        """Where a state stands by what all places know now; None if nothing has changed."""
        if self._witnesses is None:
            return None
        moments = self._witnesses.read_all()
        first = self._heeded is None
        if not first and moments == self._heeded:
            return None
        mine = replace(self._known, accounts=standing.accounts, consent=standing.consent)
        if not mine.state and moments:
            mine = replace(mine, state=moments[-1].state)
        for moment in moments:
            mine = agree(mine, moment)
        consent, mishaps = mine.consent or standing.consent, ["state_lost"] * bool(moments)
        traces = moments or self._witnesses.damaged() or self._witnesses.traces()
        if first and traces and not any(moment.consent for moment in moments):
            consent = unknown(consent, self._clock())
            mishaps.append(CONSENT_UNKNOWN)
            _log.warning(
                "%s cannot be used, and what the person said of reporting is not known: it is off "
                "until enable()",
                self._witnesses.folder,
            )
        self._heeded, self._known = moments, mine
        return replace(
            standing,
            generation=consent.generation,
            preference=consent.preference,
            max_local=consent.local,
            since=consent.since,
            accounts=dict(mine.accounts),
            counts=standing.counts + Counter(mishaps if first else []),
        )

    def tell(self, standing: DeviceState) -> None:
        """Write down where a state stands. Raises StateUnusable."""
        if self._witnesses is None:
            return
        moment = replace(
            self._known,
            state=self._known.state or secrets.token_hex(8),
            commits=self._known.commits + 1,
            head=secrets.token_hex(8),
            accounts=standing.accounts,
            consent=standing.consent,
        )
        self._witnesses.elsewhere.write(moment)
        self._known = moment

    def confirm(self, standing: DeviceState) -> None:
        """Write it down again if it is gone: who tidies up knows nothing of us."""
        if self._witnesses and self._witnesses.elsewhere.read() is None:
            self.tell(standing)

    def forget(self) -> None:
        """Say what cannot be forgotten: a folder that cannot be used keeps what it has."""
        if self._witnesses and (self._witnesses.traces() or self._witnesses.has_beside()):
            raise StateUnusable(
                f"{self._witnesses.folder}: reporting is off, but what is in there cannot be "
                "forgotten while it cannot be used; delete it"
            )
