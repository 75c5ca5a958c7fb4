"""`hubbub plan central`: crowds that keep a promise, beside reports alone and a trusted curator."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from math import ceil, prod, sqrt
from typing import Any, Final

import numpy as np

from hubbub.analysis.families import family_for
from hubbub.analysis.strings.tree_search import found_from
from hubbub.authoring.crowds.crowd_numbers import noisy_mean, planned_number, worst_variance
from hubbub.authoring.crowds.crowd_strings import planned_strings, string_errors
from hubbub.authoring.crowds.crowd_table import NO_DUMMIES
from hubbub.authoring.crowds.crowd_trees_and_parts import (
    cell_variance,
    noisy_parts,
    planned_geometry,
)
from hubbub.authoring.crowds.crowd_vector_codes import planned_vectors
from hubbub.catalog import CentralPromise, Metric
from hubbub.catalog.auto_choice import AUTO
from hubbub.catalog.crowds.central import CROWD_TREE
from hubbub.catalog.crowds.central_fields import CROWD_PARTS, NOISE, USUAL_MAX_LOCAL
from hubbub.catalog.crowds.noise_dummies import can_seal
from hubbub.cli.planning.plan_table import planned_tree, tree_fields
from hubbub.cli.terminal.output import explain, listing, say, say_json
from hubbub.errors import BadParameter
from hubbub.errors.grammar import several
from hubbub.fields.field import fields_of
from hubbub.mechanisms import build
from hubbub.mechanisms.even_noise import even_lies
from hubbub.mechanisms.parts import tables_of
from hubbub.mechanisms.tree import PrefixTree
from hubbub.privacy.crowd import ExactAccountant, crowd_of_promise, what_decides
from hubbub.privacy.metric_draft import MetricDraft
from hubbub.privacy.planner import plan, row
from hubbub.privacy.shuffled_epoch import ShuffledEpoch
from hubbub.privacy.shuffled_histogram import central_epsilon
from hubbub.sealing.value_noise import ValueNoise

Way = dict[str, Any]
"""One way to be private: `way`, `epsilon_local` (None for a curator), `epsilon_central`, errors."""
Errors = tuple[float, float]
"""Standard errors, in reports, of a rare value and of one that a tenth hold."""

_FIELDS: Final = {field.name: field for field in fields_of(Metric)}
_CURATOR: Final = "trusted curator, Laplace"
# Local epsilons that are shown below the largest one.
_FLOORS: Final = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 12.0)
# Of reports of as many parts as the table, of all parts with noise dummies, and of a metric of
# listed cells for each table of two.
_ERRORS: Final = (
    *("alone_rare", "alone_tenth", "whole_rare", "whole_tenth"),
    *("listed_rare", "listed_tenth"),
)


def plan_central(
    promise: CentralPromise, question: MetricDraft, dummies: int | str, *, as_json: bool
) -> None:
    """Shows crowds that keep the promise at several local epsilons, and alternatives to a crowd.

    `dummies` are as in the catalog: a number, or a word for how they are chosen.

    Raises:
        BadParameter: there are too many buckets for a crowd of this size.
    """
    counts = question.kind in _COUNTS
    if counts:
        promise = _padded(promise, dummies, question)
    padded, ways = _QUESTIONS[question.kind].ways(promise, question, str(dummies or ""))
    if not as_json:
        _show(padded, question, ways)
        return
    document: dict[str, Any] = {
        "reports": promise.crowd,
        **({question.kind: question.size} if counts else {"question": asdict(question)}),
        "central": promise.epsilon,
        "delta": promise.delta,
        "honest": promise.honest,
        **({name: getattr(promise, name) for name in NO_DUMMIES} if counts else {}),
        "rows": ways,
    }
    if question.kind == "parts":
        document["tables"] = _errors_of_tables(promise, question.parts)
    if question.kind == "strings":
        tree, share = _found_unlisted(promise)
        document["tree"] = {"epsilon_local": tree.epsilon, "found_from": share}
    say_json(document)


def _padded(promise: CentralPromise, dummies: int | str, question: MetricDraft) -> CentralPromise:
    """The promise of counts with this number of shuffler's dummies, or the worthwhile number."""
    if isinstance(dummies, int):
        return replace(promise, dummies=dummies)
    if question.kind == "parts":
        padded = noisy_parts(question.parts, {}, promise, ExactAccountant(), dummies)
        reason = "a larger --max-local may change that"
    else:
        padded = ExactAccountant().padded(promise, question.size, dummies)
        reason = "errors fall by 2.5% at most"
    if padded == promise:
        explain(f"no number of dummies is worth it: {reason}")
    return padded


