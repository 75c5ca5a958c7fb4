"""The rows of `hubbub plan central`: ways to be private, and what every table of them says."""

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any, Final

from hubbub.catalog import CentralPromise, Metric
from hubbub.catalog.crowds.central_fields import NOISE, USUAL_MAX_LOCAL
from hubbub.cli.terminal.output import listing, say
from hubbub.errors import BadParameter
from hubbub.errors.grammar import several
from hubbub.fields.field import fields_of
from hubbub.privacy.shuffled_epoch import ShuffledEpoch
from hubbub.privacy.shuffled_histogram import central_epsilon

Way = dict[str, Any]
"""One way to be private: `way`, `epsilon_local` (None for a curator), `epsilon_central`, errors."""

_FIELDS: Final = {field.name: field for field in fields_of(Metric)}
# Local epsilons that are shown below the largest one.
_FLOORS: Final = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 12.0)


def floors(central: float, most: float, apart: float = 0.0) -> list[float]:
    """Local epsilons to show, ascending up to `most`; the others are `apart` below it."""
    return [*(floor for floor in _FLOORS if central < floor < most - apart), most]


def count_row(
    way: str, local: float | None, central: float, stderr_rare: float, stderr_tenth: float
) -> Way:
    """A row with standard errors, in reports, of a rare value and of one in ten."""
    return {
        "way": way,
        "epsilon_local": local,
        "epsilon_central": central,
        "stderr_rare": stderr_rare,
        "stderr_tenth": stderr_tenth,
    }


def crowd_row(way: str, crowd: ShuffledEpoch, delta: float, errors: tuple[float, float]) -> Way:
    """A crowd as a row; `errors` as in `count_row`."""
    return count_row(way, crowd.epsilon_local, central_epsilon(crowd, delta), *errors)


def show_ways(
    promise: CentralPromise,
    ways: Sequence[Way],
    *,
    title: str,
    errors: Mapping[str, str],
    of_what: str,
) -> None:
    """Shows all rows as a table, and what its two epsilons rest on.

    `title` ends the table's title; `errors` maps headings to formats; `of_what` is their unit.
    """
    named = "mechanism" in ways[0]
    mechanism = {"mechanism": lambda way: way["mechanism"] or ""} if named else {}
    listing(
        f"central epsilon {promise.epsilon:g} at delta {promise.delta:g}: "
        f"{several(promise.crowd, 'report')}{title}",
        ways,
        {
            "way": "{way}",
            **mechanism,
            "local epsilon": lambda way: (
                "none" if way["epsilon_local"] is None else f"{way['epsilon_local']:.3f}"
            ),
            "central epsilon": "{epsilon_central:.3f}",
            **errors,
        },
        text_columns=1 + named,
    )
    say(
        f"errors are standard errors{of_what}; a crowd leaves whole, or not at all if it has fewer "
        f"reports, so plan with fewer than you expect; {promise.honest:.0%} of it is honest; the "
        "local epsilon holds even if all servers collude"
    )


def largest_local_of(ways: Sequence[Way]) -> float:
    """The largest local epsilon of the crowds among the rows."""
    crowds: list[float] = [way["epsilon_local"] for way in ways if way["way"].startswith("crowd")]
    return max(crowds)


def in_catalog(promise: CentralPromise, epsilon_local: float) -> str:
    """The catalog's fields for this promise, but for those whose default it has.

    The cap of the local epsilon is there if it is needed, or lower than usual.
    """
    most = promise.max_local_epsilon
    fields: dict[str, Any] = {"central_epsilon": promise.epsilon, "crowd": promise.crowd}
    if epsilon_local > USUAL_MAX_LOCAL or most < USUAL_MAX_LOCAL:
        fields["max_local_epsilon"] = min(ceil(epsilon_local), most)
    fields |= {
        name: getattr(promise, name)
        for name in ("delta", "honest", "dummies", "dummies_each")
        if getattr(promise, name) != _FIELDS[name].default
    }
    if promise.noise:
        fields["dummies"] = f'"{NOISE}"'
    return "in metrics.toml: " + ", ".join(f"{name} = {_toml(fields[name])}" for name in fields)


def _toml(value: Any) -> str:
    """A value in TOML: a float with six digits if they are all that it has."""
    is_short = isinstance(value, float) and float(f"{value:g}") == value
    return f"{value:g}" if is_short else str(value)


def check_as_fields(**values: float | str) -> None:
    """Raises BadParameter, by the option's name, for a value that no catalog may contain."""
    for name, value in values.items():
        if problem := _FIELDS[name].entry.kind.problem(value):
            option = "reports" if name == "crowd" else name
            raise BadParameter(f"--{option} {_toml(value)}: as {name} in a catalog it {problem}")
