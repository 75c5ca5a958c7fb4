"""Reads one [metrics.NAME] table and reports all of its problems, even with a bad mechanism."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from hubbub.authoring.auto_mechanism import own_fields, resolve, with_sole_choice, with_wishes
from hubbub.authoring.crowds.accountant import Accountant
from hubbub.authoring.crowds.crowd_metric_fields import crowd_mechanisms, crowd_table
from hubbub.authoring.metrics_toml.domain import (
    ranges_of,
    read_candidates,
    read_values,
    table_with_domain,
)
from hubbub.authoring.table_reader import read_fields, refuse_unknown
from hubbub.catalog.crowds.central_conflicts import PROMISE
from hubbub.catalog.crowds.crowd import Crowd
from hubbub.catalog.default_and_cover import NONE
from hubbub.catalog.epochs_and_periods import period_conflicts
from hubbub.catalog.experiments import Experiment, experiment_named
from hubbub.catalog.limits_and_budgets import Caps, Limits, conflicts
from hubbub.catalog.mechanism_choice import AUTO
from hubbub.catalog.metric import Metric
from hubbub.catalog.values.part_values import size_of
from hubbub.catalog.values.value_kind import OTHER, Complain
from hubbub.catalog.values.value_kind_registry import KINDS, LISTED, kind_named
from hubbub.errors import BadParameter, UnknownMetric
from hubbub.fields.field import CatalogField, arguments_of, fields_of
from hubbub.mechanisms import REGISTRY, is_number
from hubbub.mechanisms.probability import MIN_EPSILON
from hubbub.mechanisms.wave import SquareWave

# Stand for what follows from a central promise where that is wrong, so that this alone is told.
_UNKNOWN: Final = {"epsilon": MIN_EPSILON, "min_batch": 10, "reports": 1}
# Stand for fields that are wrong, so that the mechanism is built and its own problem told as well.
# They hold what everything agrees with; other fields that are wrong are left out.
_STAND_INS: Final[Mapping[str, Any]] = {
    "description": "wrong",
    "owner": "wrong",
    "expires": date.min,
    "epoch": "day",
    "min_batch": 10,
    "limits": Limits(1, 1e12),
}

# Of an argument that a mechanism's message names, the field from which it is computed.
_FIELD_OF_ARGUMENT: Final = {"categories": "values", "size": "width"}
# The fields from which a mechanism is built.
_DECISIVE: Final = (
    "epsilon",
    "values",
    "values_file",
    "parts",
    "coordinates",
    "steps",
    "weeks",
    "rate",
    "domain",
    "kind",
    "edges",
    "outside",
)


class Around(NamedTuple):
    """Context in which a metric's table is read: folder, caps and accountant of the catalog.

    `filled` is whether the catalog has `cover`; `experiments` are the catalog's, by name.
    """

    folder: Path
    caps: Caps
    accountant: Accountant | None
    filled: bool = False
    experiments: Mapping[str, Experiment] = MappingProxyType({})


def read_metric(
    name: str, table: dict[str, Any], context: Around, complain: Complain
) -> Metric | None:
    """The metric of one table; None after a complaint."""
    complained: set[str] = set()

    def wrong(field: str, problem: str) -> None:
        complained.add(field)
        complain(field, problem)

    fields = {field.name: field for field in fields_of(Metric) if field.entry.written}
    source_table = table_with_domain(table, wrong)
    table = with_sole_choice(source_table)
    mechanism: Any = table.get("mechanism")
    of_percentiles = mechanism == AUTO and "buckets" in table
    wishes = source_table if of_percentiles or table is not source_table else {}
    if fields["mechanism"].problem(mechanism):
        _look_without_mechanism(table, fields, wrong)
        return None
    values = read_values(fields["values"], mechanism, table, context.folder, wrong)
    kind = kind_named(table.get("kind"))
    values = _completed(values, table, wrong)
    table = _with_crowd(table, fields, values, context.accountant, wrong)
    mechanism = table["mechanism"]
    table = read_candidates(mechanism, table, context.folder, wrong)
    extras = own_fields(mechanism)
    # Those that are not the kind's were refused above, unless they follow from its own fields.
    takes = [*_names(fields), *(field.name for field in extras), *kind.NOT_ITS]
    refuse_unknown(table, takes, f'with mechanism = "{mechanism}"', wrong, owners=_mechanisms_with)
    for field in extras:
        if problem := _problem_with_own(mechanism, field, table):
            wrong(field.name, problem)
    settings = _independent_fields(table, wrong)
    if complained & {*_DECISIVE, *(item.name for item in extras)}:
        return None  # of which the mechanism is built
    if complained:
        if _makes_promise(table):
            return None  # and what follows from that is no news
        settings = {
            **_STAND_INS,
            **{n: value for n, value in settings.items() if n not in complained},
        }
    own_values = {field.name: table[field.name] for field in extras if field.name in table}
    try:
        categories = len(values) if values else None
        chosen, parameters, choice = resolve(settings, categories, own_values)
        settings |= {"mechanism": chosen, "parameters": parameters, "choice": choice}
        settings |= {"values": values, "ranges": ranges_of(table.get("parts"))}
        arguments = arguments_of(Metric, settings | _with_arms(settings, context.experiments))
        built = Metric(name=name, caps=context.caps, filled=context.filled, **arguments)
        ends = [*built.edges, *(built.parameters[end] for end in _ENDS if end in built.parameters)]
        if built.alert and ends:
            built.alert.check_says_something(min(ends), max(ends))
        built = with_wishes(wishes, built, wrong)
    except BadParameter as error:
        wrong(*_field_and_problem(str(error), {*fields, *(field.name for field in extras)}))
    return None if complained else built


def _field_and_problem(
    message: str, names: Collection[str], otherwise: str = "mechanism"
) -> tuple[str, str]:
    """The field that begins a message, as in "low: ..." and "low 9 is ...", and the problem."""
    field, _, problem = message.partition(": ")
    if field in names:
        return field, problem
    first_word = message.partition(" ")[0]
    field = _FIELD_OF_ARGUMENT.get(first_word, first_word)
    return (field if field in names else otherwise), message


def _with_arms(
    settings: Mapping[str, Any], experiments: Mapping[str, Experiment]
) -> dict[str, Any]:
    """The experiment that a table names, and its public fields together with the arms."""
    if "experiment" not in settings:
        return {}
    try:
        experiment = experiment_named(experiments, settings["experiment"])
    except UnknownMetric as error:
        separator = "" if str(error).endswith("?") else ";"
        remedy = "or add" if experiments else "add"
        table = f"[experiments.{settings['experiment']}]"
        raise BadParameter(f"experiment: {error}{separator} {remedy} {table}") from None
    rules = settings.get("breakdown", {})
    if experiment.name in rules:
        raise BadParameter(
            f"breakdown: names the experiment {experiment.name}, whose arms the SDK draws; leave "
            "it out of breakdown"
        )
    return {"experiment": experiment, "breakdown": {**rules, experiment.name: experiment.rules}}


_ENDS: Final = ("low", "high")


def _independent_fields(table: Mapping[str, Any], complain: Complain) -> dict[str, Any]:
    """Values of the independent fields; complains of those that conflict."""
    fields = read_fields(Metric, table, complain)
    if {"epsilon", "limits"} <= fields.keys():
        tiers = fields.get("tiers", ())
        for field, problem in conflicts(fields["epsilon"], fields["limits"], tiers).items():
            complain(field, problem)
    for field, problem in period_conflicts(fields).items():
        complain(field, problem)
    return fields


def _look_without_mechanism(
    table: Mapping[str, Any], fields: Mapping[str, CatalogField], complain: Complain
) -> None:
    """Complains of the mechanism, and of everything that is wrong with any mechanism."""
    parameters = [field for mechanism in (AUTO, *REGISTRY) for field in own_fields(mechanism)]
    names = {*_names(fields), *(field.name for field in parameters)}
    refuse_unknown(table, names, "for any mechanism", complain)
    entries = {**fields["values"].entry.others, "values": fields["values"].entry}
    for name in entries.keys() & table.keys():
        if problem := entries[name].kind.problem(table[name]):
            complain(name, problem)
    for name in sorted({field.name for field in parameters} & table.keys()):
        problems = [field.problem(table[name]) for field in parameters if field.name == name]
        if all(problems):
            complain(name, problems[0])
    if _makes_promise(table):
        table = {**_UNKNOWN, **table}
    _independent_fields(table, complain)


def _with_crowd(
    table: dict[str, Any],
    fields: Mapping[str, CatalogField],
    values: tuple[str, ...] | None,
    accountant: Accountant | None,
    complain: Complain,
) -> dict[str, Any]:
    """The table with everything that its central promise implies, if it has one."""
    if not _makes_promise(table):
        return table
    if table["mechanism"] == AUTO and "buckets" in table:
        # `haar` has no account of whole epochs.
        table = {**table, "mechanism": SquareWave.NAME}
    mechanism = table["mechanism"]
    unknown = dict(_UNKNOWN)
    if mechanism != AUTO:
        del unknown["reports"]
    promise = _central(table, fields, complain)
    extras = () if mechanism == AUTO else own_fields(mechanism)
    if promise and not any(_problem_with_own(mechanism, field, table) for field in extras):
        shape: dict[str, Any] = {} if "domain" in table else {"categories": len(values or "ab")}
        if "parts" in table or kind_named(table.get("kind")).CROWD:
            if values is None:
                return {**unknown, **table}
            shape = size_of(mechanism, values)
        if "parts" in table:
            shape |= {"ways": table["ways"]} if "ways" in table else {}
        try:
            return crowd_table(table, promise, shape, accountant, complain)
        except BadParameter as error:
            complain(*_field_and_problem(str(error), table, otherwise="crowd"))
    return {**unknown, **table}


def _makes_promise(table: Mapping[str, Any]) -> bool:
    """Whether a table has a central promise, or a part of one."""
    return any(table.get(name) is not None for name in PROMISE)


def _central(
    table: Mapping[str, Any], fields: Mapping[str, CatalogField], complain: Complain
) -> Crowd | None:
    for name, other in (("central_epsilon", "crowd"), ("crowd", "central_epsilon")):
        if table.get(name) is None:
            complain(name, f"{fields[name].entry.missing(name)}, beside {other}")
            return None
    if table.get("mechanism") not in (AUTO, *crowd_mechanisms(table)):
        tables_by_kind: dict[str, dict[str, Any]] = {
            "listed values": {},
            "parts": {"parts": {}},
            **{kind.NAME_OF_VALUES: {"kind": name} for name, kind in KINDS.items() if kind.CROWD},
            "strings": {"domain": "string"},
            "numbers": {"domain": "number"},
        }
        goes = "; ".join(
            f"{domain} with {', '.join(crowd_mechanisms(kind_table))}"
            for domain, kind_table in tables_by_kind.items()
        )
        complain(
            "crowd",
            f"cannot use {table.get('mechanism')} here, only {goes}; write mechanism = "
            f'"{AUTO}" for these values, or leave central_epsilon and crowd out',
        )
        return None
    terms = {name: table[name] for name, field in fields.items() if field.part and name in table}
    epsilon = {"epsilon": table["epsilon"]} if "epsilon" in table else {}
    checked = terms | epsilon | {"epoch": table.get("epoch")}
    if any(fields[name].problem(value) for name, value in checked.items()):
        return None  # which is told with all other fields
    crowd: Crowd = arguments_of(
        Metric, {name: fields[name].entry.kind.read(value) for name, value in terms.items()}
    )["crowd"]
    if isinstance(table.get("dummies"), str):
        crowd = replace(crowd, dummies=0)
    return replace(crowd, epochs=crowd.epochs_together(table["epoch"]))


def _mechanisms_with(name: str) -> list[str]:
    return [
        mechanism
        for mechanism in (AUTO, *REGISTRY)
        if any(field.name == name for field in own_fields(mechanism))
    ]


def _names(fields: Mapping[str, CatalogField]) -> list[str]:
    """All table keys for these fields, with alternative ones."""
    return [name for field in fields.values() for name in (field.name, *field.entry.others)]


def _problem_with_own(mechanism: str, field: CatalogField, table: Mapping[str, Any]) -> str:
    """The problem with one of the mechanism's own fields; "" if there is none."""
    if field.name not in table and not field.required:
        return ""
    if field.name not in table:
        return f"{field.entry.missing(field.name)}, for {mechanism}"
    is_list = field.entry.kind.schema()["type"] == "array"
    if not is_list and not is_number(table[field.name]):
        hint = "; unit gives its unit" if kind_named(table.get("kind")).MEASURED else ""
        return f"must be a number, without quotes{hint}"
    return field.problem(table[field.name])


def _completed(
    values: tuple[str, ...] | None, table: Mapping[str, Any], complain: Complain
) -> tuple[str, ...] | None:
    """The listed values with those that the table implies; complains of fewer than two."""
    kind = kind_named(table.get("kind"))
    if values and table.get("other") is True and kind.TAKES_OTHER and OTHER not in values:
        values = (*values, OTHER)
    has_parts = "parts" in table
    if values and table.get("default") == NONE and not has_parts and NONE not in values:
        values = (*values, NONE)
    is_plain = kind is LISTED and not has_parts
    if values is not None and len(values) < 2 and is_plain:  # noqa: PLR2004 one value says nothing
        complain("values" if "values" in table else "values_file", "write two or more values")
    return values
