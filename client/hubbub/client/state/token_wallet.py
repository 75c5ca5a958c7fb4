"""The wallet: a device's requested, free and assigned tokens, as its state stores them.

A token is assigned to one report before the report leaves, for all resends and restarts: the
shuffler refuses another token with the same report, or the same token with another report.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self

from hubbub.client.ledger import FOREIGN
from hubbub.tokens.token import Minted

Period = tuple[str, int]
"""A stream and an epoch."""

Kind = tuple[str, int, str]
"""A stream, an epoch and the issuer's key by its name: tokens of another key are none any more."""

Inputs = list[tuple[bytes, bytes]]
"""Nonces, each with the blind that its input was blinded by."""

_PARTS: Final = 2


@dataclass(slots=True)
class Wallet:
    """The tokens of a device.

    Args:
        pending: requests without a stored answer; after a kill the device repeats the same request.
        free: unused tokens; an empty list if the issuer gives no more.
        spending: the token of each report, by its number in the outbox.
    """

    pending: dict[Period, Inputs] = field(default_factory=dict)
    free: dict[Kind, list[Minted]] = field(default_factory=dict)
    spending: dict[tuple[int, Kind], Minted] = field(default_factory=dict)

    def ask(self, new_inputs: Mapping[Kind, Inputs]) -> dict[Kind, Inputs]:
        """Returns the inputs to request: those drawn now, or those of an earlier request."""
        open_ = {kind: inputs for kind, inputs in new_inputs.items() if kind not in self.free}
        return {kind: self.pending.setdefault(kind[:2], inputs) for kind, inputs in open_.items()}

    def keep(self, minted: Mapping[Kind, Sequence[Minted]]) -> None:
        """Stores the issuer's answer. PRIVACY: the blinds are deleted."""
        for kind, tokens in minted.items():
            if self.pending.pop(kind[:2], None) is not None:
                self.free.setdefault(kind, []).extend(tokens)

    def give(self, reports: Iterable[tuple[int, Kind]]) -> dict[int, Minted]:
        """Assigns a token to each report, the former one if it has one; some may get none."""
        tokens = {}
        for report in reports:
            number, kind = report
            if report not in self.spending and self.free.get(kind):
                self.spending[report] = self.free[kind].pop()
            if report in self.spending:
                tokens[number] = self.spending[report]
        return tokens

    def settle(self, reports: Iterable[int]) -> None:
        """Forgets the tokens of reports that are done, or whose tokens were spent before."""
        gone = set(reports)
        self.spending = {key: t for key, t in self.spending.items() if key[0] not in gone}

    def close(self, closed: Iterable[Period]) -> None:
        """Forgets tokens of epochs for which nothing can be sent any more."""
        gone = set(closed)
        self.pending = {kind: inputs for kind, inputs in self.pending.items() if kind not in gone}
        self.free = {kind: tokens for kind, tokens in self.free.items() if kind[:2] not in gone}
        self.spending = {key: t for key, t in self.spending.items() if key[1][:2] not in gone}

    @property
    def periods(self) -> set[Period]:
        """Returns the epochs for which there is any entry."""
        kinds = (*self.free, *(kind for _, kind in self.spending))
        return {*self.pending, *(kind[:2] for kind in kinds)}

    def data(self) -> bytes:
        """Returns the bytes that a state stores."""
        body = {
            "pending": [[*kind, _hex(pairs)] for kind, pairs in sorted(self.pending.items())],
            "free": [
                [*kind, _hex([(t.nonce, t.output) for t in tokens])]
                for kind, tokens in sorted(self.free.items())
            ],
            "spending": [
                [number, *kind, _hex([(t.nonce, t.output)])]
                for (number, kind), t in sorted(self.spending.items())
            ],
        }
        return json.dumps(body).encode()

    @classmethod
    def load(cls, data: Any) -> Self:
        """Reads what `data` returned; malformed bytes give an empty wallet, which loses tokens."""
        try:
            body = json.loads(data) if data else {}
            return cls(
                {_period(*of): _pairs(pairs) for *of, pairs in body.get("pending", [])},
                {
                    _kind(*of): [Minted(*pair) for pair in _pairs(pairs)]
                    for *of, pairs in body.get("free", [])
                },
                {
                    (_checked_number(number), _kind(*of)): Minted(*_pairs(pairs)[0])
                    for number, *of, pairs in body.get("spending", [])
                },
            )
        except (*FOREIGN, IndexError):
            return cls()


def _hex(pairs: Iterable[tuple[bytes, bytes]]) -> list[str]:
    return [f"{first.hex()} {other.hex()}" for first, other in pairs]


def _pairs(texts: Iterable[str]) -> Inputs:
    parts = [tuple(map(bytes.fromhex, text.split())) for text in texts]
    if any(len(part) != _PARTS for part in parts):
        raise ValueError("no pair")
    return [(first, other) for first, other in parts]


def _period(stream: Any, epoch: Any) -> Period:
    if not isinstance(stream, str):
        raise TypeError("no stream")
    return stream, _checked_number(epoch)


def _kind(stream: Any, epoch: Any, key: Any) -> Kind:
    if not isinstance(key, str):
        raise TypeError("no key")
    return *_period(stream, epoch), key


def _checked_number(number: Any) -> int:
    if type(number) is not int:
        raise ValueError("no number")
    return number
