"""Reads metrics.toml, the catalog that people write and review.

Checks every field, and reports all problems at once, with file, line, metric, field, remedy.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, TypeVar

from hubbub.authoring.crowds.accountant import Accountant
from hubbub.authoring.metrics_toml.metric_table import Around, read_metric
from hubbub.authoring.metrics_toml.model_table import read_model
from hubbub.authoring.person_exposure import over_caps, over_central_cap, with_gaussians
from hubbub.authoring.table_reader import read_section
from hubbub.bundles.bundle import Runs
from hubbub.bundles.tokens import Tokens, unfetched, untokened
from hubbub.catalog.breakdown import FIELD
from hubbub.catalog.default_and_cover import COVER, uncovered
from hubbub.catalog.experiments import Experiment, clashes
from hubbub.catalog.limits_and_budgets import Budget, Caps
from hubbub.catalog.metric import Metric
from hubbub.catalog.supersedes import misfits
from hubbub.catalog.values.value_kind import Complain
from hubbub.errors import CatalogInvalid
from hubbub.errors.message_words import similar, visible
from hubbub.fields import kinds
from hubbub.fields.field import fields_of, setting, settings, table_of
from hubbub.fields.rules import NAME
from hubbub.programs.text_files import parse_toml, read_text

_HEADER: Final = re.compile(r"\s*\[+([^\[\]=,]+)\]+\s*(?:#.*)?$")

Section = TypeVar("Section")


@settings
class Catalog:
    """A checked catalog: its metrics by name, and the shuffler's address as clients dial it."""

    shuffler: str = setting(
        kinds.address(),
        "Address of the shuffler, for devices.",
        '"shuffler.example.org:7070"',
        write='write shuffler = "shuffler.example.org:7070" above all tables',
    )
    metrics: dict[str, Metric] = setting(
        kinds.TABLES,
        "The metrics: one table for each, `[metrics.NAME]`.",
        write="add a [metrics.NAME] table, or a [models.NAME] one",
    )
    models: Mapping[str, Any] = setting(
        kinds.TABLES,
        "The models: one table for each, `[models.NAME]`; a model's reports are a metric of "
        "that name.",
        '{ churn = { kind = "logistic" } }',
        write="write each as [models.NAME]",
        default_factory=dict,
    )
    experiments: Mapping[str, Any] = setting(
        kinds.TABLES,
        "The experiments: one table for each, `[experiments.NAME]`; metrics name their experiment.",
        "{ new_menu = { arms = { control = 1, new = 1 } } }",
        write="write each as [experiments.NAME]",
        default_factory=dict,
    )
    caps: Caps = setting(
        table_of(Caps),
        "Limits on the privacy loss of one person over all metrics together.",
        "{ epsilon_per_year = 100.0 }",
        default=Caps(),
    )
    budget: Budget | None = setting(
        table_of(Budget),
        "The budget of releases; required if a metric has a `release`.",
        "{ epsilon_per_year = 10.0, purposes = { research = 1.0 } }",
        default=None,
    )
    keep: str = setting(
        kinds.DAYS,
        ("How long totals are kept, for metrics without a `keep` of their own."),
        '"400d"',
        default="",
    )
    runs: Runs | None = setting(
        table_of(Runs),
        "The parties that run the services; every bundle contains them and `hubbub ledger` "
        "shows them.",
        '{ shuffler = "Example Foundation, Oslo", aggregator = "Example Ltd, Dublin" }',
        write='write runs = { shuffler = "WHO", aggregator = "WHO" }',
        default=None,
    )
    log: str = setting(
        kinds.log_name(),
        "Address of the transparency log that contains every bundle, without https://. A "
        "device that has had a bundle of this log accepts no bundle outside it.",
        '"log.example.org/app"',
        write="write where its files will be served, without https://",
        default="",
    )
    cover: bool = field(default=False, metadata=COVER)
    tokens: Tokens | None = setting(
        table_of(Tokens),
        "The issuer of tokens; the shuffler then accepts no report without a token.",
        '{ issuer = "https://issuer.example.org:7090" }',
        write='write tokens = { issuer = "https://HOST" }',
        default=None,
    )


