"""`hubbub plan --central`: what a crowd gives, by how private each report is by itself."""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import sqrt
from typing import Any, Final

import numpy as np

from hubbub.analysis.families import family_for
from hubbub.analysis.strings.tree_search import found_from
from hubbub.catalog import CentralPromise
from hubbub.catalog.choice import AUTO
from hubbub.catalog.crowds.central_fields import DEVICES
from hubbub.catalog.crowds.crowd_geometry import CROWD_PARTS, planned_geometry
from hubbub.catalog.crowds.crowd_strings import CROWD_TREE, planned_strings, string_errors
from hubbub.catalog.crowds.device_dummies import each_of
from hubbub.cli.planning.central_numbers import in_catalog, plan_central_numbers
from hubbub.cli.terminal.output import explain, say, several, table
from hubbub.errors import BadParameter
from hubbub.mechanisms import build, even_lies
from hubbub.mechanisms.probability import MAX_EPSILON, MIN_EPSILON
from hubbub.mechanisms.tree import PrefixTree
from hubbub.privacy.amplification import DELTA
from hubbub.privacy.crowd import ExactAccountant, what_decides
from hubbub.privacy.metric_draft import MetricDraft
from hubbub.privacy.planner import plan
from hubbub.privacy.shuffled_epoch import ShuffledEpoch
from hubbub.privacy.shuffled_histogram import central_epsilon, largest_local

# Local epsilons that are shown below the largest one.
_FLOORS: Final = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 12.0)


@dataclass(frozen=True, slots=True)
class _Way:
    """One way to be private. Standard errors in reports: of a rare value, and of one in ten."""

    way: str
    epsilon_local: float | None
    epsilon_central: float
    stderr_rare: float
    stderr_tenth: float


def add_central(parser: argparse.ArgumentParser) -> None:
    """Add the options of a central promise."""
    crowd = parser.add_argument_group(
        "a central promise, with --reports and --values, --strings, --parts, --mean, --ranges or "
        "a central promise, with --reports and --values, --strings, --parts, --mean, --ranges, "
        "--vector or --model"
    )
    crowd.add_argument(
        "--central", type=float, metavar="E", help="what a whole epoch may say of one person, nats"
    )
    crowd.add_argument(
        "--honest", type=float, default=0.9, help="share of reports counted on (%(default)s)"
    )
    crowd.add_argument(
        "--max-local", type=float, default=MAX_EPSILON, help="of one report (%(default)s)"
    )
    crowd.add_argument(
        "--dummies",
        type=_dummies,
        default=0,
        metavar="N",
        help=f"the shuffler's, in a crowd; {AUTO}: as many as are worth it; {DEVICES}: the same, "
        "made by devices (%(default)s)",
    )
    crowd.add_argument("--delta", type=float, default=DELTA, help="of the promise (%(default)s)")


def _dummies(written: str) -> int | str:
    """A whole number, "auto", or "devices"."""
    try:
        return written if written in (AUTO, DEVICES) else int(written)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f'{written!a} is no whole number, nor "{AUTO}" or "{DEVICES}"'
        ) from None


def refuse_epsilons(arguments: argparse.Namespace) -> None:
    """Raises BadParameter for a promise, or a most that a report may say, that nobody makes."""
    for name, given in (("--central", arguments.central), ("--max-local", arguments.max_local)):
        if not MIN_EPSILON <= given <= MAX_EPSILON:
            raise BadParameter(f"{name} {given:g} is outside [{MIN_EPSILON}, {MAX_EPSILON}]")


def plan_central(arguments: argparse.Namespace, question: MetricDraft) -> int:
    """Show what keeps the promise, what lower floors cost, and what there is beside it.

    Raises:
        BadParameter: a number is missing or out of range, or dummies are asked for where none go.
    """
    reports, central = arguments.reports, arguments.central
    if reports is None:
        raise BadParameter("--central is of so many reports: give --reports")
    if question.kind == "sets":
        raise BadParameter(
            "a crowd is not asked for sets: leave --central out; each report keeps its own epsilon"
        )
    refuse_epsilons(arguments)
    if arguments.dummies and question.kind != "values":
        raise BadParameter("--dummies go with listed values alone: leave them out")
    _pad(arguments, question)
    if question.kind in ("mean", "ranges", "vector"):
        floors = [one for one in _FLOORS if central < one < arguments.max_local]
        return plan_central_numbers(arguments, question, [*floors, arguments.max_local])
    of = {"strings": _of_strings, "parts": _of_parts}.get(question.kind, _of_values)
    ways = of(arguments, question)
    laplace = 2 * sqrt(2) / central  # one person moves one report from one count to another
    ways.append(_Way("trusted curator, Laplace", None, central, laplace, laplace))
    if arguments.format == "json":
        document: dict[str, Any] = {
            "reports": reports,
            question.kind: question.size,
            "central": central,
            "delta": arguments.delta,
            "honest": arguments.honest,
            "dummies": arguments.dummies,
            "dummies_each": arguments.each,
            "rows": [asdict(way) for way in ways],
        }
        if question.kind == "strings":
            local, share = _found_unlisted(arguments)
            document["tree"] = {"epsilon_local": local, "found_from": share}
        say(json.dumps(document, indent=1))
    else:
        _show(arguments, question, ways)
    return 0


