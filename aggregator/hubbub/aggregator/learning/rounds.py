"""Finished rounds of models, each written once.

A Redis hash per model, `aggregator:model:NAME`, maps the number of a round to its JSON. A written
round is never overwritten, whoever computes it, so that each is one step.
"""

import json
from base64 import b64decode, b64encode
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any, Final, Self

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.analysis.models.weight_variances import Round
from hubbub.errors import TotalsUnreadable
from hubbub.runtime.redis.command_lists import Hashes

_KEY: Final = "aggregator:model:"
# Largest dimension for which products are stored, 176 kB a round. Above it the contraction is
# unknown, and intervals are wider.
_LARGEST: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRound:
    """One round, and the state after it.

    Args:
        number: 0 for the round that estimates the columns' centre.
        epoch: of the round.
        reports: at its end; too few do not change the state.
        noise: of its mean direction, whose length is at most 1; 0 if the state did not change.
        rate: length of its step.
        centre: mean of the columns, in [0, 1].
        weights: of centred columns, then of the intercept; for softmax, of each contrast.
        outer: mean outer product of directions: lower triangle as float32 in base64; "" if unknown
            or too long.
        at: time of the computation, in seconds since 1970.
        judged: in an evaluation round, the count of each bin and label.
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
        """Reads a written round. Raises ValueError, TypeError or KeyError if it is invalid."""
        table: dict[str, Any] = json.loads(text)
        result = cls(**{**table, "judged": tuple(table.get("judged", ()))})
        numbers = [*result.centre, *result.weights, result.noise, result.rate]
        if not all(isfinite(number) for number in numbers):
            raise ValueError("no numbers")
        result.state()
        return result

    def state(self) -> Round:
        """The state for the next step. Raises ValueError if `outer` has a wrong size."""
        size, outer = len(self.weights), None
        if self.outer:
            outer = np.zeros((size, size))
            triangle = np.frombuffer(b64decode(self.outer, validate=True), dtype="<f4")
            outer[np.tril_indices(size)] = triangle
            outer += np.tril(outer, -1).T
            if not np.isfinite(outer).all():
                raise ValueError("no numbers")
        return Round(
            number=self.number,
            weights=np.array(self.weights),
            rate=self.rate,
            noise=self.noise,
            people=self.reports,
            outer=outer,
        )


def as_text(outer: Floats) -> str:
    """The mean outer product of directions, as stored in a round."""
    if len(outer) > _LARGEST:
        return ""
    return b64encode(outer[np.tril_indices(len(outer))].astype("<f4").tobytes()).decode()


class Rounds:
    """Finished rounds by model. Every method raises StoreUnavailable without Redis."""

    def __init__(self, server: Hashes) -> None:
        self._server = server

    async def finished(self, model: str) -> list[FinishedRound]:
        """All written rounds, from 0 on without a gap. Raises TotalsUnreadable."""
        rounds = {}
        for number, text in (await self._server.ask("HGETALL", _KEY + model)).items():
            try:
                rounds[int(number)] = FinishedRound.load(text)
            except (ValueError, TypeError, KeyError, RecursionError) as error:
                raise TotalsUnreadable(
                    f'model "{model}": a round in Redis is unreadable; restore a backup, '
                    "or give the model a new name"
                ) from error
        sequence: list[FinishedRound] = []
        while len(sequence) in rounds:
            sequence.append(rounds[len(sequence)])
        return sequence

    async def write(self, model: str, finished: FinishedRound) -> bool:
        """Atomically writes a round unless it exists; returns whether this was the first write."""
        document = asdict(finished)
        if not finished.judged:
            del document["judged"]  # so that former versions can read the round
        text = json.dumps(document, separators=(",", ":"))
        [first] = await self._server.durable([("HSETNX", _KEY + model, str(finished.number), text)])
        return bool(first)