def read_catalog(
    path: Path, accountant: Accountant | None = None, text: str | None = None
) -> Catalog:
    """The catalog in a TOML file, or in `text` in its place.

    `accountant` computes the local epsilon of metrics with a central promise, which are refused
    without it. Raises CatalogInvalid, a line per problem, if it cannot be read or breaks a rule.
    """
    text, document = _read_toml(path, text)
    problems: list[str] = []

    def complain(metric: str, name: str, problem: str, kind: str = "metric") -> None:
        section_name = f'{kind} "{metric}", ' if metric else ""
        message = visible(f'{section_name}field "{name}": {problem}')
        problems.append(f"{path}:{_line(text, metric, name)}: {message}")

    def wrong(name: str, problem: str) -> None:
        complain("", name, problem)

    tables = _tables(document, wrong)
    caps = read_section("caps", Caps, document.get("caps", {}), wrong) or Caps()
    defaults = {"keep": document["keep"]} if "keep" in document else {}
    of_experiment = partial(complain, kind="experiment")
    experiments = _experiments(document, of_experiment)
    context = Around(path.parent, caps, accountant, document.get("cover") is True, experiments)
    metrics = _metrics_of(tables, defaults, context, complain)
    metrics |= _model_metrics(document, tables, defaults, context, complain)
    caps, metrics = with_gaussians(caps, metrics, accountant)
    if not problems:  # of metrics that are wrong themselves this would be no news
        for name, place, problem in _misfits(document, metrics):
            complain(name, place, problem)
    budget = _policies(document, metrics, caps, wrong)
    runs = _section("runs", Runs, document, wrong)
    tokens = _section("tokens", Tokens, document, wrong)
    if not problems:
        measured = {metric.experiment.name for metric in metrics.values() if metric.experiment}
        for name in experiments.keys() - measured:
            remedy = f'write experiment = "{name}" in a metric, or remove it'
            of_experiment(name, "arms", f"no metric names it; {remedy}")
    if problems:
        raise CatalogInvalid("\n".join(dict.fromkeys(problems)))
    learned = {name: metric.model for name, metric in metrics.items() if metric.model}
    return Catalog(
        shuffler=document["shuffler"],
        metrics=metrics,
        models=learned,
        experiments=experiments,
        caps=caps,
        budget=budget,
        keep=document.get("keep", ""),
        runs=runs,
        log=document.get("log", ""),
        cover=context.filled,
        tokens=tokens,
    )


def read_with_promises(path: Path, text: str | None = None) -> Catalog:
    """The catalog in a TOML file, or in `text`, with local epsilons that keep its central promises.

    Raises CatalogInvalid as read_catalog, or if an accountant is needed that is not installed.
    """
    accountant: Accountant | None = None
    if all(find_spec(name) for name in ("numpy", "scipy")):
        accountant = import_module("hubbub.privacy.exact_accountant").ExactAccountant()
    return read_catalog(path, accountant, text)


def _metrics_of(
    tables: Mapping[str, Any],
    defaults: Mapping[str, Any],
    context: Around,
    complain: Callable[[str, str, str], None],
) -> dict[str, Metric]:
    """Metrics of the [metrics.NAME] tables; `defaults` are fields that a table may omit."""
    metrics: dict[str, Metric] = {}
    for name, table in tables.items():
        if not isinstance(table, dict):
            complain(name, "name", "must be a table; write [metrics.NAME] and its fields below")
            continue
        is_valid = NAME.fullmatch(name) is not None
        if not is_valid:
            complain(name, "name", f"must match {NAME.pattern}; rename the metric")
        metric = read_metric(
            name if is_valid else "renamed",
            {**defaults, **table},
            context,
            partial(complain, name),
        )
        if metric is not None and is_valid:
            metrics[name] = metric
    return metrics


def _model_metrics(
    document: Mapping[str, Any],
    metrics: Mapping[str, Any],
    defaults: Mapping[str, Any],
    context: Around,
    complain: Callable[[str, str, str], None],
) -> dict[str, Metric]:
    """Metrics of the reports of valid models, each with a unique name."""
    learned = {}
    tables = document.get("models")
    for name, table in tables.items() if isinstance(tables, dict) else ():
        problem = ""
        if not isinstance(table, dict):
            problem = "must be a table; write [models.NAME] and its fields below"
        elif not NAME.fullmatch(name):
            problem = f"must match {NAME.pattern}; rename the model"
        elif name in metrics:
            problem = "is a metric, too; give the model another name"
        if problem:
            complain("", "models", f'"{name}" {problem}')
        elif metric := read_model(name, {**defaults, **table}, context, partial(complain, name)):
            learned[name] = metric
    return learned


