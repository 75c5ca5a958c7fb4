"""`hubbub plan central` for numbers: errors in a crowd, of means or of buckets."""

from dataclasses import asdict, replace
from math import sqrt
from typing import Any

from hubbub.authoring.crowds.crowd_codes import planned_vectors
from hubbub.authoring.crowds.crowd_numbers import noisy_mean, planned_number, worst_variance
from hubbub.catalog import CentralPromise
from hubbub.cli.planning.central_rows import Way, floors, in_catalog, largest_local_of, show_ways
from hubbub.cli.terminal.output import say, say_json
from hubbub.errors import BadParameter
from hubbub.mechanisms import build
from hubbub.privacy.crowd import ExactAccountant, crowd_of_promise
from hubbub.privacy.metric_draft import MetricDraft
from hubbub.privacy.planner import plan, row
from hubbub.privacy.shuffled_histogram import central_epsilon
from hubbub.sealing.value_noise import ValueNoise


def plan_numbers(
    promise: CentralPromise, question: MetricDraft, dummies: str, *, as_json: bool
) -> None:
    """Shows crowds that keep the promise at several local epsilons, and alternatives to a crowd.

    `dummies` is, for a mean, "noise" or "auto" for noise dummies; "" for none.

    Raises:
        BadParameter: there are too many buckets for a crowd of this size.
    """
    reports, central = promise.crowd, promise.epsilon
    ways, padded = list[Way](), promise
    for floor in floors(central, promise.max_local_epsilon):
        try:
            padded, way = _crowd(replace(promise, max_local_epsilon=floor), question, dummies)
        except BadParameter:
            if floor == promise.max_local_epsilon:
                raise
            continue  # too low a floor for so many parts
        if not ways or way["epsilon_local"] != ways[-1]["epsilon_local"]:
            ways.append(way)
    [best, *_] = plan(question, central, reports)
    # One person moves a mean by its range over n, one report from one part to another, or as many
    # means as a vector has, by the root of their number together.
    moved = {"mean": 1.0, "ranges": 2.0, "vector": sqrt(question.size)}[question.kind]
    noise = moved * sqrt(2) / central / reports
    ways += [
        _row("alone", best.mechanism, central, central, best.rare),
        _row("trusted curator, Laplace", None, None, central, noise),
    ]
    if as_json:
        document: dict[str, Any] = {
            "reports": reports,
            "question": asdict(question),
            "central": central,
            "delta": promise.delta,
            "honest": promise.honest,
            "rows": ways,
        }
        say_json(document)
    else:
        _show(padded, question, ways)


def _row(
    way: str, mechanism: str | None, local: float | None, central: float, stderr: float
) -> Way:
    return {
        "way": way,
        "mechanism": mechanism,
        "epsilon_local": local,
        "epsilon_central": central,
        "stderr": stderr,
    }


def _crowd(
    promise: CentralPromise, question: MetricDraft, dummies: str
) -> tuple[CentralPromise, Way]:
    """The promise with its dummies, and the row of the best crowd that keeps it."""
    table: dict[str, Any] = {"mechanism": "auto", "low": question.low, "high": question.high}
    if question.kind == "ranges":
        table |= {"mechanism": "wave", "buckets": question.size}
    accountant = ExactAccountant()
    if question.kind == "vector":
        planned = planned_vectors(question.size, {}, promise, accountant)
        table = {"dimensions": question.size, "max_length": question.high}
    else:
        promise = noisy_mean(table, promise, accountant, dummies) if dummies else promise
        planned = planned_number(table, promise, accountant)
    local = planned.epsilon or accountant.local_epsilon(promise, planned.categories)
    parameters = {name: value for name, value in table.items() if name != "mechanism"} | {
        **planned.parameters,
        "epsilon": local,
    }
    crowd = crowd_of_promise(promise, planned.categories, local)
    way = "crowd"
    if promise.noise:
        noise = ValueNoise(promise.noise, int(planned.categories), promise.sum_noise)
        way += f", {noise.each.reach} dummies a value, {noise.expected:,} in all"
        mechanism = build(planned.mechanism, **parameters)
        stderr = sqrt(worst_variance(mechanism, promise)) / promise.crowd
    else:
        stderr = row(question, planned.mechanism, parameters, promise.crowd).rare
    central = central_epsilon(crowd, promise.delta)
    return promise, _row(way, planned.mechanism, local, central, stderr)


def _show(promise: CentralPromise, question: MetricDraft, ways: list[Way]) -> None:
    title, error, of_what = {
        "mean": (" of a mean", "the mean", ", of the range, where it is largest"),
        "ranges": (
            f" of {question.size:,} buckets of a range",
            "a bucket that nobody holds",
            ", of all reports",
        ),
        "vector": (
            f" of the mean of {question.size:,} numbers",
            "each number",
            ", of its range, of people who are all alike",
        ),
    }[question.kind]
    errors = {f"error of {error}": "{stderr:.4%}"}
    show_ways(promise, ways, title=title, errors=errors, of_what=of_what)
    say(in_catalog(promise, largest_local_of(ways)))
