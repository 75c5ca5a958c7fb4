"""`hubbub plan central`: what a crowd gives, by how private each report is by itself."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from math import sqrt
from typing import Any, Final, Literal

import numpy as np

from hubbub.analysis.families import family_for
from hubbub.analysis.strings.tree_search import found_from
from hubbub.authoring.crowds.crowd_geometry import noisy_parts
from hubbub.authoring.crowds.crowd_strings import planned_strings, string_errors
from hubbub.authoring.crowds.crowd_table import NO_DUMMIES
from hubbub.catalog import CentralPromise, Metric
from hubbub.catalog.crowds.central import CROWD_TREE
from hubbub.catalog.crowds.central_fields import CROWD_PARTS, DEVICES, NOISE
from hubbub.catalog.mechanism_choice import AUTO
from hubbub.cli.planning.central_numbers import (
    in_catalog,
    local_epsilon_text,
    plan_numbers,
    what_is_trusted,
)
from hubbub.cli.planning.central_tables import (
    crowd_mechanisms_of,
    errors_of_tables,
    show_tables,
)
from hubbub.cli.planning.model_crowds import plan_rounds
from hubbub.cli.planning.subject import SubjectOptions, draft_of
from hubbub.cli.terminal.output import explain, listing, say, say_json
from hubbub.errors import BadParameter
from hubbub.errors.grammar import several
from hubbub.fields.rules import Interval
from hubbub.mechanisms import build
from hubbub.mechanisms.even_noise import even_lies
from hubbub.mechanisms.gradient import KINDS
from hubbub.mechanisms.probability import MAX_EPSILON, MIN_EPSILON
from hubbub.mechanisms.tree import PrefixTree
from hubbub.privacy.amplification import DELTA
from hubbub.privacy.crowd import ExactAccountant, what_decides
from hubbub.privacy.metric_draft import MetricDraft
from hubbub.privacy.planner import plan
from hubbub.privacy.shuffled_epoch import ShuffledEpoch
from hubbub.privacy.shuffled_histogram import central_epsilon
from hubbub.programs.command_line import command, number_or
from hubbub.programs.options import Group, option, options

_EPILOG: Final = """
examples:
  hubbub plan central --values 16 --reports 30000 --epsilon 1
  hubbub plan central --values 16 --reports 30000 --epsilon 1 --dummies auto
  hubbub plan central --strings 1000 --reports 30000 --epsilon 1
  hubbub plan central --model logistic --features 64 --reports 24000 --epsilon 1
"""
_PROMISE: Final = Group("a central promise")
_MODEL: Final = Group("a model, instead of a question")
# Local epsilons that are shown below the largest one.
_FLOORS: Final = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 12.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """One way to be private. Standard errors, in reports, of a rare value and of one in ten."""

    way: str
    epsilon_local: float | None
    epsilon_central: float
    stderr_rare: float
    stderr_tenth: float


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


@command(
    "plan central",
    text="show the errors of a crowd and the local epsilon of its reports",
    epilog=_EPILOG,
)
def _central(options: CentralOptions) -> None:
    promise = CentralPromise(
        epsilon=options.epsilon,
        crowd=options.reports,
        delta=options.delta,
        honest=options.honest,
        max_local_epsilon=options.max_local,
    )
    as_json = options.format == "json"
    if options.model is not None:
        others = [
            f.name for f in fields(SubjectOptions) if getattr(options.subject, f.name) != f.default
        ]
        if others:
            raise BadParameter(f"--model goes alone: leave out {', '.join(others)}")
        if options.dummies:
            raise BadParameter("--dummies do not go with --model; leave them out")
        plan_rounds(options.model, options.features, options.classes, promise, as_json=as_json)
        return
    question, metric = draft_of(options.subject)
    dummies = options.dummies or (_dummies_of(metric) if metric else 0)
    if question.kind == "sets":
        raise BadParameter(
            "sets have no crowd: plan them without central; each report keeps its own epsilon"
        )
    noise = dummies if dummies in (AUTO, NOISE) else ""
    noisy = noise and question.kind in ("mean", "parts")
    if dummies and question.kind != "values" and not noisy:
        raise BadParameter(
            "--dummies go only with listed values, noise also with a mean and parts: leave them out"
        )
    if question.kind in ("mean", "ranges", "vector"):
        floors = [floor for floor in _FLOORS if promise.epsilon < floor < promise.max_local_epsilon]
        floors.append(promise.max_local_epsilon)
        plan_numbers(promise, question, floors, str(noise), as_json=as_json)
        return
    promise = _padded(promise, dummies, question)
    of = {"strings": _of_strings, "parts": _of_parts}.get(question.kind, _of_values)
    stderr = 2 * sqrt(2) / promise.epsilon  # one person moves one report from one count to another
    curator = _row("trusted curator, Laplace", None, promise.epsilon, (stderr, stderr))
    ways = [*of(promise, question), curator]
    if as_json:
        document: dict[str, Any] = {
            "reports": promise.crowd,
            question.kind: question.size,
            "central": promise.epsilon,
            "delta": promise.delta,
            "honest": promise.honest,
            **{name: getattr(promise, name) for name in NO_DUMMIES},
            "rows": [asdict(way) for way in ways],
        }
        if question.kind == "parts":
            rows = errors_of_tables(promise, crowd_mechanisms_of(promise, question.parts))
            document["tables"] = [asdict(row) for row in rows]
        if question.kind == "strings":
            local, share = _found_unlisted(promise)
            document["tree"] = {"epsilon_local": local, "found_from": share}
        say_json(document)
    else:
        _show(promise, question, ways)


def _dummies_of(metric: Metric) -> int | str:
    """The `dummies` of a catalog's metric."""
    if metric.dummies_scale:
        return NOISE
    return DEVICES if metric.dummies_each else metric.dummies


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