def _floors(central: float, most: float, apart: float = 0.0) -> list[float]:
    """Local epsilons to show, ascending up to `most`; the others are `apart` below it."""
    return [*(floor for floor in _FLOORS if central < floor < most - apart), most]


def _way(name: str, local: float | None, central: float, errors: Errors) -> Way:
    return {
        "way": name,
        "epsilon_local": local,
        "epsilon_central": central,
        "stderr_rare": errors[0],
        "stderr_tenth": errors[1],
    }


def _crowd_way(name: str, crowd: ShuffledEpoch, promise: CentralPromise, errors: Errors) -> Way:
    return _way(name, crowd.epsilon_local, central_epsilon(crowd, promise.delta), errors)


def _other_ways(promise: CentralPromise, alone: str, errors: Errors) -> list[Way]:
    """Reports that keep the promise by themselves, with these errors; and a curator of counts."""
    central = promise.epsilon
    stderr = 2 * sqrt(2) / central  # one person moves one report from one count to another
    return [
        _way(f"alone, {alone}", central, central, errors),
        _way(_CURATOR, None, central, (stderr, stderr)),
    ]


def _of_values(
    promise: CentralPromise, question: MetricDraft, _dummies: str
) -> tuple[CentralPromise, list[Way]]:
    reports, central, ways = promise.crowd, promise.epsilon, []
    most = ExactAccountant().largest(promise, question.size)
    for local in _floors(central, most, apart=0.25):
        crowd = crowd_of_promise(promise, question.size, local)
        ways.append(_crowd_way("crowd", crowd, promise, _errors(crowd)))
    [best, *_] = plan(question, central, reports)
    alone = build(best.mechanism, **best.parameters)
    rare, tenth = (sqrt(alone.variance(share * reports, reports)) for share in (0.0, 0.1))
    return promise, [*ways, *_other_ways(promise, best.mechanism, (rare, tenth))]


def _errors(crowd: ShuffledEpoch) -> Errors:
    return crowd.stderr(0.0), crowd.stderr(0.1)


def _of_strings(
    promise: CentralPromise, question: MetricDraft, _dummies: str
) -> tuple[CentralPromise, list[Way]]:
    """Ways for strings, with the best number of hash buckets at each floor."""
    reports, central, ways = promise.crowd, promise.epsilon, list[Way]()
    accountant = ExactAccountant()
    for floor in _floors(central, promise.max_local_epsilon, apart=0.25):
        floored = replace(promise, max_local_epsilon=floor)
        planned = planned_strings({"mechanism": AUTO}, floored, accountant)
        width, hashes = int(planned.categories), planned.groups
        local = accountant.local_epsilon(floored, width, hashes)
        if not ways or local != ways[-1]["epsilon_local"]:
            crowd = crowd_of_promise(floored, width, local, hashes)
            errors = string_errors(width, hashes, local, reports)
            ways.append(_crowd_way(f"crowd, {hashes} x {width:,} buckets", crowd, promise, errors))
    [best, *_] = plan(question, central, reports)
    alone = build(best.mechanism, **best.parameters)
    shares = np.array([0.1, *[0.9 / question.size] * question.size])
    expected = family_for(alone).expected(alone, [*question.values(), "one more"], shares, reports)
    errors = reports * float(expected.absent[0]), reports * float(expected.stderrs[0])
    return promise, [*ways, *_other_ways(promise, best.mechanism, errors)]


