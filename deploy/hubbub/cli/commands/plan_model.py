"""`hubbub plan model`: how many people a model needs, by the noise of a round's mean gradient."""

from math import ceil
from typing import Any, Final, Literal

from hubbub.analysis.models.descent import IN_ROUNDS, noise_of
from hubbub.cli.planning.model_crowds import dimensions_of_plan
from hubbub.cli.terminal.output import listing, say, say_json
from hubbub.fields.rules import Interval
from hubbub.mechanisms.gradient import KINDS
from hubbub.mechanisms.vector_codes import VectorCodes, words_for
from hubbub.privacy.amplification import amplified
from hubbub.programs.command_line import command
from hubbub.programs.options import argument, option, options

_EPSILONS: Final = (0.5, 1.0, 2.0, 4.0, 8.0)
# Noise of a round's mean direction, whose length is at most 1: below the first limit a model is
# about as good as central training; below the second it is still good in few rounds; decision 0219.
_FINE: Final = 0.05
_ENOUGH: Final = 0.2
_ROUNDS: Final = 8
_DELTA: Final = 1e-6


@options
class ModelOptions:
    kind: str = argument("kind of the model", choices=KINDS)
    features: int = option(
        "number of columns; a list of values has a column for each value",
        metavar="N",
        within=Interval(1),
    )
    classes: int | None = option("number of classes of the label, for softmax", metavar="K")
    epsilon: float | None = option("privacy loss of one report, nats")
    reports: int | None = option(
        "number of people, if it is known", metavar="N", within=Interval(1)
    )
    format: Literal["table", "json"] = option("format of the output (%(default)s)", default="table")


@command("plan model", text="show how many people a model needs")
def _model(options: ModelOptions) -> None:
    numbers = dimensions_of_plan(options.kind, options.features, options.classes)
    epsilons = _EPSILONS if options.epsilon is None else (options.epsilon,)
    _show(options, [_row(numbers, epsilon, options.reports) for epsilon in epsilons])


def _show(options: ModelOptions, rows: list[dict[str, Any]]) -> None:
    """Shows what each epsilon needs, as a table or as JSON."""
    if options.format == "json":
        say_json(
            {
                "model": options.kind,
                "features": options.features,
                **({"classes": options.classes} if options.classes else {}),
                "rows": rows,
            }
        )
        return
    with_noise = options.reports is not None
    classes = f" and {options.classes} classes" if options.classes else ""
    listing(
        f"a {options.kind} model of {options.features:,} columns{classes}, each person in one "
        "round",
        rows,
        {
            "mechanism": "{mechanism}",
            "epsilon": "{epsilon:g}",
            "words": "{words:,}",
            "error of one": "{squared_error:,.1f}",
            "a round": "{people_a_round:,}",
            f"{_ROUNDS} rounds": "{people_enough:,}",
            "fine": "{people_fine:,}",
            "shuffled": "{shuffled_epsilon:.3g}",
            **({"noise": "{noise:.3f}"} if with_noise else {}),
        },
    )
    say("error of one: mean squared error of one person's gradient of length 1")
    say(f"a round: people for a mean gradient with noise {_ENOUGH}; {_ROUNDS} rounds: in all")
    say(f"fine: people in all for noise {_FINE}, where privacy no longer limits the model")
    say(
        f"shuffled: epsilon at delta {_DELTA:g} of a shuffled round of that size ({_ROUNDS} rounds)"
    )
    if with_noise:
        say(f"noise: that of a round's mean direction with {options.reports:,} people in all")
    if with_noise and all(row["noise"] > _ENOUGH for row in rows):
        say(f"that is above {_ENOUGH}: more people, fewer columns or a larger epsilon are needed")


def _row(numbers: int, epsilon: float, people: int | None) -> dict[str, Any]:
    """What one epsilon needs, for this number of coordinates of a gradient."""
    words = words_for(epsilon)
    codes = VectorCodes(epsilon=epsilon, dimensions=numbers, words=words, books=1)
    error = codes.squared_error
    a_round = ceil(error / _ENOUGH**2)
    result: dict[str, Any] = {
        "mechanism": VectorCodes.NAME,
        "epsilon": epsilon,
        "words": words,
        "squared_error": error,
        "rounds": _ROUNDS,
        "people_a_round": a_round,
        "people_enough": ceil(a_round * _ROUNDS / IN_ROUNDS),
        "people_fine": ceil(error / _FINE**2 * _ROUNDS / IN_ROUNDS),
        "shuffled_epsilon": amplified(
            epsilon, a_round, _DELTA, float(codes.total_variation())
        ).epsilon,
        "delta": _DELTA,
    }
    if people is not None:
        result["noise"] = noise_of(people, _ROUNDS, error)
    return result
