"""The rows of `hubbub plan central`: ways to be private, and what every table of them says."""

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any, Final

from hubbub.catalog import CentralPromise
from hubbub.catalog.crowds.central_fields import NOISE, USUAL_MAX_LOCAL
from hubbub.cli.terminal.output import listing, say
from hubbub.errors.grammar import several
from hubbub.privacy.shuffled_epoch import ShuffledEpoch
from hubbub.privacy.shuffled_histogram import central_epsilon

Way = dict[str, Any]
"""One way to be private: `way`, `epsilon_local` (None for a curator), `epsilon_central`, errors."""

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
    """The catalog's fields for this promise, with a larger cap if its local epsilon needs one."""
    cap = f", max_local_epsilon = {ceil(epsilon_local)}" if epsilon_local > USUAL_MAX_LOCAL else ""
    fields = f"in metrics.toml: central_epsilon = {promise.epsilon:g}, crowd = {promise.crowd}{cap}"
    if promise.noise:
        return f'{fields}, dummies = "{NOISE}"'
    if promise.dummies_each:
        return f"{fields}, dummies_each = {promise.dummies_each:g}"
    return fields + (f", dummies = {promise.dummies}" if promise.dummies else "")
