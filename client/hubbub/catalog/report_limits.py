"""Limits: what one device may report of one metric, and contradictions between epsilons."""

from collections.abc import Sequence

from hubbub.fields import kinds
from hubbub.fields.field import check, setting
from hubbub.fields.frozen import frozen


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
