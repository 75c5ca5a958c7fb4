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
# One device in a million; fewer are asked by asking in fewer places.
_LEAST_SAMPLING: Final = 1e-6
_REMEDY: Final = 'write release = { mechanism = "laplace", epsilon = 0.5 }, for gaussian with delta'

Complain = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class Caps:
    """The most that all metrics together may say about one person, in nats; None: no cap."""

    epsilon_per_day: float | None = None
    epsilon_per_month: float | None = None
    epsilon_per_year: float | None = None

    def of(self, span: str) -> float | None:
        """The cap of a span of SPANS."""
        cap: float | None = getattr(self, f"epsilon_per_{span}")
        return cap


@dataclass(frozen=True, slots=True)
class Release:
    """How numbers of a metric may be published: each time with this mechanism, at this cost."""

    mechanism: str
    epsilon: float
    delta: float = 0.0


@dataclass(frozen=True, slots=True)
class Budget:
    """What all releases together may spend in a calendar year of UTC, and each purpose's share."""

    epsilon_per_year: float
    delta_per_year: float = 0.0
    purposes: Mapping[str, float] = field(default_factory=dict)

    def allowance(self, purpose: str) -> tuple[float, float]:
        """Epsilon and delta that a purpose has in a year; KeyError if it has no share."""
        share = self.purposes[purpose]
        return self.epsilon_per_year * share, self.delta_per_year * share


def read_caps(given: Any, wrong: Complain) -> Caps:  # noqa: ANN401 parsed TOML
    """The [caps] table; complains of what is not a positive number, or not known."""
    if not isinstance(given, dict):
        wrong("caps", f"must be a table of {', '.join(_CAPS)}; write [caps] and them below")
        return Caps()
    for name, cap in given.items():
        if name not in _CAPS:
            wrong(name, f"is not known in [caps]; there are {', '.join(_CAPS)}")
        elif not (_number(cap) and cap > 0):
            wrong(name, "must be a number of nats above 0")
    return Caps(**{name: float(given[name]) for name in _CAPS if _number(given.get(name))})


def read_budget(given: Any, wrong: Complain) -> Budget | None:  # noqa: ANN401 parsed TOML
    """The [budget] table, or None once something was complained about."""
    fields = {"epsilon_per_year", "delta_per_year", "purposes"}
    if not (isinstance(given, dict) and given.keys() <= fields):
        wrong("budget", "must hold epsilon_per_year, purposes, and perhaps delta_per_year")
        return None
    table: dict[str, Any] = given
    epsilon: Any = table.get("epsilon_per_year")
    delta: Any = table.get("delta_per_year", 0.0)
    purposes: Any = table.get("purposes")
    if not (_number(epsilon) and epsilon > 0):
        wrong("epsilon_per_year", "must be a number of nats above 0")
    elif not (_number(delta) and 0 <= delta < 1):
        wrong("delta_per_year", "must be a number in [0, 1), far below one in the people asked")
    elif not (
        isinstance(purposes, dict)
        and purposes
        and all(_number(share) and share > 0 for share in purposes.values())
        and sum(purposes.values()) <= 1 + _ROUNDING
    ):
        wrong(
            "purposes",
            "must give each purpose its share, together 1 at most; "
            'write purposes = { "annual report" = 0.6, research = 0.4 }',
        )
    else:
        return Budget(float(epsilon), float(delta), {k: float(v) for k, v in purposes.items()})
    return None


def read_release(given: Any, wrong: Complain) -> Release | None:  # noqa: ANN401 parsed TOML
    """A metric's `release`, or None if it has none or something was complained about."""
    if given is None:
        return None
    if not (isinstance(given, dict) and given.keys() <= {"mechanism", "epsilon", "delta"}):
        wrong("release", f"must hold mechanism, epsilon and perhaps delta; {_REMEDY}")
        return None
    table: dict[str, Any] = given
    mechanism: Any = table.get("mechanism")
    epsilon: Any = table.get("epsilon")
    delta: Any = table.get("delta", 0.0)
    if mechanism not in RELEASED_BY:
        wrong("release", f"mechanism must be one of {', '.join(RELEASED_BY)}; {_REMEDY}")
    elif not (_number(epsilon) and 0 < epsilon <= 16):  # noqa: PLR2004 as a report's
        wrong("release", f"epsilon must be a number of nats in (0, 16]; {_REMEDY}")
    elif mechanism == "gaussian" and not (_number(delta) and 0 < delta < 1):
        wrong("release", "gaussian needs a delta in (0, 1), far below one in the people asked")
    elif mechanism != "gaussian" and delta != 0:
        wrong("release", f"{mechanism} has no delta: leave it out")
    else:
        return Release(mechanism, float(epsilon), float(delta))
    return None


def read_sampling(given: Any, wrong: Complain) -> float:  # noqa: ANN401 parsed TOML
    """A metric's chance that a device takes part; complains of what is none."""
    if not (_number(given) and _LEAST_SAMPLING <= given <= 1):
        wrong("sampling", f"must be a chance in [{_LEAST_SAMPLING}, 1]; write sampling = 0.1")
        return 1.0
    return float(given)


def _number(thing: Any) -> bool:  # noqa: ANN401 parsed TOML
    return isinstance(thing, int | float) and not isinstance(thing, bool)
