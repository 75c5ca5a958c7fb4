"""`hubbub plan central` for counts: errors in a crowd, of listed values, strings or parts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod, sqrt
from typing import Any, Final

import numpy as np

from hubbub.analysis.families import family_for
from hubbub.analysis.strings.tree_search import found_from
from hubbub.authoring.crowds.crowd_strings import planned_strings, string_errors
from hubbub.authoring.crowds.crowd_table import NO_DUMMIES
from hubbub.authoring.crowds.crowd_trees_and_parts import (
    cell_variance,
    noisy_parts,
    planned_geometry,
)
from hubbub.catalog import CentralPromise
from hubbub.catalog.auto_choice import AUTO
from hubbub.catalog.crowds.central import CROWD_TREE
from hubbub.catalog.crowds.central_fields import CROWD_PARTS, NOISE
from hubbub.catalog.crowds.noise_dummies import can_seal
from hubbub.cli.planning.central_rows import (
    Way,
    count_row,
    crowd_row,
    floors,
    in_catalog,
    largest_local_of,
    show_ways,
)
from hubbub.cli.planning.plan_table import planned_tree, tree_fields
from hubbub.cli.terminal.output import explain, listing, say, say_json
from hubbub.mechanisms import build
from hubbub.mechanisms.even_noise import even_lies
from hubbub.mechanisms.parts import tables_of
from hubbub.mechanisms.tree import PrefixTree
from hubbub.privacy.crowd import ExactAccountant, crowd_of_promise, what_decides
from hubbub.privacy.metric_draft import MetricDraft
from hubbub.privacy.planner import plan
from hubbub.privacy.shuffled_epoch import ShuffledEpoch

# Of reports of as many parts as the table, of all parts with noise dummies, and of a metric of
# listed cells for each table of two.
_ERRORS: Final = (
    *("alone_rare", "alone_tenth", "whole_rare", "whole_tenth"),
    *("listed_rare", "listed_tenth"),
)


def plan_counts(
    promise: CentralPromise, question: MetricDraft, dummies: int | str, *, as_json: bool
) -> None:
    """Shows crowds that keep the promise, and alternatives to a crowd.

    `dummies` are as in the catalog: a number, or a word for how they are chosen.
    """
    promise = _padded(promise, dummies, question)
    stderr = 2 * sqrt(2) / promise.epsilon  # one person moves one report from one count to another
    curator = count_row("trusted curator, Laplace", None, promise.epsilon, stderr, stderr)
    match question.kind:
        case "strings":
            ways = [*_of_strings(promise, question), curator]
        case "parts":
            ways = [*_of_parts(promise, question.parts), curator]
        case _:
            ways = [*_of_values(promise, question), curator]
    if not as_json:
        _show(promise, question, ways)
        return
    document: dict[str, Any] = {
        "reports": promise.crowd,
        question.kind: question.size,
        "central": promise.epsilon,
        "delta": promise.delta,
        "honest": promise.honest,
        **{name: getattr(promise, name) for name in NO_DUMMIES},
        "rows": ways,
    }
    if question.kind == "parts":
        document["tables"] = _errors_of_tables(promise, question.parts)
    if question.kind == "strings":
        tree, share = _found_unlisted(promise)
        document["tree"] = {"epsilon_local": tree.epsilon, "found_from": share}
    say_json(document)


def _padded(promise: CentralPromise, dummies: int | str, question: MetricDraft) -> CentralPromise:
    """The promise with this number of shuffler's dummies, or the worthwhile number."""
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


def _of_values(promise: CentralPromise, question: MetricDraft) -> list[Way]:
    """Rows of crowds at each floor, and of reports that keep the promise individually."""
    reports, central, ways = promise.crowd, promise.epsilon, []
    most = ExactAccountant().largest(promise, question.size)
    for local in floors(central, most, apart=0.25):
        crowd = crowd_of_promise(promise, question.size, local)
        ways.append(crowd_row("crowd", crowd, promise.delta, _errors(crowd)))
    [best, *_] = plan(question, central, reports)
    alone = build(best.mechanism, **best.parameters)
    errors = (sqrt(alone.variance(share * reports, reports)) for share in (0.0, 0.1))
    return [*ways, count_row(f"alone, {best.mechanism}", central, central, *errors)]


def _errors(crowd: ShuffledEpoch) -> tuple[float, float]:
    return crowd.stderr(0.0), crowd.stderr(0.1)


def _of_strings(promise: CentralPromise, question: MetricDraft) -> list[Way]:
    """The same for strings, with the best number of hash buckets at each floor."""
    reports, central, ways = promise.crowd, promise.epsilon, list[Way]()
    for floor in floors(central, promise.max_local_epsilon, apart=0.25):
        way = _hashed_crowd(replace(promise, max_local_epsilon=floor))
        if not ways or way["epsilon_local"] != ways[-1]["epsilon_local"]:
            ways.append(way)
    [best, *_] = plan(question, central, reports)
    alone = build(best.mechanism, **best.parameters)
    shares = np.array([0.1, *[0.9 / question.size] * question.size])
    strings = [*question.values(), "one more"]
    expected = family_for(alone).expected(alone, strings, shares, reports)
    errors = (reports * float(values[0]) for values in (expected.absent, expected.stderrs))
    return [*ways, count_row(f"alone, {best.mechanism}", central, central, *errors)]


