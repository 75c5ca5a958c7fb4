"""`hubbub plan model` and `plan central --model`: how many people a model needs, and its rounds."""

from dataclasses import replace
from math import ceil, floor, sqrt
from typing import Any, Final, Literal

from hubbub.analysis.models.descent import IN_ROUNDS, noise_of
from hubbub.authoring.crowds.crowd_vector_epsilon import codes_epsilon
from hubbub.catalog import Crowd
from hubbub.cli.terminal.output import announced_if_long, listing, say, say_json
from hubbub.errors import BadParameter
from hubbub.errors.message_words import at_most
from hubbub.fields.rules import Interval
from hubbub.mechanisms.gradient import KINDS, check_size, dimensions_of
from hubbub.mechanisms.probability import MAX_EPSILON, MIN_EPSILON
from hubbub.mechanisms.vector_codes import VectorCodes, words_for
from hubbub.privacy.amplification import amplified
from hubbub.privacy.exact_accountant import ExactAccountant
from hubbub.programs.command_line import command
from hubbub.programs.option_parsing import argument, option, options

_EPSILONS: Final = (0.5, 1.0, 2.0, 4.0, 8.0)
# Noise of a round's mean direction, whose length is at most 1: below the first limit a model is
# about as good as central training; below the second it is still good in few rounds; decision 0219.
_FINE: Final = 0.05
_ENOUGH: Final = 0.2
_ROUNDS: Final = 8
_DELTA: Final = 1e-6
# Number of rounds, and of a device's rounds; decision 0219.
_WAYS: Final = ((8, 1), (8, 2), (12, 4), (20, 4), (40, 8))
# Standard deviations: fewer people than that are in a round with a chance below one in a million.
_SURELY: Final = 5.0
_SMALLEST: Final = 10
_LARGEST: Final = 1_000_000  # the largest that a catalog may contain; more people may be in a round


@options
class ModelOptions:
    kind: str = argument("kind of the model", choices=KINDS)
    features: int = option(
        "number of columns; a list of values has a column for each value",
        metavar="N",
        within=Interval(1),
    )
    classes: int | None = option("number of classes of the label, for softmax", metavar="K")
    epsilon: float | None = option(
        "privacy loss of one report, nats", within=Interval(MIN_EPSILON, MAX_EPSILON)
    )
    reports: int | None = option(
        "number of people, if it is known", metavar="N", within=Interval(1)
    )
    format: Literal["table", "json"] = option("format of the output (%(default)s)", default="table")


@command("plan model", text="show how many people a model needs")
def _model(options: ModelOptions) -> None:
    dimensions = dimensions_of_plan(options.kind, options.features, options.classes)
    epsilons = _EPSILONS if options.epsilon is None else (options.epsilon,)
    rows = [_row(dimensions, epsilon, options.reports) for epsilon in epsilons]
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
            "shuffled": lambda row: at_most(row["shuffled_epsilon"], ".3g"),
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
    shuffled = amplified(epsilon, a_round, _DELTA, float(codes.total_variation()))
    result: dict[str, Any] = {
        "mechanism": VectorCodes.NAME,
        "epsilon": epsilon,
        "words": words,
        "squared_error": error,
        "rounds": _ROUNDS,
        "people_a_round": a_round,
        "people_enough": ceil(a_round * _ROUNDS / IN_ROUNDS),
        "people_fine": ceil(error / _FINE**2 * _ROUNDS / IN_ROUNDS),
        "shuffled_epsilon": shuffled.epsilon,
        "delta": _DELTA,
    }
    if people is not None:
        result["noise"] = noise_of(people, _ROUNDS, error)
    return result


def plan_rounds(
    kind: str,
    features: int | None,
    classes: int | None,
    promise: Crowd,
    *,
    as_json: bool,
) -> None:
    """Shows the epsilon of reports in rounds that together keep a central promise.

    The promise's crowd are all people.

    Raises BadParameter as dimensions_of_plan, or if there are too few people for any crowd.
    """
    dimensions = dimensions_of_plan(kind, features, classes)
    with announced_if_long(lambda: "computing what rounds hide; this may take half a minute"):
        rows = [row for way in _WAYS if (row := _in_crowd(promise, dimensions, *way)) is not None]
    if not rows:
        raise BadParameter(
            f"--reports {promise.reports}: so few people cannot keep a central epsilon of "
            f"{promise.epsilon:g}; gather more, or raise --epsilon"
        )
    if as_json:
        say_json(
            {
                "model": kind,
                "features": features,
                "central_epsilon": promise.epsilon,
                "delta": promise.delta,
                "honest": promise.honest,
                "rows": rows,
            }
        )
        return
    listing(
        f"a {kind} model of {promise.reports:,} people, central epsilon {promise.epsilon:g} at "
        f"delta {promise.delta:g} for all rounds of a person",
        rows,
        {
            "rounds": "{rounds}",
            "rounds_each": "{rounds_each}",
            "crowd": "{crowd:,}",
            "epsilon of a report": lambda row: at_most(row["epsilon"], ".3f"),
            "of all of them": lambda row: at_most(row["lifetime_epsilon"], ".3g"),
            "noise": "{noise:.3f}",
        },
    )
    say(
        "the central epsilon holds if the shuffler is honest and releases rounds whole; otherwise "
        "only the epsilon of all reports of a person remains"
    )
    say("crowd: fewer people are in a round with a chance below one in a million")
    say("noise: that of a round's mean direction; where it is below .1, add rounds, not people")


def dimensions_of_plan(kind: str, features: int | None, classes: int | None) -> int:
    """The number of coordinates of a gradient, for the model in the options.

    Raises BadParameter if features or classes are missing, or too many for gradients.
    """
    if features is None:
        raise BadParameter("--model needs --features, its number of columns; for example 64")
    if kind == "softmax" and classes is None:
        raise BadParameter("softmax needs --classes, its number of classes; for example 5")
    try:
        check_size(features, classes or 0, kind)
    except BadParameter as error:
        more = "" if classes is None else f" --classes {classes}"
        raise BadParameter(f"--features {features}{more}: {error} (docs/learn.md)") from error
    return dimensions_of(features, classes or 0)


def _in_crowd(
    promise: Crowd, dimensions: int, rounds: int, rounds_each: int
) -> dict[str, Any] | None:
    """One way; None if its rounds have too few people."""
    share = rounds_each / (rounds + 1)
    people = promise.reports * share
    crowd = min(floor(people - _SURELY * sqrt(people * (1 - share))), _LARGEST)
    if crowd < _SMALLEST:
        return None
    of_round = replace(promise, reports=crowd, epochs=rounds_each)
    try:
        epsilon = codes_epsilon(of_round, dimensions, ExactAccountant())
    except BadParameter:
        return None
    words = words_for(epsilon)
    codes = VectorCodes(epsilon=epsilon, dimensions=dimensions, words=words, books=1)
    return {
        "rounds": rounds,
        "rounds_each": rounds_each,
        "crowd": crowd,
        "epsilon": epsilon,
        "lifetime_epsilon": rounds_each * epsilon,
        "noise": noise_of(promise.reports, rounds, codes.squared_error, rounds_each),
    }
