"""`hubbub plan`: before launch, which mechanism, how many reports, which epsilon, what machines."""

import argparse
import json
import sys
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import Any, Final

from hubbub.analysis import POPULATION, REPORTERS
from hubbub.analysis.families import family_for
from hubbub.catalog import Metric
from hubbub.cli.planning.attack import CATALOG, attack, chosen_metrics
from hubbub.cli.planning.capacity import add_capacity, capacity
from hubbub.cli.planning.central import add_central, plan_central
from hubbub.cli.planning.forms import asks_of_model, note_given, refuse_unread
from hubbub.cli.planning.models import add_model, plan_model
from hubbub.cli.planning.plot import plot
from hubbub.cli.planning.tables import (
    found_unlisted,
    people_a_report,
    row_json,
    show,
    show_simulated,
)
from hubbub.cli.terminal.output import say
from hubbub.errors import BadParameter
from hubbub.errors.printable import visible
from hubbub.mechanisms import AnyMechanism
from hubbub.mechanisms.pairs import PairedParts
from hubbub.mechanisms.probability import MIN_EPSILON
from hubbub.mechanisms.vector_codes import VectorCodes
from hubbub.privacy.metric_draft import MetricDraft
from hubbub.privacy.planner import Row, Target, epsilon_for, plan, ranked, reports_for, row
from hubbub.simulation.totals_of_plan import simulate

_EPILOG: Final = """
examples:
  hubbub plan --values 128 --epsilon 1 --reports 100000
  hubbub plan --values 128 --epsilon 1 --detect 0.01        how many reports do I need?
  hubbub plan --values 128 --reports 1e6 --error 0.001      which epsilon do I need?
  hubbub plan metrics.toml --metric theme --reports 50000 --simulate
  hubbub plan --set 40 5 --epsilon 2 --reports 100000       sets of 40 values, 5 of them told
  hubbub plan --parts 7 16 14 2 --epsilon 1 --reports 1e5   tables of every two answers
  hubbub plan --vector 16 1 --epsilon 2 --reports 1e5       the mean of 16 numbers
  hubbub plan --values 16 --reports 30000 --central 1       what would a crowd give?
  hubbub plan --model logistic --features 64 --epsilon 1    how many people does a model need?
  hubbub plan --model softmax --features 20 --classes 5     the same of one that tells classes apart
  hubbub plan metrics.toml --attack                         what could fake reports do?
  hubbub plan --capacity --devices 1e8 --per-day 1          how many machines?
"""
_EXAMPLES: Final = {
    "set": "--set 40 5",
    "parts": "--parts 7 16 14 2",
    "vector": "--vector 16 1",
}
_MAX_VALUES: Final = 1 << 20


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `plan` to the command line."""
    parser = commands.add_parser(
        "plan",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=_EPILOG,
    )
    note_given(parser)
    parser.add_argument(
        "catalog",
        type=Path,
        nargs="?",
        default=CATALOG,
        help="of --metric, --attack and --capacity (%(default)s)",
    )
    parser.add_argument(
        "--metric", action="append", default=[], help="of the catalog (repeat, for --attack)"
    )
    _add_question(parser)
    figures = parser.add_argument_group("two of these three; the third is worked out")
    figures.add_argument("--reports", type=_whole, metavar="N", help="how many in all")
    figures.add_argument("--epsilon", type=float, help="of one report, nats")
    target = figures.add_mutually_exclusive_group()
    target.add_argument("--error", type=float, metavar="SHARE", help="standard error aimed at")
    parser.add_argument(
        "--whose",
        choices=(POPULATION, REPORTERS),
        help="whose shares --error is of: the population that reports are from, or those who "
        f"report ({POPULATION})",
    )
    target.add_argument("--detect", type=float, metavar="SHARE", help="share to be noticed")
    parser.add_argument(
        "--permanent-epsilon", type=float, help="for life, of values that are reported repeatedly"
    )
    parser.add_argument(
        "--simulate",
        type=_whole,
        nargs="?",
        const=0,
        metavar="REPORTS",
        help="draw totals of the first mechanism and show true beside estimated shares; "
        "with --attack: draw so many honest reports, add fake ones, measure",
    )
    parser.add_argument("--seed", type=int, default=1, help="of --simulate (%(default)s)")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw to FILE (.png or .svg)")
    parser.add_argument(
        "--format", choices=("table", "json"), default="table", help="of the output (%(default)s)"
    )
    _add_fake(parser)
    add_capacity(parser)
    add_central(parser)
    add_model(parser)
    parser.set_defaults(run=_run)


def _add_fake(parser: argparse.ArgumentParser) -> None:
    """Add the options of --attack."""
    fake = parser.add_argument_group("fake reports")
    fake.add_argument(
        "--attack", action="store_true", help="the maximal gain attack (Cao, Jia, Gong 2021)"
    )
    fake.add_argument(
        "--fake", type=float, default=0.01, help="share of all reports that are fake (%(default)s)"
    )
    fake.add_argument(
        "--accounts",
        type=_whole,
        metavar="N",
        help="instead of --fake, with tokens in the catalog: how many accounts who fakes has",
    )
    fake.add_argument(
        "--others", type=_whole, metavar="N", help="with --accounts: honest reports of an epoch"
    )
    fake.add_argument(
        "--targets", type=int, default=1, help="values promoted at once (%(default)s)"
    )


def _add_question(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what is asked, where no catalog does."""
    asked = parser.add_argument_group("the question, instead of --metric")
    asked.add_argument("--values", type=_whole, metavar="N", help="one of N listed values")
    asked.add_argument("--strings", type=_whole, metavar="N", help="any string; N are looked for")
    asked.add_argument(
        "--mean", type=float, nargs=2, metavar=("LOW", "HIGH"), help="the mean of a number in it"
    )
    asked.add_argument(
        "--ranges", type=float, nargs=3, metavar=("N", "LOW", "HIGH"), help="N parts of a range"
    )
    asked.add_argument(
        "--set",
        type=_whole,
        nargs=2,
        metavar=("N", "MOST"),
        help="sets of N listed values, of which a person tells MOST",
    )
    asked.add_argument(
        "--parts",
        type=_whole,
        nargs="+",
        metavar="N",
        help="answers that belong together, with N values each",
    )
    asked.add_argument(
        "--vector",
        type=float,
        nargs=2,
        metavar=("N", "LENGTH"),
        help="the mean of a vector of N numbers, up to LENGTH long",
    )


