"""The planner: for what a metric asks, the mechanism with the least error, and the next one.

The error is exact: a mechanism's variance is linear in how many reports hold a value, so its mean
over all values is the same whatever the answers are. Mechanisms within 5% of the least variance
count as equal, and the shortest payload decides, then the fewest cells.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Any, Final

from hubbub.catalog.rules import check, is_number, is_text, is_whole
from hubbub.errors import BadParameter
from hubbub.mechanisms import build, built_from

__all__ = [
    "AUTO",
    "AUTO_FIELDS",
    "EQUAL",
    "Choice",
    "Option",
    "choose",
    "load_choice",
    "resolve",
]

AUTO: Final = "auto"
AUTO_FIELDS: Final = {
    "reports": True,
    "max_payload_bytes": False,
    "max_cells": False,
    "permanent_epsilon": False,
    "low": False,
    "high": False,
}
"""What a metric may tell the planner besides epsilon and values, and whether it must."""

_MAX_PAYLOAD_BYTES: Final = 128
_MAX_CELLS: Final = 1 << 22
# More reports than there are people, a thousand times.
_MAX: Final = 10**13
_COUNT: Final = f"must be a whole number above 0, and at most {_MAX:,}"
EQUAL: Final = 1.05
"""Variances within this factor of the least count as alike: then size decides."""


@dataclass(frozen=True, slots=True)
class Option:
    """One mechanism for a metric, with its figures.

    stderr: of one value's estimate, root mean square over all values, in reports; of a mean, where
        it is largest, in the metric's own unit.
    """

    mechanism: str
    parameters: Mapping[str, float]
    stderr: float
    payload_bytes: int
    cells: int

    def __post_init__(self) -> None:
        check(self, ("parameters",))
        if not (
            is_text(self.mechanism)
            and is_number(self.stderr)
            and is_whole(self.payload_bytes)
            and is_whole(self.cells)
        ):
            raise BadParameter("an option that was weighed has no name or no figures")


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen for so many reports, and what came next, if anything did."""

    reports: int
    best: Option
    runner_up: Option | None

    def __post_init__(self) -> None:
        if not (is_whole(self.reports) and self.reports >= 1):
            raise BadParameter(f"reports {_COUNT}")

    def __str__(self) -> str:
        said = f"chosen for {self.reports:,} reports: {_said(self.best)}"
        return f"{said}; next {_said(self.runner_up)}" if self.runner_up else said


def load_choice(entry: Mapping[str, Any]) -> Choice:
    """A choice as a bundle holds it (dataclasses.asdict)."""
    best, runner_up = entry["best"], entry["runner_up"]
    return Choice(entry["reports"], Option(**best), Option(**runner_up) if runner_up else None)


def resolve(
    mechanism: str, epsilon: float, categories: int | None, given: Mapping[str, Any]
) -> tuple[str, Mapping[str, Any], Choice | None]:
    """Mechanism and parameters as they are, or as chosen where the mechanism is AUTO."""
    if mechanism != AUTO:
        return mechanism, given, None
    choice = choose(epsilon, categories, given)
    return choice.best.mechanism, choice.best.parameters, choice


def choose(epsilon: float, categories: int | None, told: Mapping[str, Any]) -> Choice:
    """The best mechanism for `categories` listed values, or for the mean of a number if None.

    told: the AUTO_FIELDS that were given. With `permanent_epsilon` values are reported again and
    again, and mechanisms with a permanent lie are chosen from.

    Raises:
        BadParameter: a field out of range, or no mechanism within the limits.
    """
    reports = _whole(told, "reports", None)
    payload = _whole(told, "max_payload_bytes", _MAX_PAYLOAD_BYTES)
    cells = _whole(told, "max_cells", _MAX_CELLS)
    own = {key: told[key] for key in ("permanent_epsilon", "low", "high") if key in told}
    if categories is None:
        names, needed = built_from("mean", "epsilon", "low", "high"), {"low", "high"}
    elif "permanent_epsilon" in own:
        names = built_from("listed", "epsilon", "permanent_epsilon", "categories")
        needed = {"permanent_epsilon"}
    else:
        names, needed = built_from("listed", "epsilon", "categories"), set[str]()
    if own.keys() != needed:
        wrong = ", ".join(sorted(own.keys() ^ needed))
        raise BadParameter(
            f"auto takes low and high with a number, permanent_epsilon with values: mend {wrong}"
        )
    given = {"epsilon": epsilon, **own} | ({} if categories is None else {"categories": categories})
    same = "grr" if categories == 2 else "rr"  # noqa: PLR2004 for two values they are one
    every = [_option(name, given, own, reports) for name in names if name != same]
    options = [o for o in every if o.payload_bytes <= payload and o.cells <= cells]
    if not options:
        raise BadParameter(
            f"no mechanism has payloads within {payload} bytes and totals within {cells} cells; "
            "raise max_payload_bytes or max_cells"
        )
    least = min(option.stderr for option in options)
    equal = [option for option in options if option.stderr**2 <= EQUAL * least**2]
    best = min(equal, key=lambda option: (option.payload_bytes, option.cells, option.stderr))
    rest = [option for option in options if option is not best]
    return Choice(reports, best, min(rest, key=lambda option: option.stderr, default=None))


def _option(name: str, given: Mapping[str, Any], own: Mapping[str, float], reports: int) -> Option:
    mechanism = build(name, **given)
    if mechanism.VALUES == "numbers":
        places = (0.0, 0.25, 0.5, 0.75, 1.0)
        worst = max(mechanism.variance(place * reports, reports) for place in places)
        stderr = sqrt(worst) / reports * (given["high"] - given["low"])
    else:
        stderr = sqrt(mechanism.variance(reports / given["categories"], reports))
    layout = mechanism.layout
    return Option(name, dict(own), stderr, layout.payload_bytes, layout.size)


def _whole(told: Mapping[str, Any], name: str, usual: int | None) -> int:
    number: Any = told.get(name, usual)
    if not (is_whole(number) and 1 <= number <= _MAX):
        raise BadParameter(f"{name} {str(number)[:20]} {_COUNT}")
    return int(number)


def _said(option: Option) -> str:
    return (
        f"{option.mechanism} (standard error {option.stderr:,.4g}, "
        f"{option.payload_bytes:,} bytes a report)"
    )
