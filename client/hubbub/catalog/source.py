"""Reading metrics.toml, the catalog that people write and review.

Every field is checked. All problems are told at once, with file, line, metric, field, remedy.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from hubbub.catalog import kinds
from hubbub.catalog.central import (
    CENTRAL_FIELDS,
    CROWD_MECHANISM,
    Accountant,
    CentralPromise,
    crowd_table,
)
from hubbub.catalog.choice import AUTO, own_fields, resolve
from hubbub.catalog.domain import read_values
from hubbub.catalog.exposure import over_caps
from hubbub.catalog.fields import CatalogField, entry, fields_of
from hubbub.catalog.limits import conflicts
from hubbub.catalog.metric import Metric
from hubbub.catalog.policy import Budget, Caps
from hubbub.catalog.reading import Complain, read_fields, read_section
from hubbub.catalog.rules import NAME
from hubbub.catalog.tables import table_of
from hubbub.errors import BadParameter, CatalogInvalid
from hubbub.errors.visible import visible
from hubbub.mechanisms import is_number

__all__ = ["Catalog", "read_catalog"]


@dataclass(frozen=True, slots=True)
class Catalog:
    """A checked catalog: its metrics by name, and the shuffler's address as clients dial it."""

    shuffler: str = field(
        metadata=entry(
            kinds.address(),
            "Where devices find the shuffler.",
            '"shuffler.example.org:7070"',
        )
    )
    metrics: dict[str, Metric] = field(
        metadata=entry(
            kinds.tables(),
            "What is asked: one table for each metric, `[metrics.NAME]`.",
            write="add a [metrics.NAME] table",
        )
    )
    caps: Caps = field(
        default=Caps(),
        metadata=entry(
            table_of(Caps),
            "The most that all metrics together may say about one person.",
            "{ epsilon_per_year = 100.0 }",
        ),
    )
    budget: Budget | None = field(
        default=None,
        metadata=entry(
            table_of(Budget),
            "What may be spent on releases; needed once a metric has a `release`.",
            "{ epsilon_per_year = 10.0, purposes = { research = 1.0 } }",
        ),
    )


def read_catalog(path: Path, accountant: Accountant | None = None) -> Catalog:
    """The catalog in a TOML file.

    accountant: works out the local epsilon of metrics with a central promise, which are refused
    without.

    Raises:
        CatalogInvalid: it cannot be read, is not TOML, or breaks a rule; one line per problem.
    """
    text, document = _document(path)
    problems: list[str] = []

    def complain(metric: str, name: str, problem: str) -> None:
        where = f'metric "{metric}", ' if metric else ""
        told = visible(f'{where}field "{name}": {problem}')
        problems.append(f"{path}:{_line(text, metric, name)}: {told}")

    def wrong(name: str, problem: str) -> None:
        complain("", name, problem)

    tables = _tables(document, wrong)
    caps = read_section("caps", Caps, document.get("caps", {}), wrong) or Caps()
    metrics: dict[str, Metric] = {}
    for name, table in tables.items():
        if not NAME.fullmatch(name):
            complain(name, "name", f"must match {NAME.pattern}; rename the metric")
        elif not isinstance(table, dict):
            complain(name, "name", "must be a table; write [metrics.NAME] and its fields below")
        else:
            metric = _metric(
                name,
                table,
                _Around(path.parent, caps, accountant),
                lambda f, p, n=name: complain(n, f, p),  # type: ignore[misc]
            )
            if metric is not None:
                metrics[name] = metric
    budget = _policies(document, metrics, caps, wrong)
    if problems:
        raise CatalogInvalid("\n".join(problems))
    return Catalog(document["shuffler"], metrics, caps, budget)


def _document(path: Path) -> tuple[str, dict[str, Any]]:
    """The file's text, and what it says as TOML."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise CatalogInvalid(f"{path}: cannot be read: {error.strerror}; give a catalog") from error
    except UnicodeDecodeError as error:
        raise CatalogInvalid(f"{path}: not TOML: {error}") from error
    except ValueError as error:
        raise CatalogInvalid(f"{path}: is no path: {error}; give a catalog") from error
    try:
        document = tomllib.loads(text)
    except RecursionError:
        raise CatalogInvalid(f"{path}: not TOML that we read: nested too deeply") from None
    except (ValueError, OverflowError) as error:  # also of numbers that Python does not read
        raise CatalogInvalid(f"{path}: not TOML: {error}") from error
    return text, document


def _policies(
    document: dict[str, Any], metrics: Mapping[str, Metric], caps: Caps, wrong: Complain
) -> Budget | None:
    """The budget, which there is if anything is released; complains of metrics above the caps."""
    for name, problem in over_caps(metrics.values(), caps):
        wrong(name, problem)
    if "budget" in document:
        budget: Budget | None = read_section("budget", Budget, document["budget"], wrong)
        return budget
    if released := [metric.name for metric in metrics.values() if metric.release]:
        wrong(
            "budget",
            f"{', '.join(released)} may be released, and nothing says how much in all; "
            "add a [budget] table",
        )
    return None


def _tables(document: dict[str, Any], wrong: Complain) -> dict[str, Any]:
    """The metrics' tables, once the rest of the top of the file has been looked at."""
    own = {field.name: field for field in fields_of(Catalog)}
    for name in document.keys() - own.keys():
        wrong(name, "is not known here; remove it, or move it into a [metrics.NAME] table")
    for name in ("shuffler", "metrics"):
        if problem := own[name].problem(document.get(name)):
            wrong(name, problem)
    tables = document.get("metrics")
    return tables if isinstance(tables, dict) else {}


