"""Finished rounds of models: what each taught, written once.

They are a hash of Redis a model, `aggregator:model:NAME`: number of the round -> its JSON. A round
that is written is never written again, whoever works it out, so that each is one step.
"""

import json
from base64 import b64decode, b64encode
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any, Final, Self

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.analysis.models import Round
from hubbub.errors import TotalsUnreadable
from hubbub.runtime import Hashes

_KEY: Final = "aggregator:model:"
# Of a direction that has its products kept: 176 kB a round. Above it no contraction is known, and
# intervals are wider.
_LARGEST: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRound:
    """One round, and the state after it.

    number: 0 of where columns lie. epoch: that it was. reports: that were in when it ended; too few
    teach nothing. noise: of its mean direction, whose length is at most 1; 0 where it taught
    nothing. rate: how long its step was. centre: where columns lie, in [0, 1]. weights: of columns
    about the centre, then of the intercept; of softmax so for each contrast. outer: how its
    people's directions lie, the lower triangle as float32 in base64; "" where that is not known, or
    would be too long. at: when it was worked out, in seconds since 1970. judged: of the round of
    those who judge, how often each bin
    and label was told.
    """

    number: int
    epoch: int
    reports: int
    noise: float
    rate: float
    centre: list[float]
    weights: list[float]
    outer: str
    at: int
    judged: tuple[int, ...] = ()

    @classmethod
    def load(cls, text: bytes) -> Self:
        """The round that was written. Raises ValueError, TypeError or KeyError for another."""
        table: dict[str, Any] = json.loads(text)
        result = cls(**{**table, "judged": tuple(table.get("judged", ()))})
        numbers = [*result.centre, *result.weights, result.noise, result.rate]
        if not all(isfinite(number) for number in numbers):
            raise ValueError("no numbers")
        result.state()
        return result

    def state(self) -> Round:
        """It as what its step is worked out from. Raises ValueError where outer is of no size."""
        size, outer = len(self.weights), None
        if self.outer:
            outer = np.zeros((size, size))
            triangle = np.frombuffer(b64decode(self.outer, validate=True), dtype="<f4")
            outer[np.tril_indices(size)] = triangle
            outer += np.tril(outer, -1).T
            if not np.isfinite(outer).all():
                raise ValueError("no numbers")
        weights = np.array(self.weights)
        return Round(
            number=self.number,
            weights=weights,
            rate=self.rate,
            noise=self.noise,
            people=self.reports,
            outer=outer,
        )


def as_text(outer: Floats) -> str:
    """How directions lie, as a round keeps it."""
    if len(outer) > _LARGEST:
        return ""
    return b64encode(outer[np.tril_indices(len(outer))].astype("<f4").tobytes()).decode()


class Rounds:
    """Finished rounds by model. Every method raises StoreUnavailable without Redis."""

    def __init__(self, server: Hashes) -> None:
        self._server = server

    async def finished(self, model: str) -> list[FinishedRound]:
        """Every round that is written, by its number, from 0 on without a gap.

        Raises:
            TotalsUnreadable: one is there that nobody can read.
        """
        rounds = {}
        for number, text in (await self._server.ask("HGETALL", _KEY + model)).items():
            try:
                rounds[int(number)] = FinishedRound.load(text)
            except (ValueError, TypeError, KeyError, RecursionError) as error:
                raise TotalsUnreadable(
                    f'model "{model}": what Redis holds of a round nobody can read; restore a '
                    "backup, or give the model a new name"
                ) from error
        sequence: list[FinishedRound] = []
        while len(sequence) in rounds:
            sequence.append(rounds[len(sequence)])
        return sequence

    async def write(self, model: str, finished: FinishedRound) -> bool:
        """Write a round, unless it is written, whole or not at all; whether this was the first."""
        document = asdict(finished)
        if not finished.judged:
            del document[
                "judged"
            ]  # of a model that nobody judges, former versions read every round
        text = json.dumps(document, separators=(",", ":"))
        [first] = await self._server.durable([("HSETNX", _KEY + model, str(finished.number), text)])
        return bool(first)
