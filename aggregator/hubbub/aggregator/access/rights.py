"""Rights: a caller's roles, and the metrics that they may see; others do not exist for them."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final, Literal, get_args

from hubbub.errors import AccessRefused
from hubbub.fields.rules import metric_name_of

Role = Literal["viewer", "publisher", "admin"]
ROLES: Final[tuple[Role, ...]] = get_args(Role)
"""Each may what the ones before it may."""

Way = Literal["machine", "token", "login", "script"]
"""By what somebody is known: being on this machine, a token of ours, a login at the provider, or a
token of the provider's that a program shows."""


@dataclass(frozen=True, slots=True)
class Grant:
    """A role for some metrics; `metrics` are patterns of names as for files: "*", "browser.*"."""

    role: Role
    metrics: tuple[str, ...] = ("*",)

    def covers(self, metric: str) -> bool:
        """Whether it includes this metric; tiers and cells ("theme/0.5") belong to their metric."""
        name = metric_name_of(metric)
        return any(fnmatchcase(name, pattern) for pattern in self.metrics)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The caller of a request.

    Args:
        name: for display.
        subject: the provider's identifier; "" for tokens.
        groups: the person's groups that have rights.
        until: end of access in seconds since 1970; 0 for no end.
        role: highest role for any metric; None without any.
        sees_all: whether no metric is hidden.
        may_all: whether everything is allowed for all metrics.
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
        """Precomputes the answers to frequent checks."""
        roles = [grant.role for grant in self.grants]
        unlimited = [grant.role for grant in self.grants if "*" in grant.metrics]
        object.__setattr__(self, "role", max(roles, key=ROLES.index, default=None))
        object.__setattr__(self, "sees_all", bool(unlimited))
        object.__setattr__(self, "may_all", ROLES[-1] in unlimited)

    def sees(self, metric: str) -> bool:
        """Whether a metric exists for the caller."""
        return any(grant.covers(metric) for grant in self.grants)

    def check(self, role: Role, metric: str = "") -> None:
        """Raises AccessRefused unless the caller has the role, and has it for this metric.

        Does not raise for a metric that does not exist for the caller.
        """
        allowed = ROLES[ROLES.index(role) :]
        if self.role not in allowed:
            raise AccessRefused(f"this needs the role {role}")
        roles = {grant.role for grant in self.grants if grant.covers(metric)} if metric else set()
        if roles and roles.isdisjoint(allowed):
            raise AccessRefused(f"this needs the role {role} for this metric")


EVERYONE: Final = Caller(name="this machine", way="machine", grants=(Grant(ROLES[-1]),))
"""Who asks where nobody is asked who they are."""


def granted(groups: Collection[str], rights: Mapping[str, Grant]) -> tuple[Grant, ...]:
    """All grants of these groups together."""
    return tuple(grant for group, grant in rights.items() if group in groups)


def within(grants: Iterable[Grant], role: Role) -> tuple[Grant, ...]:
    """The grants, with roles lowered to at most this one."""
    return tuple(Grant(min(grant.role, role, key=ROLES.index), grant.metrics) for grant in grants)
