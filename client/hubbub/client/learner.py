"""The learner: the state of models as a process has it, and the examples that wait for it.

Both are in memory alone: a device uses one state of a model, that of its round, once.
"""

from collections.abc import Callable
from typing import Any

from hubbub.catalog import Metric
from hubbub.catalog.models.judging import bins_for, judged
from hubbub.catalog.models.learning import Example
from hubbub.catalog.models.of_metric import codes_of_round
from hubbub.catalog.models.state import ModelState, open_models
from hubbub.client.outcome import Outcome
from hubbub.errors import ModelsRefused
from hubbub.mechanisms import BitSource
from hubbub.mechanisms.gradient import gradient, place, score, unit

Teller = Callable[[BitSource], bytes]
"""Draws the coins of a person's report: called once that is charged for."""


class Learner:
    """Not safe between threads. operator: who signed the bundle. awaited: the last example each."""

    def __init__(self, operator: bytes) -> None:
        self._operator = operator
        self._states: dict[str, ModelState] = {}
        self.awaited: dict[str, Example] = {}

    def teller(self, metric: Metric, number: int, example: Any) -> Teller | None:
        """What a device of this round tells.

        None without the state that it learns by or judges, and of what is no model.
        """
        model = metric.model
        if model is None:
            return None
        if number == 0:
            return _of_vector(metric, number, place(example.columns))
        state = self._states.get(metric.name)
        if state is None or not _fits(state, metric, number, example):
            return None
        by, label = (state.centre, state.weights), example.label
        if number <= model.rounds:
            vector = gradient(model.kind, example.columns, label, *by)
            return _of_vector(metric, number, vector)
        edges, own = state.edges, score(example.columns, *by)
        return lambda coins: judged(metric, own, label, edges, coins)

    def settle(self, name: str, example: Example, outcome: Outcome) -> None:
        """Keep an example for as long as it awaits a state."""
        if outcome is Outcome.AWAITS_STATE:
            self.awaited[name] = example
        else:
            self.awaited.pop(name, None)

    def hear(self, signed: bytes) -> None:
        """Take the states that were fetched.

        Raises:
            ModelsRefused: they are none of this operator's, older than those before, or have
                another dimension than their model. What is wrong with one is told, and the others
                are taken.
        """
        found = open_models(signed, operator=self._operator)
        wrong = []
        for name, state in found.states.items():
            former, example = self._states.get(name), self.awaited.get(name)
            if former and state.number < former.number:
                wrong.append(f'"{name}" is of round {state.number}, older than {former.number}')
            elif former and state.number == former.number and state != former:
                wrong.append(f'"{name}" is told apart: another one of round {state.number} came')
            elif example and len(example.columns) != len(state.centre):
                wrong.append(
                    f'"{name}" has {len(state.centre)} columns, the bundle {len(example.columns)}'
                )
            else:
                self._states[name] = state
        if wrong:
            raise ModelsRefused(f"{'; '.join(wrong)}: not taken; serve the newest of this bundle's")


def _of_vector(metric: Metric, number: int, vector: list[float]) -> Teller:
    """Of a vector of length 1 at most, by the codes of a round."""
    return lambda coins: codes_of_round(metric, number).randomize(unit(vector, coins), coins)


def _fits(state: ModelState, metric: Metric, number: int, example: Example) -> bool:
    """Whether a device of this round goes by a state."""
    judges = metric.model is not None and number > metric.model.rounds
    return (
        # PRIVACY: of its own round alone. An older or newer one would be of other people.
        state.number == number - 1
        and len(state.centre) == len(example.columns)
        and (not judges or len(state.edges) == bins_for(metric.epsilon) - 1)
    )
