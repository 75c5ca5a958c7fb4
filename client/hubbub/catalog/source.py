"""Reading metrics.toml, the catalog that people write and review.

Every field is checked. All problems are told at once, with file, line, metric, field, remedy.
"""

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final

from hubbub.catalog.choice import AUTO, AUTO_FIELDS, resolve
from hubbub.catalog.domain import values
from hubbub.catalog.epochs import EPOCH_SECONDS
from hubbub.catalog.exposure import over_caps
from hubbub.catalog.metric import MAX_MIN_BATCH, MIN_MIN_BATCH, Limits, Metric
from hubbub.catalog.policy import Budget, Caps, read_budget, read_caps, read_release, read_sampling
from hubbub.errors import BadParameter, CatalogInvalid
from hubbub.mechanisms import REGISTRY, parameters
from hubbub.mechanisms.probability import MAX_EPSILON, MIN_EPSILON

__all__ = ["Catalog", "read_catalog"]

_NAME: Final = re.compile(r"[a-z][a-z0-9_.-]{0,63}")
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
_MAX_REPORTS_PER_EPOCH: Final = 1000

Complain = Callable[[str, str], None]


def _is_number(thing: Any) -> bool:  # noqa: ANN401 parsed TOML
    return isinstance(thing, int | float) and not isinstance(thing, bool)


def _is_whole(thing: Any) -> bool:  # noqa: ANN401 parsed TOML
    return isinstance(thing, int) and not isinstance(thing, bool)


def _is_text(thing: Any) -> bool:  # noqa: ANN401 parsed TOML
    return isinstance(thing, str) and bool(thing.strip())


_RULES: Final[dict[str, tuple[Callable[[Any], bool], str]]] = {
    "description": (_is_text, "must be a text that says what is asked; write one"),
    "owner": (_is_text, "must be a text that says who answers for it; write one"),
    "expires": (
        lambda given: type(given) is date,  # a datetime is a date too, but not a day
        "must be a date, after which clients stop reporting; write YYYY-MM-DD",
    ),
    "epoch": (lambda given: given in EPOCH_SECONDS, f"must be one of {', '.join(EPOCH_SECONDS)}"),
    "epsilon": (
        lambda given: _is_number(given) and MIN_EPSILON <= given <= MAX_EPSILON,
        f"must be a number of nats in [{MIN_EPSILON}, {MAX_EPSILON}]",
    ),
    "min_batch": (
        lambda given: _is_whole(given) and MIN_MIN_BATCH <= given <= MAX_MIN_BATCH,
        f"must be a whole number in [{MIN_MIN_BATCH}, {MAX_MIN_BATCH}]",
    ),
}


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
    try:
        text = path.read_text(encoding="utf-8")
        document = tomllib.loads(text)
    except OSError as error:
        raise CatalogInvalid(f"{path}: cannot be read: {error.strerror}; give a catalog") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CatalogInvalid(f"{path}: not TOML: {error}") from error
    except RecursionError:
        raise CatalogInvalid(f"{path}: not TOML that we read: nested too deeply") from None
    problems: list[str] = []

    def complain(metric: str, name: str, problem: str) -> None:
        where = f'metric "{metric}", ' if metric else ""
        problems.append(f'{path}:{_line(text, metric, name)}: {where}field "{name}": {problem}')

    metrics: dict[str, Metric] = {}
    for name, table in _tables(document, complain).items():
        if not _NAME.fullmatch(name):
            complain(name, "name", "must match [a-z][a-z0-9_.-]{0,63}; rename the metric")
        elif not isinstance(table, dict):
            complain(name, "name", "must be a table; write [metrics.NAME] and its fields below")
        else:
            metric = _metric(name, table, path.parent, lambda f, p, n=name: complain(n, f, p))  # type: ignore[misc]
            if metric is not None:
                metrics[name] = metric
    caps, budget = _policies(document, metrics, lambda field, problem: complain("", field, problem))
    if problems:
        raise CatalogInvalid("\n".join(problems))
    return Catalog(document["shuffler"], metrics, caps, budget)


def _policies(
    document: dict[str, Any], metrics: Mapping[str, Metric], wrong: Complain
) -> tuple[Caps, Budget | None]:
    """The caps, which the metrics keep; and the budget, which there is if anything is released."""
    caps = read_caps(document.get("caps", {}), wrong)
    for field, problem in over_caps(metrics.values(), caps):
        wrong(field, problem)
    if "budget" in document:
        return caps, read_budget(document["budget"], wrong)
    if released := [metric.name for metric in metrics.values() if metric.release]:
        wrong(
            "budget",
            f"{', '.join(released)} may be released, and nothing says how much in all; "
            "add a [budget] table",
        )
    return caps, None