def _pad(arguments: argparse.Namespace, question: MetricDraft) -> None:
    """Put numbers in the place of words: of the shuffler's dummies, and of every device's."""
    arguments.each = 0.0
    if isinstance(arguments.dummies, str):
        promise = CentralPromise(
            *(arguments.central, arguments.reports, arguments.delta, arguments.honest),
            arguments.max_local,
        )
        if arguments.dummies == DEVICES:
            number = ExactAccountant().dummies(promise, question.size, by_devices=True)
            arguments.dummies, arguments.each = 0, each_of(arguments.reports, number)
        else:
            arguments.dummies = ExactAccountant().dummies(promise, question.size)
        if not (arguments.dummies or arguments.each):
            explain("no number of dummies is worth it: errors fall by 2.5% at most")


def _of_values(arguments: argparse.Namespace, question: MetricDraft) -> list[_Way]:
    """A crowd at each floor, and reports that are as private by themselves."""
    reports, central = arguments.reports, arguments.central
    most = largest_local(
        reports,
        question.size,
        central,
        arguments.delta,
        honest=arguments.honest,
        dummies=arguments.dummies,
        each=arguments.each,
        most=arguments.max_local,
    )
    ways = [_crowd(arguments, question, local) for local in (*_below(central, most), most)]
    [best, *_] = plan(question, central, reports)
    alone = build(best.mechanism, **best.parameters)
    errors = [sqrt(alone.variance(share * reports, reports)) for share in (0.0, 0.1)]
    return [*ways, _Way(f"alone, {best.mechanism}", central, central, *errors)]


def _of_strings(arguments: argparse.Namespace, question: MetricDraft) -> list[_Way]:
    """The same of strings, hashed to as many buckets as serve best at each floor."""
    central, ways = arguments.central, list[_Way]()
    for floor in (*_below(central, arguments.max_local), arguments.max_local):
        way = _hashed_crowd(arguments, floor)
        if not ways or way.epsilon_local != ways[-1].epsilon_local:
            ways.append(way)
    [best, *_] = plan(question, central, arguments.reports)
    alone, reports = build(best.mechanism, **best.parameters), arguments.reports
    shares = np.array([0.1, *[0.9 / question.size] * question.size])
    strings = [*question.values(), "one more"]
    expected = family_for(alone).expected(alone, strings, shares, reports)
    errors = [reports * float(one[0]) for one in (expected.absent, expected.stderrs)]
    return [*ways, _Way(f"alone, {best.mechanism}", central, central, *errors)]


def _of_parts(arguments: argparse.Namespace, question: MetricDraft) -> list[_Way]:
    """A crowd that tells two parts together, or three; and reports that tell two by themselves."""
    reports, central, ways = arguments.reports, arguments.central, list[_Way]()
    promise = CentralPromise(
        *(central, reports, arguments.delta, arguments.honest, arguments.max_local)
    )
    for told in range(2, min(len(question.parts), 3) + 1):
        own = {"sizes": question.parts, "ways": told}
        planned = planned_geometry(CROWD_PARTS, own, {}, promise, ExactAccountant())
        mechanism = build(CROWD_PARTS, epsilon=planned.epsilon, **own)
        lies = even_lies(mechanism, mechanism.privacy_loss())
        crowd = ShuffledEpoch(
            *(reports, lies.categories, lies.epsilon, arguments.honest), groups=lies.groups
        )
        found = central_epsilon(crowd, arguments.delta)
        errors = _cell_errors(mechanism, reports)
        ways.append(_Way(f"crowd, tables of {told}", planned.epsilon, found, *errors))
    alone = build(CROWD_PARTS, epsilon=central, sizes=question.parts)
    errors = _cell_errors(alone, reports)
    return [*ways, _Way("alone, tables of 2", central, central, *errors)]


def _cell_errors(mechanism: Any, reports: int) -> tuple[float, float]:
    """Of a cell of the first table: that nobody holds, and that one in ten do."""
    held = [mechanism.with_cell(0, turn) for turn in (0, 1)]
    expected = family_for(mechanism).expected(mechanism, held, np.array([0.1, 0.9]), reports)
    return reports * float(expected.absent[0]), reports * float(expected.stderrs[0])


def _hashed_crowd(arguments: argparse.Namespace, floor: float) -> _Way:
    reports, accountant = arguments.reports, ExactAccountant()
    promise = CentralPromise(
        *(arguments.central, reports, arguments.delta, arguments.honest, floor)
    )
    planned = planned_strings({"mechanism": AUTO}, promise, accountant)
    width, hashes = int(planned.categories), planned.groups
    local = accountant.local_epsilon(promise, width, hashes)
    crowd = ShuffledEpoch(reports, width, local, arguments.honest, groups=hashes)
    return _Way(
        f"crowd, {hashes} x {width:,} buckets",
        local,
        central_epsilon(crowd, arguments.delta),
        *string_errors(width, hashes, local, reports),
    )