def _of_parts(
    promise: CentralPromise, question: MetricDraft, _dummies: str
) -> tuple[CentralPromise, list[Way]]:
    """Crowds with 2, 3 or all parts a report, and alone with 2; errors are of the first table."""
    ways = []
    for number, (ways_promise, mechanism) in _crowd_mechanisms(promise, question.parts).items():
        lies = even_lies(mechanism, mechanism.privacy_loss())
        crowd = crowd_of_promise(ways_promise, lies.categories, lies.epsilon, lies.groups)
        if ways_promise.noise:
            name, errors = f"crowd, all {number} parts", _errors(crowd)
        else:
            name, errors = f"crowd, tables of {number}", _cell_errors(mechanism, promise.crowd)
        ways.append(_crowd_way(name, crowd, promise, errors))
    alone = build(CROWD_PARTS, epsilon=promise.epsilon, sizes=question.parts)
    errors = _cell_errors(alone, promise.crowd)
    return promise, [*ways, *_other_ways(promise, "tables of 2", errors)]


@lru_cache(maxsize=1)
def _crowd_mechanisms(
    promise: CentralPromise, sizes: tuple[int, ...]
) -> Mapping[int, tuple[CentralPromise, Any]]:
    """By number of parts together, the promise and what keeps it; only all parts have dummies."""
    plain = replace(promise, **NO_DUMMIES)
    promises = dict.fromkeys(range(2, min(len(sizes), 3) + 1), plain)
    if promise.noise:
        promises[len(sizes)] = promise
    mechanisms = {}
    for ways, ways_promise in promises.items():
        shape = {"sizes": sizes, "ways": ways}
        planned = planned_geometry(CROWD_PARTS, shape, {}, ways_promise, ExactAccountant())
        mechanisms[ways] = ways_promise, build(CROWD_PARTS, epsilon=planned.epsilon, **shape)
    return mechanisms


def _cell_errors(mechanism: Any, reports: int) -> Errors:
    """Standard errors of a cell of the first table: of one that nobody holds, of one in ten."""
    examples = [mechanism.with_cell(0, turn) for turn in (0, 1)]
    expected = family_for(mechanism).expected(mechanism, examples, np.array([0.1, 0.9]), reports)
    return reports * float(expected.absent[0]), reports * float(expected.stderrs[0])


def _of_numbers(
    promise: CentralPromise, question: MetricDraft, dummies: str
) -> tuple[CentralPromise, list[Way]]:
    """Ways for numbers; the promise is that of the largest local epsilon, with its dummies.

    `dummies` is, for a mean, "noise" or "auto" for noise dummies; "" for none.
    """
    reports, central = promise.crowd, promise.epsilon
    ways, padded = list[Way](), promise
    for floor in _floors(central, promise.max_local_epsilon):
        try:
            padded, way = _crowd(replace(promise, max_local_epsilon=floor), question, dummies)
        except BadParameter:
            if floor == promise.max_local_epsilon:
                raise
            continue  # too low a floor for so many parts
        if not ways or way["epsilon_local"] != ways[-1]["epsilon_local"]:
            ways.append(way)
    if question.kind == "vector":
        ways += _means_apart(promise, question)
    [best, *_] = plan(question, central, reports)
    # One person moves a mean by its range over n, one report from one part to another, or as many
    # means as a vector has, by the root of their number together.
    moved = {"mean": 1.0, "ranges": 2.0, "vector": sqrt(question.size)}[question.kind]
    noise = moved * sqrt(2) / central / reports
    ways.append(_number_way("alone", best.mechanism, central, central, best.rare))
    ways.append(_number_way(_CURATOR, None, None, central, noise))
    return padded, ways


