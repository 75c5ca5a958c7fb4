"""Limits of a catalog: of each metric, caps per person, and the yearly budget of releases.

[caps]
epsilon_per_day = 8.0
[budget]
epsilon_per_year = 10.0
delta_per_year = 1e-6
purposes = { "annual report" = 0.6, research = 0.4 }
[metrics.theme]
release = { mechanism = "laplace", epsilon = 0.5 }
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Final

from hubbub.errors import BadParameter
from hubbub.fields import kinds
from hubbub.fields.field import check, entry, setting, settings, table_of
from hubbub.fields.frozen import frozen, set_derived
from hubbub.fields.kinds import NUMBERS_BY_NAME, number, shares, word_kind
from hubbub.mechanisms.probability import MAX_EPSILON


@frozen()
class Limits:
    """What one device may report of one metric. Raises BadParameter out of range."""

    reports_per_epoch: int = setting(
        kinds.integer(1, 1000), ("Largest number of reports of one device in an epoch."), "1"
    )
    lifetime_epsilon: float = setting(
        # A lifetime at the largest epsilon, a report a second: above it there is no limit.
        kinds.number("a number of nats", 0, 1e12),
        "Largest privacy loss of one device over its lifetime, in nats; then it stops reporting.",
        "50.0",
    )
    lifetime_central_epsilon: float | None = setting(
        kinds.number("a number of nats", 0, 1e12),
        "The same for the central epsilons of its epochs, for a metric with a crowd.",
        "365.0",
        default=None,
    )

    def __post_init__(self) -> None:
        check(self)


def conflicts(epsilon: float, limits: Limits, tiers: Sequence[float]) -> dict[str, str]:
    """Contradictions between these: by field to correct, what is wrong with it."""
    problems = {}
    if not limits.lifetime_epsilon >= epsilon:
        problems["limits"] = "lifetime_epsilon must be a number not below epsilon; raise it"
    names = {f"{tier:g}" for tier in tiers}
    if not (all(tier < epsilon for tier in tiers) and len(names) == len(tiers)):
        problems["tiers"] = (
            "must ascend to below epsilon, and differ in six digits; write tiers = [0.25, 0.5]"
        )
    return problems


SPANS: Final = {"day": 1, "month": 31, "year": 366}
"""How many days each span has at most."""
RELEASED_BY: Final = ("laplace", "gaussian", "exponential")

_CAP: Final = number("a number of nats", 0, ends="()")
_FAR_BELOW: Final = "far below one divided by the number of people"


@settings
class Caps:
    """Limits on one person's privacy loss over all metrics, in nats; None for no limit.

    Attributes:
        central_mu: limit for crowds, as a Gaussian; None without one.
        by_days: local limits, by length of their span in days.

    Raises:
        BadParameter: a cap is not above 0.
    """

    epsilon_per_day: float | None = setting(
        _CAP, "Largest privacy loss of a person over all metrics in a day.", "8.0", default=None
    )
    epsilon_per_month: float | None = setting(
        _CAP, "The same in any 31 days.", "40.0", default=None
    )
    epsilon_per_year: float | None = setting(
        _CAP, "The same in any 366 days.", "100.0", default=None
    )

    central_epsilon_per_year: float | None = setting(
        _CAP,
        "Largest central privacy loss of a person from all crowds of any 366 days.",
        "30.0",
        default=None,
    )
    central_delta_per_year: float = setting(
        number("a chance", 1e-10, 0.1),
        "Probability with which `central_epsilon_per_year` may be exceeded.",
        "1e-8",
        default=1e-8,
    )
    central_mu: Mapping[str, float] = setting(
        NUMBERS_BY_NAME,
        "What each crowd costs of that, as Gaussian mu.",
        written=False,
        default_factory=dict,
    )

    by_days: Mapping[int, float] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check(self)
        caps = {days: cap for span, days in SPANS.items() if (cap := self.of(span)) is not None}
        set_derived(self, by_days=caps)

    def of(self, span: str) -> float | None:
        """The cap for one of SPANS; None for no cap."""
        cap: float | None = getattr(self, f"epsilon_per_{span}")
        return cap


@frozen()
class Release:
    """How numbers of a metric may be published, at what cost each time. Raises BadParameter."""

    mechanism: str = setting(
        word_kind(lambda: RELEASED_BY), "The mechanism that adds the noise.", '"laplace"'
    )
    epsilon: float = setting(
        number("a number of nats", 0, MAX_EPSILON, "(]"),
        "Cost of one release, taken from the yearly budget.",
        "0.5",
    )
    delta: float = setting(
        number("a number", 0, 1, "[)"),
        f"With `gaussian` only: its delta, {_FAR_BELOW}.",
        "1e-7",
        write=f"choose a delta {_FAR_BELOW}",
        always=True,
        default=0.0,
    )

    def __post_init__(self) -> None:
        check(self)
        if self.mechanism == "gaussian" and not self.delta > 0:
            raise BadParameter(f"gaussian needs a delta in (0, 1), {_FAR_BELOW}")
        if self.mechanism != "gaussian" and self.delta != 0:
            raise BadParameter(f"{self.mechanism} has no delta: leave it out")


@settings
class Budget:
    """What all releases together may spend in a UTC calendar year, and each purpose's share.

    Raises BadParameter if a number is out of range, or the shares exceed 1; the message begins with
    the field.
    """

    epsilon_per_year: float = setting(
        number("a number of nats", 0, ends="()"),
        "Largest cost of all releases of a calendar year (UTC) together.",
        "10.0",
    )
    delta_per_year: float = setting(
        number("a number", 0, 1, "[)"),
        f"The same for delta, which `gaussian` releases cost: {_FAR_BELOW}.",
        "1e-6",
        write=f"choose a delta {_FAR_BELOW}",
        always=True,
        default=0.0,
    )
    purposes: Mapping[str, float] = setting(
        shares("purpose"),
        "Purposes of releases, and the share of the budget that each may spend.",
        '{ "annual report" = 0.6, research = 0.4 }',
        write='write purposes = { "annual report" = 0.6, research = 0.4 }',
    )

    def __post_init__(self) -> None:
        check(self)

    def allowance(self, purpose: str) -> tuple[float, float]:
        """Epsilon and delta that a purpose has in a year; KeyError if it has no share."""
        share = self.purposes[purpose]
        return self.epsilon_per_year * share, self.delta_per_year * share


RELEASE: Final = entry(
    table_of(Release),
    "Noise and cost of published numbers; without it nothing may be published.",
    '{ mechanism = "laplace", epsilon = 0.5 }',
    write='write release = { mechanism = "laplace", epsilon = 0.5 }, for gaussian with delta',
)
