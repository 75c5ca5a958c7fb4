"""`hubbub plan`: before launch, which mechanism, how many reports, which epsilon, what machines."""

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final, Literal

from hubbub.analysis import POPULATION, REPORTERS, Whose
from hubbub.catalog import Metric
from hubbub.cli.planning.attack import ATTACK
from hubbub.cli.planning.capacity import CAPACITY
from hubbub.cli.planning.central import CENTRAL
from hubbub.cli.planning.models import MODEL
from hubbub.cli.planning.plot import plot
from hubbub.cli.planning.subject import SubjectOptions, draft_of
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
from hubbub.fields.rules import Interval
from hubbub.mechanisms.probability import MIN_EPSILON
from hubbub.privacy.metric_draft import MetricDraft
from hubbub.privacy.planner import Row, Target, epsilon_for, plan, ranked, reports_for, row
from hubbub.programs.command_line import Command
from hubbub.programs.options import Exclusive, Group, option, options
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
"""
_FIGURES: Final = Group("two of these three; the third is computed")
_GOAL: Final = Exclusive()


@options
class PlanOptions:
    """Options of `hubbub plan`."""

    subject: SubjectOptions
    reports: int | None = option("number of reports", default=None, metavar="N", group=_FIGURES)
    epsilon: float | None = option("privacy loss of one report, nats", default=None, group=_FIGURES)
    error: float | None = option(
        "standard error of a share that you want",
        default=None,
        metavar="SHARE",
        group=_FIGURES,
        exclusive=_GOAL,
    )
    detect: float | None = option(
        "smallest share that should be detected",
        default=None,
        metavar="SHARE",
        group=_FIGURES,
        exclusive=_GOAL,
    )
    whose: Whose = option(
        "what --error refers to: shares of the population, or shares of those who report "
        "(%(default)s)",
        default=POPULATION,
        needs="error",
    )
    permanent_epsilon: float | None = option(
        "privacy loss of a lifetime, for values that are reported repeatedly", default=None
    )
    simulate: bool = option(
        "draw totals with the first mechanism and show true shares beside estimated shares",
        default=False,
    )
    seed: int = option(
        "seed of --simulate (%(default)s)", default=1, within=Interval(0), needs="simulate"
    )
    plot: Path | None = option("draw to FILE (.png or .svg)", default=None, metavar="FILE")
    format: Literal["table", "json"] = option("format of the output (%(default)s)", default="table")


def _plan(options: PlanOptions) -> int:
    question, metric = draft_of(options.subject)
    if options.permanent_epsilon is not None:
        if metric is not None or question.kind not in {"values", "strings"}:
            raise BadParameter("--permanent-epsilon goes with --values and --strings: leave it out")
        question = replace(question, permanent_epsilon=options.permanent_epsilon)
    rows = _rows(options, question, metric)
    own = None
    if metric is not None and options.reports is not None:
        own = row(question, metric.mechanism, metric.arguments, options.reports)
    drawing = simulate(question, own or rows[0], options.seed) if options.simulate else None
    if options.format == "json":
        document = _document(question, rows, own, metric)
        say(json.dumps(document | ({"simulated": drawing} if drawing else {}), indent=1))
    else:
        show(question, rows, own, metric)
        if drawing:
            show_simulated(drawing)
    if options.plot:
        plot(question, [*rows, *([own] if own else [])], options.plot)
        print(visible(f"drawn to {options.plot}"), file=sys.stderr)  # noqa: T201 beside the answer
    return 0


def _document(
    question: MetricDraft, rows: list[Row], own: Row | None, metric: Metric | None
) -> dict[str, Any]:
    document: dict[str, Any] = {
        "question": asdict(question),
        "recommended": rows[0].mechanism,
        "rows": [row_json(plan_row) for plan_row in rows],
        "metric": None if own is None else row_json(own),
    }
    if metric is not None:
        document["people_a_report"] = people_a_report(metric)
    if question.kind == "strings":
        document["found_unlisted"] = found_unlisted(rows[0])
    return document


def _rows(options: PlanOptions, question: MetricDraft, metric: Metric | None) -> list[Row]:
    """The recommended mechanism and the others, with the figure worked out that was not given."""
    goal = options.detect if options.error is None else options.error
    reports, epsilon, target = options.reports, options.epsilon, _target(options)
    if metric is not None and epsilon is None and (goal is None or reports is None):
        epsilon = metric.epsilon
    if reports is not None and epsilon is not None and goal is None:
        return plan(question, epsilon, reports)
    if reports is None and epsilon is not None and goal is not None:
        needed = [
            reports_for(question, name, parameters, target, goal)
            for name, parameters in question.suitable(epsilon).items()
        ]
        return ranked(needed, lambda item: item.reports)
    if reports is None or epsilon is not None or goal is None:
        raise BadParameter(
            "give two of --reports, --epsilon and --error or --detect: the third is worked out; "
            "for example: hubbub plan --values 128 --epsilon 1 --reports 100000"
        )
    tried = [
        epsilon_for(question, name, reports, target, goal)
        for name in question.suitable(MIN_EPSILON)
    ]
    rows = [item for item in tried if item is not None]
    if not rows:
        raise BadParameter(
            f"{reports:,} reports are too few for that at any epsilon up to 16; "
            "ask for less, or gather more"
        )
    return ranked(rows, lambda item: item.epsilon)


def _target(options: PlanOptions) -> Target:
    """The figure of a row that has to reach the goal."""
    if options.error is None:
        return lambda row: row.detectable
    return (lambda row: row.stderr) if options.whose == REPORTERS else (lambda row: row.population)


COMMANDS: Final = (
    Command(name="plan", run=_plan, epilog=_EPILOG),
    CENTRAL,
    MODEL,
    ATTACK,
    CAPACITY,
)