def _means_apart(promise: CentralPromise, question: MetricDraft) -> list[Way]:
    """A mean for each number of a vector, which together keep the promise.

    Each is a metric with noise dummies, whose reports go apart. Empty if their share is too small.
    """
    size = question.size
    share = replace(promise, epsilon=promise.epsilon / size, delta=promise.delta / size)
    number = MetricDraft(kind="mean", size=1, low=-question.high, high=question.high)
    try:
        _, way = _crowd(share, number, NOISE)
    except BadParameter:
        return []
    epsilons = {name: size * way[name] for name in ("epsilon_local", "epsilon_central")}
    return [way | epsilons | {"way": f"{size:,} means, each in a {way['way']}"}]


def _number_way(
    name: str, mechanism: str | None, local: float | None, central: float, stderr: float
) -> Way:
    return {
        "way": name,
        "mechanism": mechanism,
        "epsilon_local": local,
        "epsilon_central": central,
        "stderr": stderr,
    }


def _crowd(
    promise: CentralPromise, question: MetricDraft, dummies: str
) -> tuple[CentralPromise, Way]:
    """The promise with its dummies, and the best crowd of numbers that keeps it."""
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
    table.pop("mechanism", None)
    parameters = {**table, **planned.parameters, "epsilon": local}
    crowd = crowd_of_promise(promise, planned.categories, local)
    name = "crowd"
    if promise.noise:
        noise = ValueNoise(promise.noise, int(planned.categories), promise.sum_noise)
        name += f", {noise.each.reach} dummies a value, {noise.expected:,} in all"
        mechanism = build(planned.mechanism, **parameters)
        stderr = sqrt(worst_variance(mechanism, promise)) / promise.crowd
    else:
        stderr = row(question, planned.mechanism, parameters, promise.crowd).rare
    central = central_epsilon(crowd, promise.delta)
    return promise, _number_way(name, planned.mechanism, local, central, stderr)


@dataclass(frozen=True, slots=True)
class _Question:
    """How a kind of question is planned; `name` formats a draft, and `errors` the cells of ways."""

    name: str
    errors: Mapping[str, str]
    of_what: str
    ways: Callable[[CentralPromise, MetricDraft, str], tuple[CentralPromise, list[Way]]]


def _of_share(what: str) -> dict[str, str]:
    return {f"error of {what}": "{stderr:.4%}"}


_RARE_AND_TENTH: Final = {
    "error of a rare value": "{stderr_rare:,.4g}",
    "of one in ten": "{stderr_tenth:,.4g}",
}
_IN_REPORTS: Final = " in reports"
_COUNTS: Final = ("values", "strings", "parts")
_QUESTIONS: Final[Mapping[str, _Question]] = {
    "values": _Question("{0.size:,} values", _RARE_AND_TENTH, _IN_REPORTS, _of_values),
    "strings": _Question("strings", _RARE_AND_TENTH, _IN_REPORTS, _of_strings),
    "parts": _Question("{1} parts", _RARE_AND_TENTH, _IN_REPORTS, _of_parts),
    "mean": _Question(
        "a mean", _of_share("the mean"), ", of the range, where it is largest", _of_numbers
    ),
    "ranges": _Question(
        "{0.size:,} buckets of a range",
        _of_share("a bucket that nobody holds"),
        ", of all reports",
        _of_numbers,
    ),
    "vector": _Question(
        "the mean of {0.size:,} numbers",
        _of_share("each number"),
        ", of its range, of people who are all alike",
        _of_numbers,
    ),
}


def _found_unlisted(promise: CentralPromise) -> tuple[PrefixTree, float]:
    """A prefix tree in such a crowd, and the smallest share that it finds."""

    def local(cells: int) -> float:
        table = {"mechanism": CROWD_TREE, "cells": cells}
        return planned_strings(table, promise, ExactAccountant()).epsilon or promise.epsilon

    tree = planned_tree(local)
    return tree, found_from(tree, promise.crowd)


