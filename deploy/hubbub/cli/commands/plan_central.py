"""`hubbub plan central`: what a crowd gives, by how private each report is by itself."""

from dataclasses import fields
from typing import Final, Literal

from hubbub.catalog import Crowd
from hubbub.catalog.auto_choice import AUTO
from hubbub.catalog.crowds.crowd import DEVICES, NOISE
from hubbub.cli.commands.plan_model import plan_rounds
from hubbub.cli.planning.central import check_as_fields, plan_central
from hubbub.cli.planning.subject import SubjectOptions, draft_of
from hubbub.errors import BadParameter
from hubbub.fields.rules import Interval
from hubbub.mechanisms.gradient import KINDS
from hubbub.mechanisms.probability import MAX_EPSILON, MIN_EPSILON
from hubbub.privacy.amplification import DELTA
from hubbub.programs.command_line import command, number_or
from hubbub.programs.options import Group, option, options

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
    plan_central(promise, question, dummies, as_json=as_json)
