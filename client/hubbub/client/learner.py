"""The learner: the states of models in this process, and the examples that wait for them.

Both exist only in memory: a device uses a model's state in one round, once.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from hubbub.catalog import Metric
from hubbub.catalog.models.model_metric import bins_for, codes_of_round, evaluation_report
from hubbub.client.outcome import Outcome
from hubbub.client.state.contract import REPLACED, Dropped
from hubbub.errors import ModelsRefused
from hubbub.mechanisms import BitSource

if TYPE_CHECKING:
    from hubbub.bundles.model_state import ModelState
    from hubbub.catalog.models.learning import Example, Learning

_GOES_ON: Final = frozenset({Outcome.AWAITS_STATE, Outcome.QUEUED})

Teller = Callable[[BitSource], bytes]
"""Draws the coins of a person's report: called once that is charged for."""


class Learner:
    """The examples of models that wait for a state. Not safe between threads."""

    def __init__(self, operator: bytes, models: "Mapping[str, Learning]") -> None:
        self._operator = operator
        self._models = models
        self._states: dict[str, ModelState] = {}
        self.awaited: dict[str, Example] = {}

    def teller(self, metric: Metric, number: int, example: Any) -> Teller | None:
        """Returns the function that reports an example; None without the state of the round."""
        model = metric.model
        if model is None:
            return None
        from hubbub.mechanisms.gradient import gradient, place, to_judge  # noqa: PLC0415 of models

        if number == 0:
            vector = place(example.columns)
            size = codes_of_round(metric, number).dimensions
            return _vector_teller(metric, number, vector + [0.0] * (size - len(vector)))
        state = self._states.get(metric.name)
        # PRIVACY: only of its own round. Another round's state depends on other people's reports.
        if state is None or state.number != number - 1:
            return None
        judges = number > model.rounds
        if judges and len(state.edges) != bins_for(metric.epsilon) - 1:
            return None
        arguments = (model.kind, example.columns, example.label, state.centre, state.weights)
        if not judges:
            return _vector_teller(metric, number, gradient(*arguments))
        edges, (score, label) = state.edges, to_judge(*arguments)
        return lambda coins: evaluation_report(metric, score, label, edges, coins)

    def settle(self, name: str, example: "Example", outcome: Outcome) -> list[Dropped]:
        """Keeps an example until its state arrives; returns the examples that are discarded."""
        former = self.awaited.pop(name, None)
        if outcome is Outcome.AWAITS_STATE:
            self.awaited[name] = example
        if former is None or (former is example and outcome in _GOES_ON):
            return []
        return [Dropped(name, outcome.value if former is example else REPLACED)]

    def hear(self, signed: bytes) -> None:
        """Stores fetched states of models.

        Raises ModelsRefused for those of another operator, older than the last ones, or of another
        dimension than their model; the other states are stored.
        """
        from hubbub.bundles.model_state import open_models  # noqa: PLC0415 of bundles with models

        models = open_models(signed, operator=self._operator)
        wrong = []
        for name, state in models.states.items():
            former, model = self._states.get(name), self._models.get(name)
            columns, weights = len(state.centre), len(state.weights)
            if former and state.number < former.number:
                wrong.append(f'"{name}" is of round {state.number}, older than {former.number}')
            elif former and state.number == former.number and state != former:
                wrong.append(
                    f'"{name}" has two different states of round {state.number}; a server may '
                    "be tracking devices"
                )
            elif model and (columns, weights) != (len(model.columns), model.dimensions):
                wrong.append(
                    f'"{name}" has {columns} columns and {weights} weights, in the bundle '
                    f"{len(model.columns)} and {model.dimensions}"
                )
            else:
                self._states[name] = state
        if wrong:
            raise ModelsRefused(
                f"{'; '.join(wrong)}: refused; serve the newest state of this bundle's models"
            )


def _vector_teller(metric: Metric, number: int, vector: list[float]) -> Teller:
    """Returns the function that reports a vector of length at most 1 by the codes of a round."""
    return lambda coins: codes_of_round(metric, number).randomize(vector, coins)
