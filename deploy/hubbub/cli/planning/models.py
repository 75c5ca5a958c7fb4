"""`hubbub plan --model`: how many people a model needs, by the noise of a round's mean gradient."""

import argparse
import json
from math import ceil
from typing import Any, Final

from hubbub.analysis.models import IN_ROUNDS, noise_of
from hubbub.cli.planning.model_crowds import plan_model_crowd
from hubbub.cli.terminal.output import say, table
from hubbub.errors import BadParameter
from hubbub.mechanisms.gradient import KINDS
from hubbub.mechanisms.gradient_size import check_size, dimensions_of
from hubbub.mechanisms.vector_codes import VectorCodes, words_for
from hubbub.privacy.amplification import amplified

_EPSILONS: Final = (0.5, 1.0, 2.0, 4.0, 8.0)
# Of a round's mean direction, whose length is at most 1: at the one a model is about as good as
# one of central training, at the other it is still good in few rounds; decision 0219.
_FINE: Final = 0.05
_ENOUGH: Final = 0.2
_ROUNDS: Final = 8
_DELTA: Final = 1e-6


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add the options of a model."""
    models = parser.add_argument_group("a model, with --epsilon, and --reports if they are known")
    models.add_argument("--model", choices=KINDS, help="its kind")
    models.add_argument(
        "--features", type=int, metavar="N", help="its columns: a list of values has one for each"
    )
    models.add_argument(
        "--classes", type=int, metavar="K", help="of softmax: how many a label may be of"
    )


def plan_model(arguments: argparse.Namespace) -> int:
    """Show people needed at several epsilons, or at the one asked for.

    Raises:
        BadParameter: no features, more than gradients can be told of, or an epsilon out of range.
    """
    _refuse_wrong(arguments)
    asked = _EPSILONS if arguments.epsilon is None else (arguments.epsilon,)
    numbers = dimensions_of(arguments.features, arguments.classes or 0)
    if arguments.central is not None:
        return plan_model_crowd(arguments, numbers)
    rows = [_row(numbers, epsilon, arguments.reports) for epsilon in asked]
    _show(arguments, rows)
    return 0


def _show(arguments: argparse.Namespace, rows: list[dict[str, Any]]) -> None:
    """What each epsilon asks for, as a table or as JSON."""
    if arguments.format == "json":
        say(
            json.dumps(
                {
                    "model": arguments.model,
                    "features": arguments.features,
                    **({"classes": arguments.classes} if arguments.classes else {}),
                    "rows": rows,
                },
                indent=1,
            )
        )
        return
    given = arguments.reports is not None
    classes = f" and {arguments.classes} classes" if arguments.classes else ""
    table(
        f"a {arguments.model} model of {arguments.features:,} columns{classes}, each person in one "
        "round",
        (
            *("mechanism", "epsilon", "words", "error of one", "a round", f"{_ROUNDS} rounds"),
            *("fine", "shuffled"),
            *(("noise",) if given else ()),
        ),
        [
            (
                VectorCodes.NAME,
                f"{row['epsilon']:g}",
                f"{row['words']:,}",
                f"{row['squared_error']:,.1f}",
                f"{row['people_a_round']:,}",
                f"{row['people_enough']:,}",
                f"{row['people_fine']:,}",
                f"{row['shuffled_epsilon']:.3g}",
                *((f"{row['noise']:.3f}",) if given else ()),
            )
            for row in rows
        ],
    )
    say("error of one: mean squared length by which one person's gradient of length 1 is off")
    say(f"a round: people for a mean gradient with noise {_ENOUGH}; {_ROUNDS} rounds: in all")
    say(f"fine: in all, for noise {_FINE}, where privacy is no longer what limits the model")
    say(
        f"shuffled: epsilon at delta {_DELTA:g} of a round of so many people ({_ROUNDS} rounds), "
        "to who sees it mixed"
    )
    if given:
        say(f"noise: of a round's mean direction with {arguments.reports:,} people in all")
    if given and all(row["noise"] > _ENOUGH for row in rows):
        say(f"that is above {_ENOUGH}: more people, fewer columns or a larger epsilon are needed")


def _refuse_wrong(arguments: argparse.Namespace) -> None:
    """What no plan is made for. Raises BadParameter."""
    if arguments.model is None:
        raise BadParameter("--features and --classes are of --model; as --model logistic")
    if arguments.features is None:
        raise BadParameter("--model needs --features, how many columns it has; for example 64")
    if arguments.features < 1:
        raise BadParameter(f"--features {arguments.features} is below 1")
    if arguments.reports is not None and arguments.reports < 1:
        raise BadParameter(f"--reports {arguments.reports} is below 1")
    if arguments.model == "softmax" and arguments.classes is None:
        raise BadParameter("--model softmax needs --classes, how many a label may be of; as 5")
    try:
        check_size(arguments.features, arguments.classes or 0, arguments.model)
    except BadParameter as error:
        classes = "" if arguments.classes is None else f" --classes {arguments.classes}"
        raise BadParameter(
            f"--features {arguments.features}{classes}: {error} (docs/learn.md)"
        ) from error


def _row(numbers: int, epsilon: float, people: int | None) -> dict[str, Any]:
    """What one epsilon asks for, of so many numbers of a gradient."""
    words = words_for(epsilon)
    codes = VectorCodes(epsilon, numbers, words, 1)
    error = codes.squared_error
    a_round = ceil(error / _ENOUGH**2)
    found: dict[str, Any] = {
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
        found["noise"] = noise_of(people, _ROUNDS, error)
    return found
