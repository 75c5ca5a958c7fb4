"""`mechanism = "auto"`: the mechanism with the least error for a metric, and the runner-up.

The error is exact: a mechanism's variance is linear in the number of reports with a value, so its
mean over all values is the same for all answers. Mechanisms within 5% of the least variance count
as equal; then the shortest payload decides, then the fewest cells.

For the percentiles of a number in `buckets` it is that of shares below edges (`rank_errors`).
Sets, parts, vectors and any string have only one mechanism.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import sqrt
from typing import Any, Final

from hubbub.authoring.rank_errors import RANK_VARIANCES, USUAL_PERCENTILES, rank_error
from hubbub.catalog.crowds.central_conflicts import PROMISE
from hubbub.catalog.mechanism_choice import AUTO, UNKNOWN, Choice, Option
from hubbub.catalog.metric import DOMAINS, Metric
from hubbub.catalog.values.value_kind import Complain
from hubbub.catalog.values.value_kind_registry import kind_named
from hubbub.errors import BadParameter
from hubbub.fields.field import REQUIRED, CatalogField, Entry, fields_of, setting, settings
from hubbub.fields.kinds import in_interval, integer, number
from hubbub.fields.rules import is_whole
from hubbub.mechanisms import AnyMechanism, build, described_parameters, names_of, parameters
from hubbub.mechanisms.hcms import HadamardSketch
from hubbub.mechanisms.number_range import MAX_FINE_BUCKETS, PLACES
from hubbub.mechanisms.pairs_of_parts import PairedParts
from hubbub.mechanisms.privset import PrivSet
from hubbub.mechanisms.probability import MAX_EPSILON, MIN_EPSILON
from hubbub.mechanisms.tree import PrefixTree
from hubbub.mechanisms.vector_codes import VectorCodes

MAX_EXPECTED: Final = 10**13
"""More reports than there are people, a thousand times."""


@settings
class Wishes:
    """Fields of a metric with mechanism "auto", besides epsilon and values; never instantiated."""

    reports: int = setting(
        integer(1, MAX_EXPECTED), "Expected number of reports in an epoch.", "100_000"
    )
    max_payload_bytes: int = setting(
        integer(1, MAX_EXPECTED), "Longest permitted payload.", "64", default=128
    )
    max_cells: int = setting(
        integer(1, MAX_EXPECTED), "Largest permitted number of totals.", "65536", default=1 << 22
    )
    permanent_epsilon: float | None = setting(
        number("a number of nats", MIN_EPSILON, MAX_EPSILON),
        "With listed values that are reported repeatedly: largest privacy loss of all "
        "reports of one unchanged value together, above `epsilon`.",
        "3.0",
        default=None,
    )
    low: float | None = setting(
        number(), "With a number: the smallest permitted.", "0", default=None
    )
    high: float | None = setting(
        number(), "With a number: the largest permitted, above `low`.", "24", default=None
    )
    buckets: int | None = setting(
        integer(2, MAX_FINE_BUCKETS),
        "With a number whose percentiles matter, not its mean: number of buckets.",
        "64",
        default=None,
    )


_NUMBERS: Final = ("reports", "max_payload_bytes", "max_cells")
EQUAL: Final = 1.05
"""Variances within this factor of the least count as alike: then size decides."""


def own_fields(mechanism: str) -> tuple[CatalogField, ...]:
    """Fields of a metric that only this mechanism, or AUTO, has."""
    if mechanism == AUTO:
        return fields_of(Wishes)
    needed = parameters(mechanism)
    return tuple(
        CatalogField(
            name=name,
            entry=Entry(
                kind=in_interval(says.interval, is_integer=says.whole),
                meaning=says.meaning,
                example="" if says.example is None else str(says.example),
            ),
            default=REQUIRED if needed[name] else says.default,
        )
        for name, says in described_parameters(mechanism).items()
    )


def resolve(
    settings: Mapping[str, Any], categories: int | None, options: Mapping[str, Any]
) -> tuple[str, Mapping[str, Any], Choice | None]:
    """Mechanism and parameters, as written or, for AUTO, as chosen by a metric's settings."""
    mechanism = settings["mechanism"]
    if mechanism != AUTO:
        return mechanism, options, None
    choice = choose(settings["epsilon"], categories, options, settings.get("percentiles", ()))
    return choice.best.mechanism, choice.best.parameters, choice


