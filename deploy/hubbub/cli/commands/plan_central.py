"""`hubbub plan central`: crowds that keep a promise, beside reports alone and a curator."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from math import ceil, prod
from pathlib import Path
from typing import Any, Final, Literal

from hubbub.authoring.crowds.crowd_metric_fields import NO_DUMMIES
from hubbub.catalog import Crowd, Metric
from hubbub.catalog.crowds.crowd import DEVICES, NOISE, USUAL_MAX_LOCAL
from hubbub.catalog.mechanism_choice import AUTO
from hubbub.cli.commands.plan_model import plan_rounds
from hubbub.cli.commands.plan_table import tree_fields
from hubbub.cli.commands.planned_question import SubjectOptions, draft_of
from hubbub.cli.terminal.output import explain, listing, say, say_json
from hubbub.errors import BadParameter
from hubbub.errors.message_words import at_most, several
from hubbub.fields.field import fields_of
from hubbub.fields.rules import Interval
from hubbub.mechanisms.gradient import KINDS
from hubbub.mechanisms.probability import MAX_EPSILON, MIN_EPSILON
from hubbub.privacy.amplification import DELTA
from hubbub.privacy.central_plans import COUNTS, PLANS, CentralPlan
from hubbub.privacy.exact_accountant import what_decides
from hubbub.privacy.metric_draft import MetricDraft
from hubbub.programs.command_line import command, number_or
from hubbub.programs.option_parsing import Group, option, options

_FIELDS: Final = {field.name: field for field in fields_of(Metric)}


def plan_central(
    promise: Crowd, question: MetricDraft, dummies: int | str, catalog: Path, *, as_json: bool
) -> None:
    """Shows crowds that keep the promise at several local epsilons, and alternatives to a crowd.

    `dummies` are as in a catalog: a number, or a word for how they are chosen. `catalog` is the
    file for the fields. Raises BadParameter if there are too many buckets for a crowd of this size.
    """
    is_count = question.kind in COUNTS
    plan = PLANS[question.kind](promise, question, dummies)
    if is_count and isinstance(dummies, str) and plan.promise == promise:
        reason = "errors fall by 2.5% at most"
        if question.parts:
            reason = "a larger --max-local may change that"
        explain(f"no number of dummies is worth it: {reason}")
    if not as_json:
        _show(plan, question, catalog)
        return
    document: dict[str, Any] = {
        "reports": promise.reports,
        **({question.kind: question.size} if is_count else {"question": asdict(question)}),
        "central": promise.epsilon,
        "delta": promise.delta,
        "honest": promise.honest,
        **({name: getattr(plan.promise, name) for name in NO_DUMMIES} if is_count else {}),
        "rows": plan.ways,
    }
    if question.kind == "parts":
        document["tables"] = plan.tables
    if plan.tree:
        document["tree"] = {"epsilon_local": plan.tree.epsilon, "found_from": plan.found_from}
    say_json(document)


@dataclass(frozen=True, slots=True)
class _Question:
    """How a kind of question is shown; `name` formats a draft, and `errors` the cells of ways."""

    name: str
    errors: Mapping[str, str]
    of_what: str


_RARE_AND_TENTH: Final = {
    "error of a rare value": "{stderr_rare:,.4g}",
    "of one in ten": "{stderr_tenth:,.4g}",
}
_OF_MEAN: Final = {"error of the mean": "{stderr:.4%}"}
_OF_BUCKET: Final = {"error of a bucket that nobody holds": "{stderr:.4%}"}
_OF_NUMBER: Final = {"error of each number": "{stderr:.4%}"}
_OF_RANGE: Final = ", of its range, of people who are all alike"
_IN_REPORTS: Final = " in reports"
_QUESTIONS: Final[Mapping[str, _Question]] = {
    "values": _Question("{0.size:,} values", _RARE_AND_TENTH, _IN_REPORTS),
    "strings": _Question("strings", _RARE_AND_TENTH, _IN_REPORTS),
    "parts": _Question("{1} parts", _RARE_AND_TENTH, _IN_REPORTS),
    "mean": _Question("a mean", _OF_MEAN, ", of the range, where it is largest"),
    "ranges": _Question("{0.size:,} buckets of a range", _OF_BUCKET, ", of all reports"),
    "vector": _Question("the mean of {0.size:,} numbers", _OF_NUMBER, _OF_RANGE),
}


def _show(plan: CentralPlan, question: MetricDraft, catalog: Path) -> None:
    """Shows all ways as a table, what its two epsilons rest on, and the fields of a catalog."""
    promise, ways = plan.promise, plan.ways
    declared, is_count = _QUESTIONS[question.kind], question.kind in COUNTS
    name = declared.name.format(question, len(question.parts))
    mechanism = {"mechanism": lambda way: way["mechanism"] or ""}
    listing(
        f"central epsilon {promise.epsilon:g} at delta {promise.delta:g}: "
        f"{several(promise.reports, 'report')}"
        f"{_dummies_text(promise, question) if is_count else ''} of {name}",
        ways,
        {
            "way": "{way}",
            **({} if is_count else mechanism),
            "local epsilon": lambda way: (
                "none" if way["epsilon_local"] is None else at_most(way["epsilon_local"], ".3f")
            ),
            "central epsilon": lambda way: at_most(way["epsilon_central"], ".3f"),
            **declared.errors,
        },
        text_columns=1 if is_count else 2,
    )
    say(
        f"errors are standard errors{declared.of_what}; a crowd leaves whole, or not at all if it "
        f"has fewer reports, so plan with fewer than you expect; {promise.honest:.0%} of its "
        "reports are honest; the local epsilon holds even if all servers collude"
    )
    best = max(way["epsilon_local"] for way in ways if way["way"].startswith("crowd"))
    further_fields = ""
    if len(question.parts) > 2 and not promise.noise:  # noqa: PLR2004 tables of three need as many
        further_fields = "; for tables of 3 also ways = 3"
    if tree := plan.tree:
        say("for a thousand strings whose frequencies follow Zipf's law; errors include collisions")
        share = plan.found_from
        holders = f"what {share:.3g} of the reports, {share * promise.reports:,.0f}, hold"
        say(
            f"among unlisted strings {tree_fields(tree)} finds at a local epsilon of "
            f"{at_most(tree.epsilon, '.4g')}, "
            + (f"{holders}, 95 times in 100" if share < 1 else "none in so few reports")
        )
        further_fields = ', domain = "string", mechanism = "auto"'
    say(f"in {catalog}: {_catalog_fields(promise, best)}{further_fields}")
    if is_count:
        _say_dummies(plan)
        lowest = min(way["epsilon_central"] for way in ways if way["epsilon_local"] == best)
        value_count = question.size if question.kind == "values" else None
        if sentence := what_decides(promise, best, lowest, value_count):
            explain(sentence)


def _dummies_text(promise: Crowd, question: MetricDraft) -> str:
    """The dummies beside the reports, of each value or device and in all; "" without any."""
    if promise.noise:
        unit, total = ("cell" if question.parts else "value"), promise.dummies_shift
        cells = prod(question.parts) if question.parts else question.size
        return f" and {total} dummies of each {unit} on average, {total * cells:,} in all,"
    if promise.dummies_each:
        total = round(promise.dummies_each * promise.reports)
        return f" with {promise.dummies_each:g} dummies each, {total:,} in all,"
    return f" and {promise.dummies:,} dummies" if promise.dummies else ""


def _say_dummies(plan: CentralPlan) -> None:
    """Says whether dummies are better, by the exact errors of both; of parts for each table."""
    if plan.tables:

        def error_text(error: float | None) -> str:
            return "" if error is None else f"{error:,.4g}"

        listing(
            "standard errors of each table's cells, in reports: reports of as many parts as the "
            "table, reports of all parts with noise dummies, and a metric of listed cells with "
            "noise dummies for each table of two, which together keep the promise",
            plan.tables,
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
    if not plan.plain:
        return
    padded = next(way for way in reversed(plan.ways) if way["way"] == "crowd")
    with_them = padded["stderr_rare"], padded["stderr_tenth"]
    errors = list(zip(("a rare value", "one in ten"), with_them, plan.plain, strict=True))
    text = ", ".join(f"{without:,.4g} of {name}" for name, _, without in errors)
    if better := [name for name, with_dummies, without in errors if with_dummies < without]:
        say(f"the dummies win for {' and '.join(better)}: without them the errors are {text}")
    else:
        say(f"leave the dummies out: without them the errors are {text}, none larger")


def _catalog_fields(promise: Crowd, epsilon_local: float) -> str:
    """The catalog's fields for this promise, but for those whose default it has."""
    max_local = promise.max_local_epsilon
    fields: dict[str, Any] = {"central_epsilon": promise.epsilon, "crowd": promise.reports}
    if epsilon_local > USUAL_MAX_LOCAL or max_local < USUAL_MAX_LOCAL:
        fields["max_local_epsilon"] = min(ceil(epsilon_local), max_local)
    fields |= {
        name: getattr(promise, name)
        for name in ("delta", "honest", "dummies", "dummies_each")
        if getattr(promise, name) != _FIELDS[name].default
    }
    if promise.noise:
        fields["dummies"] = f'"{NOISE}"'
    return ", ".join(f"{name} = {_toml(fields[name])}" for name in fields)


