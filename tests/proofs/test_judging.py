"""Who judges a model tells bin and label by exact chances, within the epsilon of a gradient."""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest

from hubbub.catalog.models.model_metric import (
    bins_for,
    evaluation_report,
    judging,
    loss_of_judging,
)
from hubbub.mechanisms import Probability
from hubbub.mechanisms.layout import OneHot


@dataclass
class Branch:
    """One run of all that coins can do: answers by `path`, then the first, and what it came to."""

    path: list[int]
    chance_of_it: Fraction = Fraction(1)
    branches: list[tuple[int, int]] = field(default_factory=list)

    def _take_branch(self, chances: list[Fraction]) -> int:
        at = len(self.branches)
        answer = self.path[at] if at < len(self.path) else 0
        self.branches.append((answer, len(chances)))
        self.chance_of_it *= chances[answer]
        return answer

    def chance(self, probability: Probability, /) -> bool:
        return bool(self._take_branch([probability.complement.exact, probability.exact]))

    def below(self, limit: int, /) -> int:
        return self._take_branch([Fraction(1, limit)] * limit)

    def mask(self, probability: Probability, width: int, /) -> int:
        raise AssertionError((probability, width))


def _payloads(metric: Any, score: float, label: float) -> Iterator[tuple[bytes, Fraction]]:
    """Every way that coins may fall, with what is sent and the chance of it."""
    path: list[int] | None = []
    while path is not None:
        branch = Branch(path)
        edges = [float(at) for at in range(1, bins_for(metric.epsilon))]
        yield evaluation_report(metric, score, label, edges, branch), branch.chance_of_it
        choices = branch.branches
        while choices and choices[-1][0] + 1 == choices[-1][1]:
            choices.pop()
        path = [*(choice for choice, _ in choices[:-1]), choices[-1][0] + 1] if choices else None


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
def test_reports_of_held_out_devices_are_within_epsilon(epsilon: float) -> None:
    layout = OneHot(1 << 20)
    model = SimpleNamespace(held_out=0.1)
    metric = SimpleNamespace(
        epsilon=epsilon, model=model, randomizer=SimpleNamespace(layout=layout)
    )
    laws = []
    for score in (-1.0, 1.0, 1.5, 100.0):
        for label in (0.0, 0.3, 1.0):
            law: Counter[bytes] = Counter()
            for payload, chance in _payloads(metric, score, label):
                assert len(payload) == layout.payload_bytes
                law[payload] += chance  # type: ignore[assignment]
            assert sum(law.values()) == 1
            laws.append(law)
    judge = judging(metric)
    assert all(law.keys() == laws[0].keys() for law in laws)
    assert len(laws[0]) == judge.categories
    most = max(
        max(law[payload] for law in laws) / min(law[payload] for law in laws) for payload in laws[0]
    )
    assert math.log(most) <= loss_of_judging(metric) <= epsilon
    # A label between the two is told as the mixture of both.
    assert all(
        laws[1][payload]
        == Fraction(0.3) * laws[2][payload] + (1 - Fraction(0.3)) * laws[0][payload]
        or abs(
            float(
                laws[1][payload]
                - Fraction(0.3) * laws[2][payload]
                - Fraction(0.7) * laws[0][payload]
            )
        )
        < 1e-12
        for payload in laws[0]
    )