def choose(
    epsilon: float,
    categories: int | None,
    statements: Mapping[str, Any],
    percentiles: Sequence[float] = (),
) -> Choice:
    """The best mechanism for `categories` listed values, or for a number if None.

    `statements` are the written fields of Wishes: with `buckets` percentiles of the number matter,
    not its mean, and those of `percentiles` most. With `permanent_epsilon` values are reported
    repeatedly, and only mechanisms with a permanent lie are considered. Raises BadParameter for a
    field out of range, or if no mechanism is within the limits; of percentiles `with_wishes`
    complains of the field.
    """
    reports, payload, cells = (_whole_number(statements, name) for name in _NUMBERS)
    if categories is None and "buckets" not in statements:
        names, needed = names_of("mean", "epsilon", "low", "high"), {"low", "high"}
    elif categories is None:
        names, needed = tuple(RANK_VARIANCES), {"low", "high", "buckets"}
    elif "permanent_epsilon" in statements:
        names = names_of("listed", "epsilon", "permanent_epsilon", "categories")
        needed = {"permanent_epsilon"}
    else:
        names, needed = names_of("listed", "epsilon", "categories"), set[str]()
    # The written numbers that a mechanism is built from must be those that are needed.
    written_names = ("permanent_epsilon", "low", "high", "buckets")
    given_parameters = {name: statements[name] for name in written_names if name in statements}
    if given_parameters.keys() != needed:
        wrong = sorted(given_parameters.keys() ^ needed)
        raise BadParameter(
            f"{wrong[0]}: with auto, a number needs low and high, or edges alone; percentiles also "
            f"need buckets; values take only permanent_epsilon; correct {', '.join(wrong)}"
        )
    arguments = {"epsilon": epsilon, **given_parameters} | (
        {} if categories is None else {"categories": categories}
    )
    same = "grr" if categories == 2 else "rr"  # noqa: PLR2004 for two values they are one
    weighed = percentiles or USUAL_PERCENTILES
    candidates = [
        option_of(mechanism, given_parameters, _stderr(mechanism, arguments, reports, weighed))
        for mechanism in (build(name, **arguments) for name in names if name != same)
    ]
    options = [o for o in candidates if o.payload_bytes <= payload and o.cells <= cells]
    if "buckets" in needed:
        options = options or candidates
    if not options:
        limit = next((f"{name}: " for name in _NUMBERS[1:] if name in statements), "")
        raise BadParameter(
            f"{limit}no mechanism has payloads within {payload} bytes and totals within {cells} "
            "cells; raise max_payload_bytes or max_cells"
        )
    least = min(option.stderr for option in options)
    equal = [option for option in options if option.stderr**2 <= EQUAL * least**2]
    best = min(equal, key=lambda option: (option.payload_bytes, option.cells, option.stderr))
    others = [option for option in options if option is not best]
    return Choice(reports, best, min(others, key=lambda option: option.stderr, default=None))


def option_of(mechanism: AnyMechanism, parameters: Mapping[str, float], stderr: float) -> Option:
    """A mechanism that `auto` may choose, with its sizes."""
    return Option(
        mechanism=mechanism.NAME,
        parameters=dict(parameters),
        stderr=stderr,
        payload_bytes=mechanism.layout.payload_bytes,
        cells=mechanism.layout.size,
    )


def _stderr(
    mechanism: AnyMechanism,
    arguments: Mapping[str, Any],
    reports: int,
    percentiles: Sequence[float],
) -> float:
    if mechanism.NAME in RANK_VARIANCES:
        return reports * rank_error(mechanism, reports, percentiles)
    if mechanism.VALUES == "numbers":
        worst = max(mechanism.variance(place * reports, reports) for place in PLACES)
        width: float = arguments["high"] - arguments["low"]
        return sqrt(worst) / reports * width
    return sqrt(mechanism.variance(reports / arguments["categories"], reports))


def _whole_number(options: Mapping[str, Any], name: str) -> int:
    [wish] = (field for field in fields_of(Wishes) if field.name == name)
    value: Any = options.get(name, None if wish.required else wish.default)
    if problem := wish.problem(value):
        raise BadParameter(f"{name} {str(value)[:20]} {problem}")
    return int(value)


SOLE: Final = (PrivSet, PairedParts, VectorCodes, HadamardSketch, PrefixTree)
"""What `auto` is where one mechanism answers; its own numbers may be written beside `auto`."""

# The sizes that the planner assumes: collisions then add little to a rare string's error.
_SKETCH: Final = {"hashes": 1024, "width": 1024}
# Fields that `auto` accepts for all of them, without effect on the choice.
_WISHES: Final = frozenset({"reports", "max_payload_bytes", "max_cells"})


def with_sole_choice(table: dict[str, Any]) -> dict[str, Any]:
    """The table with the only possible mechanism, without the wishes that with_wishes reads.

    A sketch counts strings that are listed as candidates; a prefix tree discovers others. In a
    crowd, `auto` chooses by the crowd's account.
    """
    if table.get("mechanism") != AUTO:
        return table
    without_wishes = {name: value for name, value in table.items() if name not in _WISHES}
    if chosen := kind_named(table.get("kind")).sole_choice(table):
        return {name: value for name, value in chosen.items() if name not in _WISHES}
    if "parts" in table:
        return without_wishes | {"mechanism": PairedParts.NAME}
    if table.get("domain") != DOMAINS["strings"] or any(name in table for name in PROMISE):
        return table
    if "candidates" in table:
        return _SKETCH | without_wishes | {"mechanism": HadamardSketch.NAME}
    return without_wishes | {"mechanism": PrefixTree.NAME}


def with_wishes(table: Mapping[str, Any], metric: Metric, complain: Complain) -> Metric:
    """The metric with the choice that its only mechanism is, if its reports are written.

    Complains of each invalid wish, and of limits that the mechanism exceeds; `table` is as written.
    """
    layout = metric.randomizer.layout
    sizes = {"max_payload_bytes": layout.payload_bytes, "max_cells": layout.size}
    fewer = "lower buckets" if "buckets" in table else "list fewer values"
    for field in own_fields(AUTO):
        if field.name not in _WISHES & table.keys():
            continue
        wish, size = table[field.name], sizes.get(field.name, 0)
        if problem := field.problem(wish):
            complain(field.name, problem)
        elif wish < size:
            complain(field.name, f"{metric.mechanism} needs {size:,}; raise it, or {fewer}")
    reports: Any = table.get("reports")
    if metric.choice or metric.central or not (is_whole(reports) and reports >= 1):
        return metric
    best = option_of(metric.randomizer, metric.parameters, UNKNOWN)
    return replace(metric, choice=Choice(reports, best, None))