def _found_unlisted(arguments: argparse.Namespace) -> tuple[float, float]:
    """Of a prefix tree in such a crowd: its local epsilon, and the share of what it finds."""
    promise = CentralPromise(
        *(arguments.central, arguments.reports, arguments.delta, arguments.honest),
        arguments.max_local,
    )
    planned = planned_strings({"mechanism": CROWD_TREE}, promise, ExactAccountant())
    local = planned.epsilon or arguments.central
    return local, found_from(PrefixTree(local), arguments.reports)


def _below(central: float, most: float) -> list[float]:
    """Lower floors, well apart from the largest, and none that is the promise itself."""
    return [floor for floor in _FLOORS if central < floor < most - 0.25]


def _crowd(arguments: argparse.Namespace, question: MetricDraft, local: float) -> _Way:
    crowd = ShuffledEpoch(
        *(arguments.reports, question.size, local, arguments.honest, arguments.dummies),
        each=arguments.each,
    )
    found = central_epsilon(crowd, arguments.delta)
    return _Way("crowd", local, found, crowd.stderr(0.0), crowd.stderr(0.1))


def _whose(question: MetricDraft) -> str:
    match question.kind:
        case "strings":
            return "strings"
        case "parts":
            return f"{len(question.parts)} parts"
        case _:
            return f"{question.size:,} values"


def _show(arguments: argparse.Namespace, question: MetricDraft, ways: Sequence[_Way]) -> None:
    dummies = f" and {arguments.dummies:,} dummies" if arguments.dummies else ""
    dummies = f" with {arguments.each:g} dummies each" if arguments.each else dummies
    table(
        f"central epsilon {arguments.central:g} at delta {arguments.delta:g}: "
        f"{several(arguments.reports, 'report')}{dummies} of " + _whose(question),
        ("way", "local epsilon", "central epsilon", "error of a rare value", "of one in ten"),
        [
            (
                way.way,
                "none" if way.epsilon_local is None else f"{way.epsilon_local:.3f}",
                f"{way.epsilon_central:.3f}",
                f"{way.stderr_rare:,.4g}",
                f"{way.stderr_tenth:,.4g}",
            )
            for way in ways
        ],
    )
    say(
        f"errors are standard errors in reports; a crowd leaves whole or not at all, "
        f"{arguments.honest:.0%} of it honest; the local epsilon holds whoever works together"
    )
    best = max(way.epsilon_local or 0 for way in ways if way.way.startswith("crowd"))
    more = f", dummies = {arguments.dummies}" if arguments.dummies else ""
    more = f", dummies_each = {arguments.each:g}" if arguments.each else more
    if len(question.parts) > 2:  # noqa: PLR2004 tables of three need as many
        more += "; for tables of 3 also ways = 3"
    if question.kind == "strings":
        say("of strings held as by Zipf's law, a thousand of them: collisions are in the errors")
        local, share = _found_unlisted(arguments)
        holders = f"what {share:.3g} of the reports, {share * arguments.reports:,.0f}, hold"
        say(
            f'of strings that nobody listed mechanism = "tree" finds, at a local epsilon of '
            f"{local:.4g}, "
            + (f"{holders}, 95 times in 100" if share < 1 else "none in so few reports")
        )
        more = ', domain = "string", mechanism = "auto"'
    say(in_catalog(arguments, best) + more)
    if arguments.dummies or arguments.each:
        say(_worth(arguments, question, ways))
    promise = CentralPromise(
        *(arguments.central, arguments.reports, arguments.delta, arguments.honest),
        *(arguments.max_local, arguments.dummies, arguments.each),
    )
    told = min(way.epsilon_central for way in ways if way.epsilon_local == best)
    listed = question.size if question.kind == "values" else None
    if said := what_decides(promise, best, told, listed):
        explain(said)


def _worth(arguments: argparse.Namespace, question: MetricDraft, ways: Sequence[_Way]) -> str:
    """Whether the dummies win, by the exact errors of both."""
    padded = next(way for way in reversed(ways) if way.way == "crowd")
    local = largest_local(
        arguments.reports,
        question.size,
        arguments.central,
        arguments.delta,
        honest=arguments.honest,
        most=arguments.max_local,
    )
    alone = ShuffledEpoch(arguments.reports, question.size, local, arguments.honest)
    errors = (
        ("a rare value", padded.stderr_rare, alone.stderr(0.0)),
        ("one in ten", padded.stderr_tenth, alone.stderr(0.1)),
    )
    said = ", ".join(f"{without:,.4g} of {name}" for name, _, without in errors)
    if all(with_them >= without for _, with_them, without in errors):
        return f"leave the dummies out: without them the errors are {said}, none larger"
    better = " and ".join(name for name, with_them, without in errors if with_them < without)
    return f"the dummies win for {better}: without them the errors are {said}"
