"""The choice that a catalog recorded for `mechanism = "auto"`: the mechanism and the runner-up."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from hubbub.errors import BadParameter
from hubbub.fields.frozen import frozen
from hubbub.fields.kinds import NUMBERS_BY_NAME, Kind
from hubbub.fields.rules import is_text, is_whole
from hubbub.mechanisms import is_number

AUTO: Final = "auto"
UNKNOWN: Final = 0.0
"""The standard error of an option that no formula gives, or that has no other beside it."""


@frozen(kw_only=True)
class Option:
    """One mechanism for a metric, with its figures.

    Args:
        stderr: root mean square over all values, in reports; for a mean the largest, in its unit;
            for percentiles of the reports below an edge; UNKNOWN where one mechanism answers.
    """

    mechanism: str
    parameters: Mapping[str, float]
    stderr: float
    payload_bytes: int
    cells: int

    def __post_init__(self) -> None:
        if not (
            not NUMBERS_BY_NAME.problem(self.parameters)
            and is_text(self.mechanism)
            and is_number(self.stderr)
            and is_whole(self.payload_bytes)
            and is_whole(self.cells)
        ):
            raise BadParameter("a mechanism that auto compared lacks its name or figures")


@frozen()
class Choice:
    """The chosen mechanism for a number of reports, and the runner-up, if any."""

    reports: int
    best: Option
    runner_up: Option | None

    def __post_init__(self) -> None:
        if not (is_whole(self.reports) and self.reports >= 1):
            raise BadParameter("a choice of auto has no valid number of reports")

    def __str__(self) -> str:
        text = f"chosen for {self.reports:,} reports: {_option_text(self.best)}"
        return f"{text}; next {_option_text(self.runner_up)}" if self.runner_up else text


def _load(entry: Any) -> Choice:
    best, runner_up = entry["best"], entry["runner_up"]
    return Choice(entry["reports"], Option(**best), Option(**runner_up) if runner_up else None)


CHOICE: Final = Kind(
    words=lambda: "what was chosen, and what came next",
    problem=lambda value: "" if isinstance(value, Choice) else "must be a choice",
    schema=dict,
    dump=asdict,
    load=_load,
)
"""The kind of a field that tells how a mechanism was chosen, which only a bundle has."""


def _option_text(option: Option) -> str:
    size = "1 byte" if option.payload_bytes == 1 else f"{option.payload_bytes:,} bytes"
    error = f"standard error {option.stderr:,.4g}, " if option.stderr != UNKNOWN else ""
    return f"{option.mechanism} ({error}{size} a report)"