def _whole(text: str) -> int:
    """A whole number, also written as 1e6."""
    number = float(text)
    if not (isfinite(number) and number == int(number)):
        raise ValueError(text)
    return int(number)


_whole.__name__ = "whole number"  # what argparse calls it in its message


def _run(arguments: argparse.Namespace) -> int:
    refuse_unread(arguments, CATALOG)
    if arguments.seed < 0:
        raise BadParameter(f"--seed {arguments.seed} is below 0")
    if arguments.attack:
        return attack(arguments)
    if arguments.capacity:
        return capacity(arguments)
    if asks_of_model(arguments):
        return plan_model(arguments)
    return _plan(arguments)


def _plan(arguments: argparse.Namespace) -> int:
    question, metric = _question(arguments)
    if arguments.central is not None:
        return plan_central(arguments, question)
    rows = _rows(arguments, question, metric)
    own = None
    if metric is not None and arguments.reports is not None:
        own = row(question, metric.mechanism, metric.arguments, arguments.reports)
    simulated = own or rows[0]
    if arguments.format == "json":
        document: dict[str, Any] = {
            "question": asdict(question),
            "recommended": rows[0].mechanism,
            "rows": [row_json(one) for one in rows],
            "metric": None if own is None else row_json(own),
        }
        if metric is not None:
            document["people_a_report"] = people_a_report(metric)
        if question.kind == "strings":
            document["found_unlisted"] = found_unlisted(rows[0])
        if arguments.simulate is not None:
            document["simulated"] = simulate(question, simulated, arguments.seed)
        say(json.dumps(document, indent=1))
    else:
        show(question, rows, own, metric)
        if arguments.simulate is not None:
            show_simulated(simulate(question, simulated, arguments.seed))
    if arguments.plot:
        plot(question, [*rows, *([own] if own else [])], arguments.plot)
        print(visible(f"drawn to {arguments.plot}"), file=sys.stderr)  # noqa: T201 beside the answer
    return 0