def _hashed_crowd(promise: CentralPromise) -> Way:
    accountant = ExactAccountant()
    planned = planned_strings({"mechanism": AUTO}, promise, accountant)
    width, hashes = int(planned.categories), planned.groups
    local = accountant.local_epsilon(promise, width, hashes)
    crowd = crowd_of_promise(promise, width, local, hashes)
    errors = string_errors(width, hashes, local, promise.crowd)
    return crowd_row(f"crowd, {hashes} x {width:,} buckets", crowd, promise.delta, errors)


def _found_unlisted(promise: CentralPromise) -> tuple[PrefixTree, float]:
    """A prefix tree in such a crowd, and the smallest share that it finds."""

    def local(cells: int) -> float:
        table = {"mechanism": CROWD_TREE, "cells": cells}
        return planned_strings(table, promise, ExactAccountant()).epsilon or promise.epsilon

    tree = planned_tree(local)
    return tree, found_from(tree, promise.crowd)


@lru_cache(maxsize=1)
def _crowd_mechanisms(
    promise: CentralPromise, sizes: tuple[int, ...]
) -> Mapping[int, tuple[CentralPromise, Any]]:
    """By number of parts together: the promise, and the mechanism that keeps it.

    All parts together only with the promise's noise dummies; the others have none.
    """
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


def _of_parts(promise: CentralPromise, sizes: tuple[int, ...]) -> list[Way]:
    """Rows of crowds with 2, 3 or all parts a report, and alone with 2; of the first table."""
    rows = []
    for number, (ways_promise, mechanism) in _crowd_mechanisms(promise, sizes).items():
        lies = even_lies(mechanism, mechanism.privacy_loss())
        crowd = crowd_of_promise(ways_promise, lies.categories, lies.epsilon, lies.groups)
        if ways_promise.noise:
            name, errors = f"crowd, all {number} parts", (crowd.stderr(0.0), crowd.stderr(0.1))
        else:
            name, errors = f"crowd, tables of {number}", _cell_errors(mechanism, promise.crowd)
        rows.append(crowd_row(name, crowd, promise.delta, errors))
    alone = build(CROWD_PARTS, epsilon=promise.epsilon, sizes=sizes)
    errors = _cell_errors(alone, promise.crowd)
    return [*rows, count_row("alone, tables of 2", promise.epsilon, promise.epsilon, *errors)]


def _cell_errors(mechanism: Any, reports: int) -> tuple[float, float]:
    """Standard errors of a cell of the first table: of one that nobody holds, of one in ten."""
    examples = [mechanism.with_cell(0, turn) for turn in (0, 1)]
    expected = family_for(mechanism).expected(mechanism, examples, np.array([0.1, 0.9]), reports)
    return reports * float(expected.absent[0]), reports * float(expected.stderrs[0])


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
) -> tuple[float, float] | tuple[None, None]:
    """Standard errors if each table of two is a metric of listed cells with noise dummies.

    All these metrics together keep the promise. None for another table, or if the shuffler would
    seal too many dummies.
    """
    tables, cells = len(tables_of(len(sizes), 2)), prod(table)
    if len(table) > 2:  # noqa: PLR2004 a table of two
        return None, None
    share = replace(
        promise, epsilon=promise.epsilon / tables, delta=promise.delta / tables, **NO_DUMMIES
    )
    share = ExactAccountant().padded(share, cells, NOISE)
    if not can_seal(share.dummies_shift, cells):
        return None, None
    return _errors(crowd_of_promise(share, cells, promise.max_local_epsilon))


def _show_tables(rows: Sequence[Mapping[str, Any]]) -> None:
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
            "rare, listed": lambda row: _error_text(row["listed_rare"]),
            "of one in ten, listed": lambda row: _error_text(row["listed_tenth"]),
        },
    )


def _error_text(error: float | None) -> str:
    return "" if error is None else f"{error:,.4g}"


def _show(promise: CentralPromise, question: MetricDraft, ways: Sequence[Way]) -> None:
    special = {"strings": "strings", "parts": f"{len(question.parts)} parts"}
    whose = special.get(question.kind, f"{question.size:,} values")
    show_ways(
        promise,
        ways,
        title=f"{_dummies_text(promise, question)} of {whose}",
        errors={
            "error of a rare value": "{stderr_rare:,.4g}",
            "of one in ten": "{stderr_tenth:,.4g}",
        },
        of_what=" in reports",
    )
    best, further_fields = largest_local_of(ways), ""
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
    say(in_catalog(promise, best) + further_fields)
    if rows := _errors_of_tables(promise, question.parts) if question.parts else []:
        _show_tables(rows)
    elif not question.parts and (promise.dummies or promise.dummies_each or promise.noise):
        say(_worth(promise, question, ways))
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


def _worth(promise: CentralPromise, question: MetricDraft, ways: Sequence[Way]) -> str:
    """Says whether dummies are better, by the exact errors of both."""
    padded = next(way for way in reversed(ways) if way["way"] == "crowd")
    plain = replace(promise, **NO_DUMMIES)
    local = ExactAccountant().largest(plain, question.size)
    rare, tenth = _errors(crowd_of_promise(plain, question.size, local))
    errors = (
        ("a rare value", padded["stderr_rare"], rare),
        ("one in ten", padded["stderr_tenth"], tenth),
    )
    text = ", ".join(f"{without:,.4g} of {name}" for name, _, without in errors)
    if all(with_them >= without for _, with_them, without in errors):
        return f"leave the dummies out: without them the errors are {text}, none larger"
    better = " and ".join(name for name, with_them, without in errors if with_them < without)
    return f"the dummies win for {better}: without them the errors are {text}"
