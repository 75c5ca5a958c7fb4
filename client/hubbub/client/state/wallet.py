"""The wallet: tokens that a device asked for, has, and has given a report, as its state keeps them.

A token is given to one report before that leaves, and stays with it through every resend and
restart: another with the same report, or the same with another, would be refused.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self, TypeVar

from hubbub.client.ledger import FOREIGN
from hubbub.tokens import Minted

Period = tuple[str, int]
"""A stream and an epoch."""

Inputs = list[tuple[bytes, bytes]]
"""Nonces, each with the blind that its input was blinded by."""

Result = TypeVar("Result")
"""What a change of a wallet says."""

_PARTS: Final = 2


@dataclass(slots=True)
class Wallet:
    """What a device has of tokens.

    pending: for which no answer was kept: after a kill the same is asked again, and answered again.
    free: that no report has; an empty list where there are none, or the issuer gives no more.
    spending: by the report's number in the outbox.
    """

    pending: dict[Period, Inputs] = field(default_factory=dict)
    free: dict[Period, list[Minted]] = field(default_factory=dict)
    spending: dict[int, tuple[Period, Minted]] = field(default_factory=dict)

    def has_asked(self, period: Period) -> bool:
        """Whether the issuer has answered."""
        return period in self.free

    def ask(self, wanted: Mapping[Period, Inputs]) -> dict[Period, Inputs]:
        """What is to be asked of these: as it was drawn now, or at the first time."""
        open_ = {one: drawn for one, drawn in wanted.items() if one not in self.free}
        return {one: self.pending.setdefault(one, drawn) for one, drawn in open_.items()}

    def keep(self, minted: Mapping[Period, Sequence[Minted]]) -> None:
        """Keep what the issuer answered. PRIVACY: nothing is left by which it was blinded."""
        for period, tokens in minted.items():
            if self.pending.pop(period, None) is not None:
                self.free.setdefault(period, []).extend(tokens)

    def give(self, reports: Iterable[tuple[int, Period]]) -> dict[int, Minted]:
        """A token for each report, the one it has or another; of those without there are none."""
        found = {}
        for number, period in reports:
            if number not in self.spending and self.free.get(period):
                self.spending[number] = period, self.free[period].pop()
            if number in self.spending:
                found[number] = self.spending[number][1]
        return found

    def settle(self, reports: Iterable[int]) -> None:
        """These reports have met their fate, or their tokens had gone with others."""
        for number in reports:
            self.spending.pop(number, None)

    def close(self, closed: Iterable[Period]) -> None:
        """Nothing of these epochs can be sent any more."""
        for period in closed:
            self.pending.pop(period, None)
            self.free.pop(period, None)
            self.spending = {n: one for n, one in self.spending.items() if one[0] != period}

    @property
    def periods(self) -> set[Period]:
        """Of which it knows anything."""
        return {*self.pending, *self.free, *(period for period, _ in self.spending.values())}

    def data(self) -> bytes:
        """All of it, as a state keeps it."""
        told = {
            "pending": [[*one, _hex(pairs)] for one, pairs in sorted(self.pending.items())],
            "free": [
                [*one, _hex([(t.nonce, t.output) for t in tokens])]
                for one, tokens in sorted(self.free.items())
            ],
            "spending": [
                [number, *one, _hex([(t.nonce, t.output)])]
                for number, (one, t) in sorted(self.spending.items())
            ],
        }
        return json.dumps(told).encode()

    @classmethod
    def load(cls, data: Any) -> Self:
        """What `data` told; of what is none, an empty one: its tokens are lost, and no report."""
        try:
            told = json.loads(data) if data else {}
            return cls(
                {_period(s, e): _pairs(pairs) for s, e, pairs in told.get("pending", [])},
                {
                    _period(s, e): [Minted(*one) for one in _pairs(pairs)]
                    for s, e, pairs in told.get("free", [])
                },
                {
                    _whole(number): (_period(s, e), Minted(*_pairs(pairs)[0]))
                    for number, s, e, pairs in told.get("spending", [])
                },
            )
        except (*FOREIGN, IndexError):
            return cls()


def _hex(pairs: Iterable[tuple[bytes, bytes]]) -> list[str]:
    return [f"{one.hex()} {other.hex()}" for one, other in pairs]


def _pairs(told: Iterable[str]) -> Inputs:
    parts = [tuple(map(bytes.fromhex, text.split())) for text in told]
    if any(len(part) != _PARTS for part in parts):
        raise ValueError("no pair")
    return [(one, other) for one, other in parts]


def _period(stream: Any, epoch: Any) -> Period:
    if not isinstance(stream, str):
        raise TypeError("no stream")
    return stream, _whole(epoch)


def _whole(number: Any) -> int:
    if type(number) is not int:
        raise ValueError("no number")
    return number