def _toml(value: Any) -> str:
    """A value in TOML: a float with six digits if they are all that it has."""
    is_short = isinstance(value, float) and float(f"{value:g}") == value
    return f"{value:g}" if is_short else str(value)


def check_as_fields(**values: float | str) -> None:
    """Raises BadParameter, by the option's name, for a value that no catalog may contain."""
    for name, value in values.items():
        if problem := _FIELDS[name].entry.kind.problem(value):
            option = "reports" if name == "crowd" else name
            raise BadParameter(f"--{option} {_toml(value)}: in a catalog, {name} {problem}")


_PROMISE: Final = Group("a central promise")
_MODEL: Final = Group("a model, instead of a question")


@options
class CentralOptions:
    subject: SubjectOptions
    model: str | None = option("kind of the model", choices=KINDS, group=_MODEL)
    features: int | None = option(
        "number of columns; a list of values has a column for each value",
        metavar="N",
        group=_MODEL,
        needs="model",
    )
    classes: int | None = option(
        "number of classes of the label, for softmax", metavar="K", group=_MODEL, needs="model"
    )
    reports: int = option("number of reports", metavar="N", group=_PROMISE)
    epsilon: float = option(
        "privacy loss of a person in a whole epoch, nats",
        within=Interval(MIN_EPSILON, MAX_EPSILON),
        group=_PROMISE,
    )
    delta: float = option("delta of the promise (%(default)s)", default=DELTA, group=_PROMISE)
    honest: float = option(
        "share of reports that come from honest devices (%(default)s)", default=0.9, group=_PROMISE
    )
    max_local: float = option(
        "largest local epsilon of one report (%(default)s)",
        default=MAX_EPSILON,
        within=Interval(MIN_EPSILON, MAX_EPSILON),
        group=_PROMISE,
    )
    dummies: int | str = option(
        f"dummies that the shuffler adds to a crowd; {AUTO}: as many as are worth their cost; "
        f"{DEVICES}: the devices send them; {NOISE}: a secret number for each value (%(default)s, "
        "or those of the --metric)",
        default=0,
        parse=number_or(AUTO, DEVICES, NOISE),
        metavar="N",
        group=_PROMISE,
    )
    format: Literal["table", "json"] = option("format of the output (%(default)s)", default="table")


