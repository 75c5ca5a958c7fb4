"""`hubbub plan central` for a model: rounds in a crowd, and the number of rounds of a device."""

from dataclasses import replace
from math import floor, sqrt
from typing import Any, Final

from hubbub.analysis.models.descent import noise_of
from hubbub.authoring.crowds.crowd_codes import codes_epsilon
from hubbub.catalog import CentralPromise
from hubbub.cli.terminal.long_work import announced_if_long
from hubbub.cli.terminal.output import listing, say, say_json
from hubbub.errors import BadParameter
from hubbub.mechanisms.gradient import check_size, dimensions_of
from hubbub.mechanisms.vector_codes import VectorCodes, words_for
from hubbub.privacy.crowd import ExactAccountant

# Number of rounds, and of a device's rounds; decision 0219.
_WAYS: Final = ((8, 1), (8, 2), (12, 4), (20, 4), (40, 8))
# Standard deviations: fewer people than that are in a round with a chance below one in a million.
_SURELY: Final = 5.0
_SMALLEST: Final = 10
_LARGEST: Final = 1_000_000  # the largest that a catalog may contain; more people may be in a round


def plan_rounds(
    kind: str,
    features: int | None,
    classes: int | None,
    promise: CentralPromise,
    *,
    as_json: bool,
) -> None:
    """Shows the epsilon of reports in rounds that together keep a central promise.

    The promise's crowd are all people.

    Raises:
        BadParameter: as dimensions_of_plan, or there are too few people for any crowd.
    """
    dimensions = dimensions_of_plan(kind, features, classes)
    with announced_if_long(lambda: "computing what rounds hide; this may take half a minute"):
        rows = [row for way in _WAYS if (row := _row(promise, dimensions, *way)) is not None]
    if not rows:
        raise BadParameter(
            f"--reports {promise.crowd}: so few people cannot keep a central epsilon of "
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
        f"a {kind} model of {promise.crowd:,} people, central epsilon {promise.epsilon:g} at delta "
        f"{promise.delta:g} for all rounds of a person",
        rows,
        {
            "rounds": "{rounds}",
            "rounds_each": "{rounds_each}",
            "crowd": "{crowd:,}",
            "epsilon of a report": "{epsilon:.3f}",
            "of all of them": "{lifetime_epsilon:.3g}",
            "noise": "{noise:.3f}",
        },
    )
    say(
        "the central epsilon holds if the shuffler is honest and releases rounds whole; otherwise "
        "only the epsilon of all reports of a person remains"
    )
    say("crowd: people in each round, except with a chance below one in a million")
    say("noise: that of a round's mean direction; where it is below .1, add rounds, not people")


def dimensions_of_plan(kind: str, features: int | None, classes: int | None) -> int:
    """The number of coordinates of a gradient, for the model in the options.

    Raises:
        BadParameter: features or classes are missing, or too many for gradients.
    """
    if features is None:
        raise BadParameter("--model needs --features, its number of columns; for example 64")
    if kind == "softmax" and classes is None:
        raise BadParameter("softmax needs --classes, its number of classes; for example 5")
    try:
        check_size(features, classes or 0, kind)
    except BadParameter as error:
        classes_option = "" if classes is None else f" --classes {classes}"
        raise BadParameter(
            f"--features {features}{classes_option}: {error} (docs/learn.md)"
        ) from error
    return dimensions_of(features, classes or 0)


def _row(
    promise: CentralPromise, dimensions: int, rounds: int, rounds_each: int
) -> dict[str, Any] | None:
    """One way; None if its rounds have too few people."""
    share = rounds_each / (rounds + 1)
    people = promise.crowd * share
    crowd = min(floor(people - _SURELY * sqrt(people * (1 - share))), _LARGEST)
    if crowd < _SMALLEST:
        return None
    of_round = replace(promise, crowd=crowd, epochs=rounds_each)
    try:
        epsilon = codes_epsilon(of_round, dimensions, ExactAccountant())
    except BadParameter:
        return None
    error = VectorCodes(
        epsilon=epsilon, dimensions=dimensions, words=words_for(epsilon), books=1
    ).squared_error
    return {
        "rounds": rounds,
        "rounds_each": rounds_each,
        "crowd": crowd,
        "epsilon": epsilon,
        "lifetime_epsilon": rounds_each * epsilon,
        "noise": noise_of(promise.crowd, rounds, error, rounds_each),
    }