def _errors_of_tables(promise: CentralPromise, sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    """Every table of two or three parts, with its `_ERRORS` in reports; none without noise."""
    if not promise.noise:
        return []
    mechanisms, rows = _crowd_mechanisms(promise, sizes), []
    _, joint = mechanisms[len(sizes)]
    for ways in range(2, min(len(sizes), 4)):
        _, alone = mechanisms[ways]
        for parts in tables_of(len(sizes), ways):
            variances = [
                cell_variance(mechanism, parts, share, promise.crowd, drawn)
                for mechanism, drawn in ((alone, 0.0), (joint, promise.noise.variance))
                for share in (0.0, 0.1)
            ]
            table = tuple(sizes[part] for part in parts)
            listed = _listed_errors(promise, sizes, table)
            errors = dict(zip(_ERRORS, (*map(sqrt, variances), *listed), strict=True))
            rows.append({"table": table, "cells": prod(table), **errors})
    return rows


def _listed_errors(
    promise: CentralPromise, sizes: tuple[int, ...], table: tuple[int, ...]
) -> Errors | tuple[None, None]:
    """Errors if metrics of listed cells with noise dummies, one a table of two, keep the promise.

    None for another table, or if the shuffler would seal too many dummies.
    """
    tables, cells = len(tables_of(len(sizes), 2)), prod(table)
    if len(table) > 2:  # noqa: PLR2004 a table of two
        return None, None
    share = replace(
        promise, epsilon=promise.epsilon / tables, delta=promise.delta / tables, **NO_DUMMIES
    )
    share = ExactAccountant().padded(share, cells, NOISE)
    if not can_seal(share, cells):
        return None, None
    return _errors(crowd_of_promise(share, cells, promise.max_local_epsilon))


def _show(promise: CentralPromise, question: MetricDraft, ways: Sequence[Way]) -> None:
    """Shows all ways as a table, what its two epsilons rest on, and the fields of a catalog."""
    declared, is_count = _QUESTIONS[question.kind], question.kind in _COUNTS
    name = declared.name.format(question, len(question.parts))
    mechanism = {"mechanism": lambda way: way["mechanism"] or ""}
    listing(
        f"central epsilon {promise.epsilon:g} at delta {promise.delta:g}: "
        f"{several(promise.crowd, 'report')}"
        f"{_dummies_text(promise, question) if is_count else ''} of {name}",
        ways,
        {
            "way": "{way}",
            **({} if is_count else mechanism),
            "local epsilon": lambda way: (
                "none" if way["epsilon_local"] is None else f"{way['epsilon_local']:.3f}"
            ),
            "central epsilon": "{epsilon_central:.3f}",
            **declared.errors,
        },
        text_columns=1 if is_count else 2,
    )
    say(
        f"errors are standard errors{declared.of_what}; a crowd leaves whole, or not at all if it "
        f"has fewer reports, so plan with fewer than you expect; {promise.honest:.0%} of it is "
        "honest; the local epsilon holds even if all servers collude"
    )
    best = max(way["epsilon_local"] for way in ways if way["way"].startswith("crowd"))
    further_fields = ""
    if len(question.parts) > 2 and not promise.noise:  # noqa: PLR2004 tables of three need as many
        further_fields = "; for tables of 3 also ways = 3"
    if question.kind == "strings":
        say("for a thousand strings whose frequencies follow Zipf's law; errors include collisions")
        tree, share = _found_unlisted(promise)
        holders = f"what {share:.3g} of the reports, {share * promise.crowd:,.0f}, hold"
        say(
            f"among unlisted strings {tree_fields(tree)} finds at a local epsilon of "
            f"{tree.epsilon:.4g}, "
            + (f"{holders}, 95 times in 100" if share < 1 else "none in so few reports")
        )
        further_fields = ', domain = "string", mechanism = "auto"'
    say(_in_catalog(promise, best) + further_fields)
    if is_count:
        _say_dummies(promise, question, ways)
        lowest = min(way["epsilon_central"] for way in ways if way["epsilon_local"] == best)
        listed = question.size if question.kind == "values" else None
        if sentence := what_decides(promise, best, lowest, listed):
            explain(sentence)


def _dummies_text(promise: CentralPromise, question: MetricDraft) -> str:
    """The dummies beside the reports, of each value or device and in all; "" without any."""
    if promise.noise:
        named, total = ("cell" if question.parts else "value"), promise.dummies_shift
        cells = prod(question.parts) if question.parts else question.size
        return f" and {total} dummies of each {named} on average, {total * cells:,} in all,"
    if promise.dummies_each:
        total = round(promise.dummies_each * promise.crowd)
        return f" with {promise.dummies_each:g} dummies each, {total:,} in all,"
    return f" and {promise.dummies:,} dummies" if promise.dummies else ""


def _say_dummies(promise: CentralPromise, question: MetricDraft, ways: Sequence[Way]) -> None:
    """Says whether dummies are better, by the exact errors of both; of parts for each table."""
    if question.parts:
        if rows := _errors_of_tables(promise, question.parts):
            _show_tables(rows)
        return
    if not (promise.dummies or promise.dummies_each or promise.noise):
        return
    padded = next(way for way in reversed(ways) if way["way"] == "crowd")
    plain = replace(promise, **NO_DUMMIES)
    local = ExactAccountant().largest(plain, question.size)
    rare, tenth = _errors(crowd_of_promise(plain, question.size, local))
    errors = (
        ("a rare value", padded["stderr_rare"], rare),
        ("one in ten", padded["stderr_tenth"], tenth),
    )
    text = ", ".join(f"{without:,.4g} of {name}" for name, _, without in errors)
    if better := [name for name, with_them, without in errors if with_them < without]:
        say(f"the dummies win for {' and '.join(better)}: without them the errors are {text}")
    else:
        say(f"leave the dummies out: without them the errors are {text}, none larger")


def _show_tables(rows: Sequence[Mapping[str, Any]]) -> None:
    def error_text(error: float | None) -> str:
        return "" if error is None else f"{error:,.4g}"

    listing(
        "standard errors of each table's cells, in reports: reports of as many parts as the table, "
        "reports of all parts with noise dummies, and a metric of listed cells with noise dummies "
        "for each table of two, which together keep the promise",
        rows,
        {
            "parts of": lambda row: " x ".join(map(str, row["table"])),
            "cells": "{cells:,}",
            "rare, as many": "{alone_rare:,.4g}",
            "rare, all": "{whole_rare:,.4g}",
            "of one in ten, as many": "{alone_tenth:,.4g}",
            "of one in ten, all": "{whole_tenth:,.4g}",
            "rare, listed": lambda row: error_text(row["listed_rare"]),
            "of one in ten, listed": lambda row: error_text(row["listed_tenth"]),
        },
    )


def _in_catalog(promise: CentralPromise, epsilon_local: float) -> str:
    """The catalog's fields for this promise, but for those whose default it has."""
    most = promise.max_local_epsilon
    fields: dict[str, Any] = {"central_epsilon": promise.epsilon, "crowd": promise.crowd}
    if epsilon_local > USUAL_MAX_LOCAL or most < USUAL_MAX_LOCAL:
        fields["max_local_epsilon"] = min(ceil(epsilon_local), most)
    fields |= {
        name: getattr(promise, name)
        for name in ("delta", "honest", "dummies", "dummies_each")
        if getattr(promise, name) != _FIELDS[name].default
    }
    if promise.noise:
        fields["dummies"] = f'"{NOISE}"'
    return "in metrics.toml: " + ", ".join(f"{name} = {_toml(fields[name])}" for name in fields)


def _toml(value: Any) -> str:
    """A value in TOML: a float with six digits if they are all that it has."""
    is_short = isinstance(value, float) and float(f"{value:g}") == value
    return f"{value:g}" if is_short else str(value)


def check_as_fields(**values: float | str) -> None:
    """Raises BadParameter, by the option's name, for a value that no catalog may contain."""
    for name, value in values.items():
        if problem := _FIELDS[name].entry.kind.problem(value):
            option = "reports" if name == "crowd" else name
            raise BadParameter(f"--{option} {_toml(value)}: as {name} in a catalog it {problem}")
