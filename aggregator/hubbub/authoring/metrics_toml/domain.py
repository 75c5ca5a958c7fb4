"""A metric's domain, from its table and its kind: listed values, strings or numbers."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hubbub.catalog.mechanism_choice import AUTO
from hubbub.catalog.metric import DOMAINS
from hubbub.catalog.values.part_values import RANGE, PartRange
from hubbub.catalog.values.value_kind import Complain
from hubbub.catalog.values.value_kind_registry import KINDS, LISTED
from hubbub.errors.message_words import similar
from hubbub.fields.field import CatalogField
from hubbub.mechanisms import REGISTRY, parameters
from hubbub.programs.text_files import read_list


def table_with_domain(table: dict[str, Any], complain: Complain) -> dict[str, Any]:
    """A metric's table with the values or the domain that its kind implies."""
    kind_name = table.get("kind", "rate" if "rate" in table else None)
    # An unknown kind is reported together with errors in all other fields, as of a similar kind.
    kind = KINDS.get(kind_name if kind_name in [*KINDS] else similar(kind_name, KINDS))
    value_kind = LISTED if kind_name is None else kind or KINDS["boolean"]
    counts_steps = has_number(table.get("mechanism"), "steps")
    unfit = {
        field: reason
        for field, reason in value_kind.NOT_ITS.items()
        if not (field == "steps" and counts_steps)
    }
    for field in unfit.keys() & table:
        complain(field, unfit[field])
    return value_kind.spelled({n: v for n, v in table.items() if n not in unfit}, complain)


def has_number(mechanism: Any, field: str) -> bool:
    """Whether a mechanism has a number of this name: `steps` is one, and a list of a funnel."""
    return isinstance(mechanism, str) and mechanism in REGISTRY and field in parameters(mechanism)


def ranges_of(table: Any) -> dict[str, PartRange]:
    """The parts in metrics.toml that are ranges of a number."""
    if not isinstance(table, Mapping):
        return {}
    return {part: RANGE.read(edges) for part, edges in table.items() if isinstance(edges, Mapping)}


def read_values(
    field: CatalogField, mechanism: str, table: dict[str, Any], folder: Path, complain: Complain
) -> tuple[str, ...] | None:
    """The listed values; None for a domain, or after a complaint."""
    ways = [
        name
        for name in (field.name, *field.entry.others)
        if name in table and not has_number(mechanism, name)
    ]
    kind = _kind_of_auto(table) if mechanism == AUTO else str(REGISTRY[mechanism].VALUES)
    if misfit := _problem_with_ways(mechanism, kind, ways, table):
        complain(*misfit)
    if misfit or kind in DOMAINS:
        return None
    [name] = ways
    listed = table[name]
    kind_of = field.entry.kind if name == field.name else field.entry.others[name].kind
    if problem := kind_of.problem(listed):
        complain(name, problem)
        return None
    if name == "parts":
        return tuple(kind_of.read(listed))
    if name != field.name:
        try:
            listed = read_list(folder / listed)
        except ValueError as error:
            complain(name, f"{error}; fix the file")
            return None
    problem = field.problem(listed)
    if not (problem or all(str(value).strip() for value in listed)):
        # Bundles of earlier versions may contain such a value.
        problem = "contains a text of blanks only; write a name that answers can show"
    if problem:
        complain(name, problem)
        return None
    values: tuple[str, ...] = field.entry.kind.read(listed)
    return values


def _kind_of_auto(table: Mapping[str, Any]) -> str:
    """What AUTO is over; strings only in a crowd, as with_sole_choice replaces it elsewhere."""
    if "domain" not in table:
        return "categories"
    return "strings" if table["domain"] == DOMAINS["strings"] else "numbers"


def _problem_with_ways(
    mechanism: str, kind: str, ways: list[str], table: dict[str, Any]
) -> tuple[str, str] | None:
    """The field that declares the domain wrongly, and the remedy; None if there is no problem."""
    if kind in DOMAINS:
        if ways == ["domain"] and table["domain"] == DOMAINS[kind]:
            return None
        remedy = f'write domain = "{DOMAINS[kind]}" and no values'
        if kind == "numbers":
            remedy = 'write domain = "number" or a kind of numbers, and no values or edges'
        return "domain", f"{mechanism} is over {kind}; {remedy}"
    paired = mechanism != AUTO and REGISTRY[mechanism].FAMILY == "pairs"
    if paired and ways != ["parts"]:
        return (
            "parts",
            f"{mechanism} is for parts; write parts = {{ PART = [...], ... }} and no values",
        )
    if not paired and "parts" in ways:
        return "parts", f"{mechanism} does not report parts; write values = [...] and no parts"
    if len(ways) != 1 or "domain" in ways:
        return "values", f"{mechanism} needs its values; write only values = [...] or values_file"
    return None


def read_candidates(
    mechanism: str, table: dict[str, Any], folder: Path, complain: Complain
) -> dict[str, Any]:
    """The table with the strings of its candidates' file, without repetition."""
    candidates = table.get("candidates")
    if candidates is None:
        return table
    if mechanism not in REGISTRY or REGISTRY[mechanism].VALUES != "strings":
        complain(
            "candidates", f"is for mechanisms over strings, and {mechanism} is not; leave it out"
        )
        return {name: value for name, value in table.items() if name != "candidates"}
    if not isinstance(candidates, str):
        return table
    try:
        lines = read_list(folder / candidates)
    except ValueError as error:
        complain("candidates", f"{error}; fix the file")
        return {name: value for name, value in table.items() if name != "candidates"}
    return {**table, "candidates": list(dict.fromkeys(lines))}
