"""A promise: a metric's definition and limits, which no later bundle may exceed."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, Self

from hubbub.catalog.metric import Metric
from hubbub.fields.field import dumped
from hubbub.fields.frozen import frozen
from hubbub.fields.rules import is_whole
from hubbub.mechanisms import is_number

_DIGEST_LETTERS: Final = 64
_LIMITS: Final = (
    "epsilon",
    "reports_per_epoch",
    "lifetime_epsilon",
    "lifetime_central_epsilon",
)


@frozen(kw_only=True)
class Promise:
    """The definition of a name, and the smallest of each limit that any bundle had for it.

    Without limits it is the promise of a name that was retired before this device saw it.

    Args:
        digest: of the definition: mechanism, epsilon, parameters, values, epoch.
        lifetime_central_epsilon: None for no limit.
    """

    digest: str
    epsilon: float | None = None
    reports_per_epoch: int | None = None
    lifetime_epsilon: float | None = None
    lifetime_central_epsilon: float | None = None

    @classmethod
    def of(cls, metric: Metric) -> Self:
        """The promise of a metric in a bundle."""
        return cls(digest=metric.digest(), epsilon=metric.epsilon, **dumped(metric.limits))

    @classmethod
    def load(cls, data: Any) -> Self:
        """Reads what `data()` returned. Raises ValueError or TypeError for another shape."""
        digest, epsilon, reports, lifetime, *central = data
        if not (isinstance(digest, str) and len(digest) == _DIGEST_LETTERS):
            raise ValueError("invalid digest")
        figures = (epsilon, reports, lifetime)
        if figures != (None, None, None) and not (
            is_number(epsilon) and is_whole(reports) and is_number(lifetime)
        ):
            raise ValueError("invalid figures")
        # Former versions wrote none, and none is written where there is no limit.
        if not (central == [] or (len(central) == 1 and is_number(central[0]))):
            raise ValueError("invalid figures")
        return cls(digest=digest, **dict(zip(_LIMITS, (*figures, *central), strict=False)))

    def data(self) -> list[Any]:
        """The JSON form."""
        figures = [self.epsilon, self.reports_per_epoch, self.lifetime_epsilon]
        central = self.lifetime_central_epsilon
        return [self.digest, *figures, *([] if central is None else [central])]

    def broken_by(self, other: Self) -> str:
        """How a later promise of the same name exceeds this one; "" if it does not."""
        broken = []
        for name in () if other.epsilon is None else _LIMITS:
            before, now = getattr(self, name), getattr(other, name)
            if before is not None and now is None:
                broken.append(f"{name} {before:g} taken away")
            elif before is not None and now > before:
                broken.append(f"{name} raised from {before:g} to {now:g}")
        if not broken and self.digest != other.digest:
            broken = ["its definition changed"]
        return ", ".join(broken)

    def and_then(self, other: Self) -> Self:
        """The combination of two compatible promises, with the smaller limits."""
        if self.reports_per_epoch is None or other.reports_per_epoch is None:
            return other if self.reports_per_epoch is None else self
        limits: dict[str, Any] = {}
        for name in _LIMITS:
            pair = (getattr(self, name), getattr(other, name))
            limits[name] = min((limit for limit in pair if limit is not None), default=None)
        return replace(self, **limits)


def merge_promises(
    before: Mapping[str, Promise], later: Mapping[str, Promise]
) -> tuple[dict[str, Promise], dict[str, str]]:
    """The promises of all bundles so far, and how a later bundle breaks them, by name.

    Builder, audit and devices compare with this sum, not with the last bundle: a name that was
    retired and comes back is still limited by what it promised then.

    Args:
        before: the sum of the bundles before. A promise that is broken stays as it was.
        later: what the bundle after them promises.
    """
    promises, broken = dict(before), {}
    for name, promise in later.items():
        if name not in before:
            promises[name] = promise
        elif problem := before[name].broken_by(promise):
            broken[name] = problem
        else:
            promises[name] = before[name].and_then(promise)
    return promises, broken