def _row(way: str, local: float | None, central: float, errors: Iterable[float]) -> _Way:
    """A row; `errors` are standard errors of a rare value and of one in ten."""
    rare, tenth = errors
    return _Way(
        way=way,
        epsilon_local=local,
        epsilon_central=central,
        stderr_rare=rare,
        stderr_tenth=tenth,
    )


def _way(
    name: str, crowd: ShuffledEpoch, promise: CentralPromise, errors: tuple[float, float]
) -> _Way:
    """A crowd as a row."""
    return _row(name, crowd.epsilon_local, central_epsilon(crowd, promise.delta), errors)


def _of_values(promise: CentralPromise, question: MetricDraft) -> list[_Way]:
    """Rows of crowds at each floor, and of reports that keep the promise individually."""
    reports, central = promise.crowd, promise.epsilon
    most = ExactAccountant().largest(promise, question.size)
    ways = [_crowd(promise, question, local) for local in (*_below(central, most), most)]
    [best, *_] = plan(question, central, reports)
    alone = build(best.mechanism, **best.parameters)
    errors = (sqrt(alone.variance(share * reports, reports)) for share in (0.0, 0.1))
    return [*ways, _row(f"alone, {best.mechanism}", central, central, errors)]


def _of_strings(promise: CentralPromise, question: MetricDraft) -> list[_Way]:
    """The same for strings, with the best number of hash buckets at each floor."""
    reports, central, ways = promise.crowd, promise.epsilon, list[_Way]()
    for floor in (*_below(central, promise.max_local_epsilon), promise.max_local_epsilon):
        way = _hashed_crowd(replace(promise, max_local_epsilon=floor))
        if not ways or way.epsilon_local != ways[-1].epsilon_local:
            ways.append(way)
    [best, *_] = plan(question, central, reports)
    alone = build(best.mechanism, **best.parameters)
    shares = np.array([0.1, *[0.9 / question.size] * question.size])
    strings = [*question.values(), "one more"]
    expected = family_for(alone).expected(alone, strings, shares, reports)
    errors = (reports * float(values[0]) for values in (expected.absent, expected.stderrs))
    return [*ways, _row(f"alone, {best.mechanism}", central, central, errors)]


def _of_parts(promise: CentralPromise, question: MetricDraft) -> list[_Way]:
    """Rows of crowds with two, three or all parts per report, and of individual reports with two.

    The errors are those of the first table of two, or of three, or, with all, of all parts.
    """
    reports, central, ways = promise.crowd, promise.epsilon, list[_Way]()
    for number, mechanism in crowd_mechanisms_of(promise, question.parts).items():
        whole = bool(promise.noise) and number == len(question.parts)
        lies = even_lies(mechanism, mechanism.privacy_loss())
        crowd = ShuffledEpoch(
            reports=reports,
            categories=lies.categories,
            epsilon_local=lies.epsilon,
            honest=promise.honest,
            groups=lies.groups,
            noise_dummies=promise.noise if whole else None,
        )
        errors = _cell_errors(mechanism, reports)
        name = f"crowd, tables of {number}"
        if whole:
            name, errors = f"crowd, all {number} parts", (crowd.stderr(0.0), crowd.stderr(0.1))
        ways.append(_way(name, crowd, promise, errors))
    alone = build(CROWD_PARTS, epsilon=central, sizes=question.parts)
    errors = _cell_errors(alone, reports)
    return [*ways, _row("alone, tables of 2", central, central, errors)]


def _cell_errors(mechanism: Any, reports: int) -> tuple[float, float]:
    """Standard errors of a cell of the first table: of one that nobody holds, of one in ten."""
    examples = [mechanism.with_cell(0, turn) for turn in (0, 1)]
    expected = family_for(mechanism).expected(mechanism, examples, np.array([0.1, 0.9]), reports)
    return reports * float(expected.absent[0]), reports * float(expected.stderrs[0])


def _hashed_crowd(promise: CentralPromise) -> _Way:
    reports, accountant = promise.crowd, ExactAccountant()
    planned = planned_strings({"mechanism": AUTO}, promise, accountant)
    width, hashes = int(planned.categories), planned.groups
    local = accountant.local_epsilon(promise, width, hashes)
    crowd = ShuffledEpoch(
        reports=reports, categories=width, epsilon_local=local, honest=promise.honest, groups=hashes
    )
    errors = string_errors(width, hashes, local, reports)
    return _way(f"crowd, {hashes} x {width:,} buckets", crowd, promise, errors)


