"""Reading metrics.toml, the catalog that people write and review.

Every field is checked. All problems are told at once, with file, line, metric, field, remedy.
"""

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hubbub.catalog.choice import AUTO, AUTO_FIELDS, resolve
from hubbub.catalog.domain import values
from hubbub.catalog.exposure import over_caps
from hubbub.catalog.metric import Limits, Metric
from hubbub.catalog.policy import Budget, Caps, read_budget, read_caps, read_release
from hubbub.catalog.rules import NAME, RULES, is_address, is_number
from hubbub.errors import BadParameter, CatalogInvalid
from hubbub.errors.visible import visible
from hubbub.mechanisms import REGISTRY, parameters
from hubbub.mechanisms.probability import MIN_EPSILON

__all__ = ["Catalog", "read_catalog"]

_FIELDS: Final = (
    "description",
    "owner",
    "expires",
    "epoch",
    "mechanism",
    "epsilon",
    "values",
    "values_file",
    "domain",
    "min_batch",
    "limits",
    "tiers",
    "release",
    "sampling",
)
_RULED: Final = ("description", "owner", "expires", "epoch", "epsilon", "min_batch")

Complain = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class Catalog:
    """A checked catalog: its metrics by name, and the shuffler's address as clients dial it.

    caps: the most that all metrics may say about one person. budget: for releases, if there are.
    """

    shuffler: str
    metrics: dict[str, Metric]
    caps: Caps = Caps()  # noqa: RUF009 a frozen value
    budget: Budget | None = None


def read_catalog(path: Path) -> Catalog:
    """The catalog in a TOML file.

    Raises:
        CatalogInvalid: it cannot be read, is not TOML, or breaks a rule; one line per problem.
    """
    text, document = _document(path)
    problems: list[str] = []

    def complain(metric: str, name: str, problem: str) -> None:
        where = f'metric "{metric}", ' if metric else ""
        told = visible(f'{where}field "{name}": {problem}')
        problems.append(f"{path}:{_line(text, metric, name)}: {told}")

    caps = read_caps(document.get("caps", {}), lambda field, problem: complain("", field, problem))
    metrics: dict[str, Metric] = {}
    for name, table in _tables(document, complain).items():
        if not NAME.fullmatch(name):
            complain(name, "name", f"must match {NAME.pattern}; rename the metric")
        elif not isinstance(table, dict):
            complain(name, "name", "must be a table; write [metrics.NAME] and its fields below")
        else:
            metric = _metric(
                name,
                table,
                path.parent,
                caps,
                lambda f, p, n=name: complain(n, f, p),  # type: ignore[misc]
            )
            if metric is not None:
                metrics[name] = metric
    budget = _policies(document, metrics, caps, lambda field, problem: complain("", field, problem))
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
    for field, problem in over_caps(metrics.values(), caps):
        wrong(field, problem)
    if "budget" in document:
        return read_budget(document["budget"], wrong)
    if released := [metric.name for metric in metrics.values() if metric.release]:
        wrong(
            "budget",
            f"{', '.join(released)} may be released, and nothing says how much in all; "
            "add a [budget] table",
        )
    return None


def _tables(document: dict[str, Any], complain: Callable[[str, str, str], None]) -> dict[str, Any]:
    """The metrics' tables, once the rest of the document has been looked at."""
    for name in document.keys() - {"shuffler", "metrics", "caps", "budget"}:
        complain("", name, "is not known here; remove it, or move it into a [metrics.NAME] table")
    shuffler = document.get("shuffler")
    if not is_address(shuffler):
        complain("", "shuffler", 'must be "HOST:PORT", as the clients dial it')
    tables = document.get("metrics")
    if not (isinstance(tables, dict) and tables):
        complain("", "metrics", "there is none; add a [metrics.NAME] table")
        return {}
    return tables


def _metric(
    name: str, table: dict[str, Any], folder: Path, caps: Caps, complain: Complain
) -> Metric | None:
    """The metric of one table, or None once something was complained about."""
    complaints = 0

    def wrong(field: str, problem: str) -> None:
        nonlocal complaints
        complaints += 1
        complain(field, problem)

    mechanism = table.get("mechanism")
    if not isinstance(mechanism, str) or mechanism not in (AUTO, *REGISTRY):
        wrong("mechanism", f"must be one of {', '.join((AUTO, *REGISTRY))}")
        return None
    known = AUTO_FIELDS if mechanism == AUTO else parameters(mechanism)
    own = [p for p in known if p not in {"epsilon", "categories"}]
    for field in table.keys() - {*_FIELDS, *own}:
        wrong(field, f"is not known for {mechanism}; it takes {', '.join((*_FIELDS, *own))}")
    for field in own:
        if not (is_number(table.get(field)) or (field not in table and not known[field])):
            wrong(field, f"{mechanism} needs this number; add it")
    sampling = table.get("sampling", 1.0)
    for field, given in [*((field, table.get(field)) for field in _RULED), ("sampling", sampling)]:
        is_right, remedy = RULES[field]
        if not is_right(given):
            wrong(field, remedy)
    limits = _limits(table.get("limits"), table.get("epsilon"), wrong)
    tiers = _tiers(table.get("tiers", []), table.get("epsilon"), wrong)
    listed = values(mechanism, table, folder, wrong)
    release = read_release(table.get("release"), wrong)
    if complaints or limits is None:
        return None
    told: Mapping[str, Any] = {field: table[field] for field in own if field in table}
    try:
        mechanism, found, choice = resolve(
            mechanism, float(table["epsilon"]), len(listed) if listed else None, told
        )
        return Metric(
            name=name,
            description=table["description"].strip(),
            owner=table["owner"].strip(),
            expires=table["expires"],
            epoch=table["epoch"],
            mechanism=mechanism,
            epsilon=float(table["epsilon"]),
            min_batch=table["min_batch"],
            limits=limits,
            values=listed,
            parameters=found,
            choice=choice,
            tiers=tiers,
            release=release,
            sampling=float(sampling),
            caps=caps,
        )
    except BadParameter as error:
        wrong("mechanism", str(error))
        return None


def _limits(given: Any, epsilon: Any, wrong: Complain) -> Limits | None:
    remedy = "write limits = { reports_per_epoch = 1, lifetime_epsilon = 50.0 }"
    if not (isinstance(given, dict) and given.keys() == {"reports_per_epoch", "lifetime_epsilon"}):
        wrong("limits", f"must hold reports_per_epoch and lifetime_epsilon; {remedy}")
        return None
    try:
        limits = Limits(**given)
    except BadParameter as error:
        wrong("limits", f"{error}; {remedy}")
        return None
    if is_number(epsilon) and not limits.lifetime_epsilon >= epsilon:
        wrong("limits", "lifetime_epsilon must be a number not below epsilon; raise it")
        return None
    return Limits(limits.reports_per_epoch, float(limits.lifetime_epsilon))


def _tiers(given: Any, epsilon: Any, wrong: Complain) -> tuple[float, ...]:
    """The smaller epsilons that a person may choose; complains unless ascending below epsilon."""
    numbers = isinstance(given, list) and all(map(is_number, given))
    inside = numbers and is_number(epsilon) and all(MIN_EPSILON <= t < epsilon for t in given)
    if not (inside and given == sorted(set(given))):
        wrong(
            "tiers", f"must ascend from {MIN_EPSILON} to below epsilon; write tiers = [0.25, 0.5]"
        )
        return ()
    return tuple(float(tier) for tier in given)


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