def _read_toml(path: Path, text: str | None) -> tuple[str, dict[str, Any]]:
    """The text, of the file if it is None, and its TOML."""
    try:
        text = read_text(path) if text is None else text
    except ValueError as error:
        remedy = "give a catalog" if path.exists() else "hubbub catalog new NAME begins one"
        raise CatalogInvalid(f"{error}; {remedy}") from error
    try:
        return text, parse_toml(text)
    except ValueError as error:  # also of numbers that Python does not read
        raise CatalogInvalid(f"{path}: not TOML: {error}") from error


def _policies(
    document: dict[str, Any], metrics: Mapping[str, Metric], caps: Caps, complain: Complain
) -> Budget | None:
    """The budget, required if anything is released; complains of metrics above the caps."""
    for name, problem in (
        *over_caps(metrics.values(), caps),
        *over_central_cap(metrics.values(), caps),
    ):
        complain(name, problem)
    if "budget" in document:
        budget: Budget | None = read_section("budget", Budget, document["budget"], complain)
        return budget
    if released := [metric.name for metric in metrics.values() if metric.release]:
        complain(
            "budget",
            f"{', '.join(released)} may be released, but nothing limits all releases; add a "
            "[budget] table",
        )
    return None


def _misfits(
    document: dict[str, Any], metrics: Mapping[str, Metric]
) -> Iterator[tuple[str, str, str]]:
    """Conflicts between metrics: the metric, the field, and the problem."""
    for name, problem in misfits(metrics):
        yield name, "supersedes", problem
    for name, problem in clashes(metrics):
        yield name, "experiment", problem
    if document.get("cover"):
        yield from uncovered(metrics)
    if document.get("tokens"):
        yield from untokened(metrics)
        yield from unfetched(metrics)  # their tiers: once there is a bundle


def _section(
    whose: str, section: type[Section], document: dict[str, Any], complain: Complain
) -> Section | None:
    """An optional top-level table; complaints name it, since other tables have the same fields."""
    if whose not in document:
        return None
    section_value: Section | None = read_section(
        whose,
        section,
        document[whose],
        lambda name, problem: complain(whose, problem if name == whose else f"{name} {problem}"),
    )
    return section_value


def _tables(document: dict[str, Any], complain: Complain) -> dict[str, Any]:
    """The metrics' tables, after checking the top level of the file."""
    catalog_fields = {field.name: field for field in fields_of(Catalog)}
    for name in [name for name in document if name not in catalog_fields]:
        meant = (
            f'did you mean "{suggestion}"? else '
            if (suggestion := similar(name, catalog_fields))
            else ""
        )
        complain(
            name, f"is not known here; {meant}remove it, or move it into a [metrics.NAME] table"
        )
    also = [name for name in ("keep", "log", "cover", "models", "experiments") if name in document]
    sections = [] if document.get("models") and "metrics" not in document else ["metrics"]
    for name in ("shuffler", *sections, *also):
        if problem := catalog_fields[name].problem_in(document):
            complain(name, problem)
    tables = document.get("metrics")
    return tables if isinstance(tables, dict) else {}


def _experiments(
    document: Mapping[str, Any], complain: Callable[[str, str, str], None]
) -> dict[str, Experiment]:
    """The experiments; one with invalid arms gets default ones, after a complaint."""
    experiments = {}
    tables = document.get("experiments")
    for name, table in tables.items() if isinstance(tables, dict) else ():
        wrong = partial(complain, name)
        experiment = read_section(f"experiments.{name}", Experiment, table, wrong, name=name)
        if experiment is not None:
            experiments[name] = experiment
        elif re.fullmatch(FIELD, name):  # metrics that name it have no problem of their own
            experiments[name] = Experiment(name=name, arms={"control": 1, "new": 1})
    return experiments


def _line(text: str, metric: str, field: str) -> int:
    """Line of a field or its table; otherwise of its metric's header; otherwise the first line."""
    line_number, in_metric = 0, not metric
    for number, line in enumerate(text.split("\n"), start=1):
        if header := re.match(_HEADER, line):
            table = re.sub(r"\s*\.\s*", ".", header[1].strip())
            section, _, name = re.sub("[\"']", "", table).partition(".")
            in_metric = name == metric  # "" in [caps], [budget]
            if name == f"{metric}.{field}" if metric else section == field:
                return number
            if metric and f"{name}.".startswith(f"{metric}."):
                line_number = line_number or number
        elif in_metric and re.match(rf"\s*{re.escape(field)}\s*=", line):
            return number
    return line_number or 1