def _found_unlisted(promise: CentralPromise) -> tuple[float, float]:
    """For a prefix tree in such a crowd: local epsilon, and smallest share that it finds."""
    planned = planned_strings({"mechanism": CROWD_TREE}, promise, ExactAccountant())
    local = planned.epsilon or promise.epsilon
    return local, found_from(PrefixTree(epsilon=local), promise.crowd)


def _below(central: float, most: float) -> list[float]:
    """Smaller floors, well apart from the largest one, without the promise itself."""
    return [floor for floor in _FLOORS if central < floor < most - 0.25]


def _crowd(promise: CentralPromise, question: MetricDraft, local: float) -> _Way:
    crowd = ShuffledEpoch(
        reports=promise.crowd,
        categories=question.size,
        epsilon_local=local,
        honest=promise.honest,
        dummies=promise.dummies,
        each=promise.dummies_each,
        noise_dummies=promise.noise,
    )
    return _way("crowd", crowd, promise, (crowd.stderr(0.0), crowd.stderr(0.1)))


def _whose(question: MetricDraft) -> str:
    match question.kind:
        case "strings":
            return "strings"
        case "parts":
            return f"{len(question.parts)} parts"
        case _:
            return f"{question.size:,} values"


def _show(promise: CentralPromise, question: MetricDraft, ways: Sequence[_Way]) -> None:
    dummies_text = f" and {promise.dummies:,} dummies" if promise.dummies else ""
    dummies_text = (
        f" with {promise.dummies_each:g} dummies each" if promise.dummies_each else dummies_text
    )
    if promise.noise:
        named = "cell" if question.kind == "parts" else "value"
        dummies_text = f" and {promise.dummies_shift} dummies of each {named} on average"
    listing(
        f"central epsilon {promise.epsilon:g} at delta {promise.delta:g}: "
        f"{several(promise.crowd, 'report')}{dummies_text} of " + _whose(question),
        ways,
        {
            "way": "{way}",
            "local epsilon": local_epsilon_text,
            "central epsilon": "{epsilon_central:.3f}",
            "error of a rare value": "{stderr_rare:,.4g}",
            "of one in ten": "{stderr_tenth:,.4g}",
        },
    )
    say(f"errors are standard errors in reports; {what_is_trusted(promise)}")
    best = max(way.epsilon_local or 0 for way in ways if way.way.startswith("crowd"))
    more = f", dummies = {promise.dummies}" if promise.dummies else ""
    more = f", dummies_each = {promise.dummies_each:g}" if promise.dummies_each else more
    more = f', dummies = "{NOISE}"' if promise.noise else more
    if len(question.parts) > 2 and not promise.noise:  # noqa: PLR2004 tables of three need as many
        more += "; for tables of 3 also ways = 3"
    if question.kind == "strings":
        say("for a thousand strings whose frequencies follow Zipf's law; errors include collisions")
        local, share = _found_unlisted(promise)
        holders = f"what {share:.3g} of the reports, {share * promise.crowd:,.0f}, hold"
        say(
            f'among unlisted strings mechanism = "tree" finds at a local epsilon of '
            f"{local:.4g}, "
            + (f"{holders}, 95 times in 100" if share < 1 else "none in so few reports")
        )
        more = ', domain = "string", mechanism = "auto"'
    say(in_catalog(promise, best) + more)
    if question.kind == "parts":
        if rows := errors_of_tables(promise, crowd_mechanisms_of(promise, question.parts)):
            show_tables(rows)
    elif promise.dummies or promise.dummies_each or promise.noise:
        say(_worth(promise, question, ways))
    lowest = min(way.epsilon_central for way in ways if way.epsilon_local == best)
    listed = question.size if question.kind == "values" else None
    if sentence := what_decides(promise, best, lowest, listed):
        explain(sentence)


def _worth(promise: CentralPromise, question: MetricDraft, ways: Sequence[_Way]) -> str:
    """Says whether dummies are better, by the exact errors of both."""
    padded = next(way for way in reversed(ways) if way.way == "crowd")
    local = ExactAccountant().largest(replace(promise, **NO_DUMMIES), question.size)
    alone = ShuffledEpoch(
        reports=promise.crowd, categories=question.size, epsilon_local=local, honest=promise.honest
    )
    errors = (
        ("a rare value", padded.stderr_rare, alone.stderr(0.0)),
        ("one in ten", padded.stderr_tenth, alone.stderr(0.1)),
    )
    text = ", ".join(f"{without:,.4g} of {name}" for name, _, without in errors)
    if all(with_them >= without for _, with_them, without in errors):
        return f"leave the dummies out: without them the errors are {text}, none larger"
    better = " and ".join(name for name, with_them, without in errors if with_them < without)
    return f"the dummies win for {better}: without them the errors are {text}"