class _Around(NamedTuple):
    """What a metric's table is read with: the catalog's folder, its caps, and who works out."""

    folder: Path
    caps: Caps
    accountant: Accountant | None


def _metric(name: str, table: dict[str, Any], around: _Around, complain: Complain) -> Metric | None:
    """The metric of one table, or None once something was complained about."""
    complaints = 0

    def wrong(field: str, problem: str) -> None:
        nonlocal complaints
        complaints += 1
        complain(field, problem)

    fields = {field.name: field for field in fields_of(Metric) if field.entry.written}
    mechanism: Any = table.get("mechanism")
    if problem := fields["mechanism"].problem(mechanism):
        wrong("mechanism", problem)
        return None
    listed = read_values(fields["values"], mechanism, table, around.folder, wrong)
    table = _with_crowd(table, fields, listed, around.accountant, wrong)
    mechanism = table["mechanism"]
    own = own_fields(mechanism)
    _refuse_unknown(mechanism, table, [*_names(fields), *(field.name for field in own)], wrong)
    for parameter in own:
        if problem := _problem_with_own(mechanism, parameter, table):
            wrong(parameter.name, problem)
    found = read_fields(Metric, table, wrong)
    if {"epsilon", "limits"} <= found.keys():
        tiers = found.get("tiers", ())
        for field, problem in conflicts(found["epsilon"], found["limits"], tiers).items():
            wrong(field, problem)
    if complaints:
        return None
    told = {field.name: table[field.name] for field in own if field.name in table}
    try:
        chosen, given, choice = resolve(
            mechanism, found["epsilon"], len(listed) if listed else None, told
        )
        more = {"mechanism": chosen, "parameters": given, "choice": choice, "values": listed}
        return Metric(name=name, caps=around.caps, **{**found, **more})
    except BadParameter as error:
        wrong("mechanism", str(error))
        return None


def _with_crowd(
    table: dict[str, Any],
    fields: Mapping[str, CatalogField],
    listed: tuple[str, ...] | None,
    accountant: Accountant | None,
    wrong: Complain,
) -> dict[str, Any]:
    """The table, with what follows from its central promise, if it makes one."""
    promise = _central(table, fields, wrong)
    if promise is None:
        return table
    try:
        return crowd_table(table, promise, len(listed or "ab"), accountant, wrong)
    except BadParameter as error:
        wrong("crowd", str(error))
        return table


def _central(
    table: Mapping[str, Any], fields: Mapping[str, CatalogField], wrong: Complain
) -> CentralPromise | None:
    """The central promise that a table makes, if it makes one and says it right."""
    given = {name: table.get(name, fields[name].default) for name in CENTRAL_FIELDS}
    if given["central_epsilon"] is None and given["crowd"] is None:
        return None
    for name, other in (("central_epsilon", "crowd"), ("crowd", "central_epsilon")):
        if given[name] is None:
            wrong(name, f"must be {fields[name].entry.kind.words()} beside {other}; add it")
            return None
    if table.get("mechanism") not in {CROWD_MECHANISM, AUTO} or "domain" in table:
        wrong("crowd", f'is of listed values, with mechanism "{CROWD_MECHANISM}" or "{AUTO}"')
        return None
    written = {**given, **({"epsilon": table["epsilon"]} if "epsilon" in table else {})}
    if any(fields[name].problem(one) for name, one in written.items()):
        return None  # which is told with all other fields
    return CentralPromise(
        float(given["central_epsilon"]),
        given["crowd"],
        float(given["delta"]),
        float(given["honest"]),
        float(given["max_local_epsilon"]),
    )


def _names(fields: Mapping[str, CatalogField]) -> list[str]:
    """What stands in a table for these fields, also where one can be said in several ways."""
    return [name for field in fields.values() for name in (field.name, *field.entry.others)]


def _refuse_unknown(
    mechanism: str, table: Mapping[str, Any], known: list[str], wrong: Complain
) -> None:
    for name in table.keys() - set(known):
        wrong(name, f"is not known for {mechanism}; it takes {', '.join(known)}")


def _problem_with_own(mechanism: str, field: CatalogField, table: Mapping[str, Any]) -> str:
    """What is wrong with a number of the mechanism's own."""
    if field.name not in table and not field.required:
        return ""
    if not is_number(table.get(field.name)):
        return f"{mechanism} needs this number; add it"
    return field.problem(table[field.name])


def _line(text: str, metric: str, field: str) -> int:
    """Where a field stands; else its metric's header; else the first line."""
    found, inside = 1, not metric
    for number, line in enumerate(text.splitlines(), start=1):
        if header := re.match(r"\s*\[\s*metrics\s*\.\s*[\"']?([^\"'\]]*?)[\"']?\s*\]", line):
            inside = header[1] == metric
            found = number if inside else found
        elif re.match(r"\s*\[\s*\w+\s*\]", line):  # [caps], [budget]
            inside = not metric
        elif inside and re.match(rf"\s*{re.escape(field)}\s*=", line):
            return number
    return found
