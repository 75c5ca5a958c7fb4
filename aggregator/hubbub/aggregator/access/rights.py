"""Rights: who asks, as what, and which metrics they may see. What is not granted does not exist."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final, Literal, get_args

from hubbub.catalog import metric_name_of
from hubbub.errors import AccessRefused

Role = Literal["viewer", "publisher", "admin"]
ROLES: Final[tuple[Role, ...]] = get_args(Role)
"""Each may what the ones before it may."""

Way = Literal["machine", "token", "login", "script"]
"""By what somebody is known: being on this machine, a token of ours, a login at the provider, or a
token of the provider's that a program shows."""


@dataclass(frozen=True, slots=True)
class Grant:
    """A role for some metrics. metrics: patterns of their names, as of files: "*", "browser.*"."""

    role: Role
    metrics: tuple[str, ...] = ("*",)

    def covers(self, metric: str) -> bool:
        """Whether it is for this metric; its tiers and cells ("theme/0.5") are its own."""
        name = metric_name_of(metric)
        return any(fnmatchcase(name, pattern) for pattern in self.metrics)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asks.

    name: for people. subject: the provider's own name of them, "" of tokens. groups: those that
    rights know, of all that somebody is in. until: seconds since 1970; 0 for no end.
    role: the highest they have for anything; None of who may nothing.
    sees_all: whether no metric is hidden from them, whatever it is called. may_all: whether they
    may everything with all of them.
    """

    name: str
    way: Way
    grants: tuple[Grant, ...]
    subject: str = ""
    groups: tuple[str, ...] = ()
    until: int = 0
    role: Role | None = field(init=False, repr=False, compare=False)
    sees_all: bool = field(init=False, repr=False, compare=False)
    may_all: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Decide once what every question asks."""
        roles = [grant.role for grant in self.grants]
        unlimited = [grant.role for grant in self.grants if "*" in grant.metrics]
        object.__setattr__(self, "role", max(roles, key=ROLES.index, default=None))
        object.__setattr__(self, "sees_all", bool(unlimited))
        object.__setattr__(self, "may_all", ROLES[-1] in unlimited)

    def is_a(self, role: Role) -> bool:
        """Whether they have a role, or a higher one, for anything."""
        return self.role is not None and ROLES.index(self.role) >= ROLES.index(role)

    def may(self, role: Role, metric: str) -> bool:
        """Whether they have a role, or a higher one, for a metric."""
        least = ROLES.index(role)
        return any(
            ROLES.index(grant.role) >= least and grant.covers(metric) for grant in self.grants
        )

    def sees(self, metric: str) -> bool:
        """Whether a metric exists for them."""
        return any(grant.covers(metric) for grant in self.grants)

    def check(self, role: Role, metric: str = "") -> None:
        """Raises AccessRefused unless they have a role for anything, and for this metric.

        Of a metric that does not exist for them nothing is said here.
        """
        if not self.is_a(role):
            raise AccessRefused(f"this needs the role {role}")
        if metric and self.sees(metric) and not self.may(role, metric):
            raise AccessRefused(f"this needs the role {role} for this metric")


EVERYONE: Final = Caller(name="this machine", way="machine", grants=(Grant(ROLES[-1]),))
"""Who asks where nobody is asked who they are."""


def granted(groups: Collection[str], rights: Mapping[str, Grant]) -> tuple[Grant, ...]:
    """What members of these groups may, all together."""
    return tuple(grant for group, grant in rights.items() if group in groups)


def within(grants: Iterable[Grant], role: Role) -> tuple[Grant, ...]:
    """The same, with no role above this one."""
    return tuple(Grant(min(grant.role, role, key=ROLES.index), grant.metrics) for grant in grants)
