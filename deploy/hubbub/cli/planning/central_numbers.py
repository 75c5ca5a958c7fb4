"""`hubbub plan central` for numbers: errors in a crowd, of means or of the parts of a range."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import ceil, sqrt
from typing import Any, Final

from hubbub.authoring.crowds.crowd_codes import planned_vectors
from hubbub.authoring.crowds.crowd_numbers import noisy_mean, planned_number, worst_variance
from hubbub.catalog import CentralPromise
from hubbub.catalog.crowds.central_fields import NOISE, USUAL_MAX_LOCAL
from hubbub.cli.terminal.output import listing, say, say_json
from hubbub.errors import BadParameter
from hubbub.errors.grammar import several
from hubbub.mechanisms import build
from hubbub.privacy.crowd import ExactAccountant
from hubbub.privacy.metric_draft import MetricDraft
from hubbub.privacy.planner import plan, row
from hubbub.privacy.shuffled_epoch import ShuffledEpoch
from hubbub.privacy.shuffled_histogram import central_epsilon

_DESCRIPTIONS: Final = {
    "mean": ("the mean", "of the range, where it is largest"),
    "ranges": ("a part that nobody holds", "of all reports"),
    "vector": ("each number", "of its range, of people who are all alike"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """One way to be private. `stderr` is a share of what _SAID names."""

    way: str
    mechanism: str | None
    epsilon_local: float | None
    epsilon_central: float
    stderr: float


def plan_numbers(
    promise: CentralPromise,
    question: MetricDraft,
    floors: Sequence[float],
    dummies: str,
    *,
    as_json: bool,
) -> None:
    """Shows crowds that keep the promise at several local epsilons, and alternatives to a crowd.

    `floors` are the local epsilons to try, ascending; the last is the maximum. `dummies` is, for a
    mean, "noise" or "auto" for noise dummies; "" for none.

    Raises:
        BadParameter: there are too many parts for a crowd of this size.
    """
    reports, central = promise.crowd, promise.epsilon
    ways: list[_Way] = []
    for floor in floors:
        try:
            way = _crowd(replace(promise, max_local_epsilon=floor), question, dummies)
        except BadParameter:
            if floor == floors[-1]:
                raise
            continue  # too low a floor for so many parts
        if not ways or way.epsilon_local != ways[-1].epsilon_local:
            ways.append(way)
    [best, *_] = plan(question, central, reports)
    # One person moves a mean by its range over n, one report from one part to another, or as many
    # means as a vector has, by the root of their number together.
    moved = {"mean": 1.0, "ranges": 2.0, "vector": sqrt(question.size)}[question.kind]
    noise = moved * sqrt(2) / central / reports
    ways += [
        _Way(
            way="alone",
            mechanism=best.mechanism,
            epsilon_local=central,
            epsilon_central=central,
            stderr=best.rare,
        ),
        _Way(
            way="trusted curator, Laplace",
            mechanism=None,
            epsilon_local=None,
            epsilon_central=central,
            stderr=noise,
        ),
    ]
    if as_json:
        document: dict[str, Any] = {
            "reports": reports,
            "question": asdict(question),
            "central": central,
            "delta": promise.delta,
            "honest": promise.honest,
            "rows": [asdict(way) for way in ways],
        }
        say_json(document)
    else:
        _show(promise, question, ways)


def _crowd(promise: CentralPromise, question: MetricDraft, dummies: str) -> _Way:
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
    crowd = ShuffledEpoch(
        reports=promise.crowd,
        categories=planned.categories,
        epsilon_local=local,
        honest=promise.honest,
        noise_dummies=promise.noise,
    )
    if promise.noise:
        mechanism = build(planned.mechanism, **parameters)
        stderr = sqrt(worst_variance(mechanism, promise)) / promise.crowd
    else:
        stderr = row(question, planned.mechanism, parameters, promise.crowd).rare
    return _Way(
        way=f"crowd, {promise.dummies_shift} dummies a value" if promise.noise else "crowd",
        mechanism=planned.mechanism,
        epsilon_local=local,
        epsilon_central=central_epsilon(crowd, promise.delta),
        stderr=stderr,
    )


def _show(promise: CentralPromise, question: MetricDraft, ways: Sequence[_Way]) -> None:
    what, of_what = _DESCRIPTIONS[question.kind]
    number = {
        "mean": "a mean",
        "ranges": f"{question.size:,} parts of a range",
        "vector": f"the mean of {question.size:,} numbers",
    }[question.kind]
    listing(
        f"central epsilon {promise.epsilon:g} at delta {promise.delta:g}: "
        f"{several(promise.crowd, 'report')} of {number}",
        ways,
        {
            "way": "{way}",
            "mechanism": lambda way: way.mechanism or "",
            "local epsilon": local_epsilon_text,
            "central epsilon": "{epsilon_central:.3f}",
            f"error of {what}": "{stderr:.4%}",
        },
        text_columns=2,
    )
    say(f"errors are standard errors, {of_what}; {what_is_trusted(promise)}")
    crowds = [way for way in ways if way.way.startswith("crowd")]
    noise = f', dummies = "{NOISE}"' if crowds[-1].way != "crowd" else ""
    say(in_catalog(promise, max(way.epsilon_local or 0 for way in crowds)) + noise)


def local_epsilon_text(way: Any) -> str:
    """The local epsilon of a report as text; "none" for a curator, who sees all."""
    return "none" if way.epsilon_local is None else f"{way.epsilon_local:.3f}"


def what_is_trusted(promise: CentralPromise) -> str:
    """A sentence on the assumptions behind a crowd's two epsilons."""
    return (
        "a crowd leaves whole, or not at all if it has fewer reports, so plan with fewer than you "
        f"expect; {promise.honest:.0%} of it is honest; the local epsilon holds even if all "
        "servers collude"
    )


def in_catalog(promise: CentralPromise, epsilon_local: float) -> str:
    """The catalog's fields for this promise, with a larger cap if its local epsilon needs one."""
    cap = f", max_local_epsilon = {ceil(epsilon_local)}" if epsilon_local > USUAL_MAX_LOCAL else ""
    return f"in metrics.toml: central_epsilon = {promise.epsilon:g}, crowd = {promise.crowd}{cap}"