@command("plan central", text="show the errors of a crowd and the local epsilon of its reports")
def _central(options: CentralOptions) -> None:
    promise = Crowd(
        epsilon=options.epsilon,
        reports=options.reports,
        delta=options.delta,
        honest=options.honest,
        max_local_epsilon=options.max_local,
    )
    check_as_fields(delta=options.delta, honest=options.honest)
    as_json = options.format == "json"
    if options.model is not None:
        others = [
            f.name if f.name == "catalog" else f"--{f.name}"
            for f in fields(SubjectOptions)
            if getattr(options.subject, f.name) != f.default
        ]
        if others:
            raise BadParameter(f"--model excludes other questions: leave out {', '.join(others)}")
        if options.dummies:
            raise BadParameter("--dummies cannot be combined with --model; leave it out")
        plan_rounds(options.model, options.features, options.classes, promise, as_json=as_json)
        return
    check_as_fields(crowd=options.reports, dummies=options.dummies)
    question, metric = draft_of(options.subject)
    dummies = options.dummies
    if metric and metric.crowd and not dummies:
        crowd = metric.crowd
        dummies = NOISE if crowd.dummies_scale else DEVICES if crowd.dummies_each else crowd.dummies
    if question.kind == "sets":
        raise BadParameter(
            "sets have no crowd: plan them without central; each report keeps its own epsilon"
        )
    noisy = dummies in (AUTO, NOISE) and question.kind in ("mean", "parts")
    if dummies and question.kind != "values" and not noisy:
        raise BadParameter(
            "--dummies go only with listed values, noise also with a mean and parts: leave them out"
        )
    plan_central(promise, question, dummies, options.subject.catalog, as_json=as_json)