def _tables(document: dict[str, Any], complain: Callable[[str, str, str], None]) -> dict[str, Any]:
    """The metrics' tables, once the rest of the document has been looked at."""
    for name in document.keys() - {"shuffler", "metrics", "caps", "budget"}:
        complain("", name, "is not known here; remove it, or move it into a [metrics.NAME] table")
    shuffler = document.get("shuffler")
    if not (isinstance(shuffler, str) and re.fullmatch(r"[^\s:/]+:\d{1,5}", shuffler)):
        complain("", "shuffler", 'must be "HOST:PORT", as the clients dial it')
    tables = document.get("metrics")
    if not (isinstance(tables, dict) and tables):
        complain("", "metrics", "there is none; add a [metrics.NAME] table")
        return {}
    return tables


def _metric(name: str, table: dict[str, Any], folder: Path, complain: Complain) -> Metric | None:
    """The metric of one table, or None once something was complained about."""
    complaints = 0

    def wrong(field: str, problem: str) -> None:
        nonlocal complaints
        complaints += 1
        complain(field, problem)

    mechanism = table.get("mechanism")
    if mechanism not in (AUTO, *REGISTRY):
        wrong("mechanism", f"must be one of {', '.join((AUTO, *REGISTRY))}")
        return None
    known = AUTO_FIELDS if mechanism == AUTO else parameters(mechanism)
    own = [p for p in known if p not in {"epsilon", "categories"}]
    for field in table.keys() - {*_FIELDS, *own}:
        wrong(field, f"is not known for {mechanism}; it takes {', '.join((*_FIELDS, *own))}")
    for field in own:
        if not (_is_number(table.get(field)) or (field not in table and not known[field])):
            wrong(field, f"{mechanism} needs this number; add it")
    for field, (is_right, remedy) in _RULES.items():
        if not is_right(table.get(field)):
            wrong(field, remedy)
    sampling = read_sampling(table.get("sampling", 1.0), wrong)
    limits = _limits(table.get("limits"), table.get("epsilon"), wrong)
    tiers = _tiers(table.get("tiers", []), table.get("epsilon"), wrong)
    listed = values(mechanism, table, folder, wrong)
    release = read_release(table.get("release"), wrong)
    if complaints or limits is None:
        return None
    given: Mapping[str, Any] = {field: table[field] for field in own if field in table}
    try:
        mechanism, given, choice = resolve(
            mechanism, float(table["epsilon"]), len(listed) if listed else None, given
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
            parameters=given,
            choice=choice,
            tiers=tiers,
            release=release,
            sampling=sampling,
        )
    except BadParameter as error:
        wrong("mechanism", str(error))
        return None


def _limits(given: Any, epsilon: Any, wrong: Complain) -> Limits | None:  # noqa: ANN401 parsed TOML
    remedy = "write limits = { reports_per_epoch = 1, lifetime_epsilon = 50.0 }"
    if not (isinstance(given, dict) and given.keys() == {"reports_per_epoch", "lifetime_epsilon"}):
        wrong("limits", f"must hold reports_per_epoch and lifetime_epsilon; {remedy}")
        return None
    per_epoch, lifetime = given["reports_per_epoch"], given["lifetime_epsilon"]
    if not (_is_whole(per_epoch) and 1 <= per_epoch <= _MAX_REPORTS_PER_EPOCH):
        wrong("limits", f"reports_per_epoch must be in [1, {_MAX_REPORTS_PER_EPOCH}]; {remedy}")
    elif not (_is_number(lifetime) and (not _is_number(epsilon) or lifetime >= epsilon)):
        wrong("limits", "lifetime_epsilon must be a number not below epsilon; raise it")
    else:
        return Limits(per_epoch, float(lifetime))
    return None


def _tiers(given: Any, epsilon: Any, wrong: Complain) -> tuple[float, ...]:  # noqa: ANN401 parsed TOML
    """The smaller epsilons that a person may choose; complains unless ascending below epsilon."""
    numbers = isinstance(given, list) and all(map(_is_number, given))
    inside = numbers and _is_number(epsilon) and all(MIN_EPSILON <= t < epsilon for t in given)
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