def _rows(arguments: argparse.Namespace, question: MetricDraft, metric: Metric | None) -> list[Row]:
    """The recommended mechanism and the others, with the figure worked out that was not given."""
    goal = arguments.detect if arguments.error is None else arguments.error
    epsilon = arguments.epsilon
    if metric is not None and epsilon is None and (goal is None or arguments.reports is None):
        epsilon = metric.epsilon
    if sum(figure is not None for figure in (arguments.reports, epsilon, goal)) != 2:  # noqa: PLR2004 of three
        raise BadParameter(
            "give two of --reports, --epsilon and --error or --detect: the third is worked out; "
            "for example: hubbub plan --values 128 --epsilon 1 --reports 100000"
        )
    target: Target = (
        (lambda one: one.detectable)
        if arguments.error is None
        else (lambda one: _error(one, arguments))
    )
    if goal is None:
        return plan(question, epsilon, arguments.reports)
    if arguments.reports is None:
        needed = [
            reports_for(question, name, parameters, target, goal)
            for name, parameters in question.suitable(epsilon).items()
        ]
        return ranked(needed, lambda one: one.reports)
    tried = [
        epsilon_for(question, name, arguments.reports, target, goal)
        for name in question.suitable(MIN_EPSILON)
    ]
    found = [one for one in tried if one is not None]
    if not found:
        raise BadParameter(
            f"{arguments.reports:,} reports are too few for that at any epsilon up to 16; "
            "ask for less, or gather more"
        )
    return ranked(found, lambda one: one.epsilon)


def _error(one: Row, arguments: argparse.Namespace) -> float:
    return one.stderr if arguments.whose == REPORTERS else one.population


def _question(arguments: argparse.Namespace) -> tuple[MetricDraft, Metric | None]:
    """What is asked, and the metric that it is from."""
    permanent = arguments.permanent_epsilon
    kinds = ("values", "strings", "mean", "ranges", "set", "parts", "vector")
    given = [kind for kind in kinds if getattr(arguments, kind) is not None]
    if arguments.metric and len(arguments.metric) == 1 and len(given) <= 1:
        [metric] = chosen_metrics(arguments)
        if given and metric.randomizer.VALUES != "strings":
            raise BadParameter(f'--strings goes with strings, which "{metric.name}" has not')
        return _question_of(metric, arguments.strings or 100), metric
    if arguments.metric or len(given) != 1:
        raise BadParameter(
            "say what is asked: one --metric of a catalog; or one of --values, --strings, --mean, "
            "--ranges, --set, --parts, --vector; for example: hubbub plan --values 128 --epsilon 1 "
            "--reports 100000, or hubbub plan metrics.toml --metric theme --reports 50000"
        )
    [kind] = given
    try:
        return _draft_of(kind, getattr(arguments, kind), permanent), None
    except BadParameter as error:
        asked = _EXAMPLES.get(kind)
        example = f"; for example: hubbub plan {asked} --epsilon 1 --reports 1e5" if asked else ""
        raise BadParameter(f"--{kind}: {error}{example}") from None


def _draft_of(kind: str, asked: Any, permanent: float | None) -> MetricDraft:
    """What one of the options asks, whose figures these are."""
    match kind:
        case "values":
            return MetricDraft("values", _size(asked, 2), permanent_epsilon=permanent)
        case "strings":
            return MetricDraft("strings", _size(asked, 1), permanent_epsilon=permanent)
        case "mean":
            return MetricDraft("mean", 1, *asked)
        case "set":
            size, most = asked
            if not 1 <= most <= _size(size, 2):
                raise BadParameter(f"{most} of {size} values told are outside [1, {size}]")
            return MetricDraft("sets", size, most=most)
        case "parts":
            return _draft_by(PairedParts(1.0, tuple(asked)))
        case _:
            return _of_steps(kind, *asked)


def _of_steps(kind: str, size: float, *ends: float) -> MetricDraft:
    """Parts of a range, or a vector, whose one end is its length."""
    number = _whole(str(size))
    if kind == "vector":
        return _draft_by(VectorCodes(1.0, number, max_length=ends[0]))
    low, high = ends
    return MetricDraft("ranges", _size(number, 2), low, high)


def _size(number: int, least: int) -> int:
    if not least <= number <= _MAX_VALUES:  # as many as a bundle may list
        raise BadParameter(f"{number} values are outside [{least}, {_MAX_VALUES}]")
    return number


def _question_of(metric: Metric, strings: int) -> MetricDraft:
    permanent = metric.lifetime_loss if metric.memoized else None
    return _draft_by(metric.randomizer, size=strings, permanent_epsilon=permanent)


def _draft_by(mechanism: AnyMechanism, **others: Any) -> MetricDraft:
    """What a mechanism asks. others: fields that it does not decide."""
    return MetricDraft(**{**others, **family_for(mechanism).question(mechanism)})
