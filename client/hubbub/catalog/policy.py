"""What a catalog says besides its metrics: caps per person, and what may be released outside.

[caps]
epsilon_per_day = 8.0
[budget]
epsilon_per_year = 10.0
delta_per_year = 1e-6
purposes = { "annual report" = 0.6, research = 0.4 }
[metrics.theme]
release = { mechanism = "laplace", epsilon = 0.5 }
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from hubbub.catalog.rules import is_number, is_text
from hubbub.errors import BadParameter
from hubbub.mechanisms.probability import MAX_EPSILON

__all__ = [
    "RELEASED_BY",
    "SPANS",
    "Budget",
    "Caps",
    "Release",
    "read_budget",
    "read_caps",
    "read_release",
]

SPANS: Final = {"day": 1, "month": 31, "year": 366}
"""How many days each span has at most."""
RELEASED_BY: Final = ("laplace", "gaussian", "exponential")
_CAPS: Final = tuple(f"epsilon_per_{span}" for span in SPANS)
_ROUNDING: Final = 1e-9
_CAP: Final = "must be a number of nats above 0"
_REMEDY: Final = 'write release = { mechanism = "laplace", epsilon = 0.5 }, for gaussian with delta'

Complain = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class Caps:
    """The most that all metrics together may say about one person, in nats; None: no cap.

    Raises:
        BadParameter: a cap is no number above 0.
    """

    epsilon_per_day: float | None = None
    epsilon_per_month: float | None = None
    epsilon_per_year: float | None = None

    def __post_init__(self) -> None:
        for name in _CAPS:
            cap = getattr(self, name)
            if cap is not None and not (is_number(cap) and cap > 0):
                raise BadParameter(f"{name} {_CAP}")

    def of(self, span: str) -> float | None:
        """The cap of a span of SPANS."""
        cap: float | None = getattr(self, f"epsilon_per_{span}")
        return cap


@dataclass(frozen=True, slots=True)
class Release:
    """How numbers of a metric may be published: each time with this mechanism, at this cost.

    Raises:
        BadParameter: no such mechanism, or a number out of range.
    """

    mechanism: str
    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        if not (isinstance(self.mechanism, str) and self.mechanism in RELEASED_BY):
            raise BadParameter(f"mechanism must be one of {', '.join(RELEASED_BY)}; {_REMEDY}")
        if not (is_number(self.epsilon) and 0 < self.epsilon <= MAX_EPSILON):
            raise BadParameter(
                f"epsilon must be a number of nats in (0, {MAX_EPSILON:g}]; {_REMEDY}"
            )
        if not is_number(self.delta):
            raise BadParameter(f"delta must be a number; {_REMEDY}")
        if self.mechanism == "gaussian" and not 0 < self.delta < 1:
            raise BadParameter(
                "gaussian needs a delta in (0, 1), far below one in the people asked"
            )
        if self.mechanism != "gaussian" and self.delta != 0:
            raise BadParameter(f"{self.mechanism} has no delta: leave it out")


@dataclass(frozen=True, slots=True)
class Budget:
    """What all releases together may spend in a calendar year of UTC, and each purpose's share.

    Raises:
        BadParameter: a number out of range, or shares of more than all; begins with the field.
    """

    epsilon_per_year: float
    delta_per_year: float = 0.0
    purposes: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not (is_number(self.epsilon_per_year) and self.epsilon_per_year > 0):
            raise BadParameter("epsilon_per_year must be a number of nats above 0")
        if not (is_number(self.delta_per_year) and 0 <= self.delta_per_year < 1):
            raise BadParameter(
                "delta_per_year must be a number in [0, 1), far below one in the people asked"
            )
        shares = self.purposes
        if not (
            isinstance(shares, Mapping)
            and shares
            and all(is_text(purpose) for purpose in shares)
            and all(is_number(share) and share > 0 for share in shares.values())
            and sum(shares.values()) <= 1 + _ROUNDING
        ):
            raise BadParameter(
                "purposes must give each purpose its share, together 1 at most; "
                'write purposes = { "annual report" = 0.6, research = 0.4 }'
            )

    def allowance(self, purpose: str) -> tuple[float, float]:
        """Epsilon and delta that a purpose has in a year; KeyError if it has no share."""
        share = self.purposes[purpose]
        return self.epsilon_per_year * share, self.delta_per_year * share


def read_caps(given: Any, wrong: Complain) -> Caps:
    """The [caps] table; complains of what is not a positive number, or not known."""
    if not isinstance(given, dict):
        wrong("caps", f"must be a table of {', '.join(_CAPS)}; write [caps] and them below")
        return Caps()
    kept: dict[str, float] = {}
    for name, cap in given.items():
        if name not in _CAPS:
            wrong(name, f"is not known in [caps]; there are {', '.join(_CAPS)}")
        elif not (is_number(cap) and cap > 0):
            wrong(name, _CAP)
        else:
            kept[name] = float(cap)
    return Caps(**kept)


def read_budget(given: Any, wrong: Complain) -> Budget | None:
    """The [budget] table, or None once something was complained about."""
    fields = {"epsilon_per_year", "delta_per_year", "purposes"}
    if not (isinstance(given, dict) and given.keys() <= fields):
        wrong("budget", "must hold epsilon_per_year, purposes, and perhaps delta_per_year")
        return None
    table: dict[str, Any] = {"epsilon_per_year": None, "purposes": None, **given}
    try:
        budget = Budget(**table)
    except BadParameter as error:
        wrong(*str(error).split(" ", 1))
        return None
    shares = {purpose: float(share) for purpose, share in budget.purposes.items()}
    return Budget(float(budget.epsilon_per_year), float(budget.delta_per_year), shares)


def read_release(given: Any, wrong: Complain) -> Release | None:
    """A metric's `release`, or None if it has none or something was complained about."""
    if given is None:
        return None
    if not (isinstance(given, dict) and given.keys() <= {"mechanism", "epsilon", "delta"}):
        wrong("release", f"must hold mechanism, epsilon and perhaps delta; {_REMEDY}")
        return None
    table: dict[str, Any] = {"mechanism": None, "epsilon": None, **given}
    try:
        release = Release(**table)
    except BadParameter as error:
        wrong("release", str(error))
        return None
    return Release(release.mechanism, float(release.epsilon), float(release.delta))
