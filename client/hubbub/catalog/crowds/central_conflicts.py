"""A metric's central promise: what a whole shuffled epoch may reveal about one person."""

from math import sqrt
from typing import Any, Final

from hubbub.catalog.crowds.crowd import CROWD_LISTED, CROWD_MEANS, CROWD_PARTS, Crowd
from hubbub.catalog.crowds.noise_dummies import count_conflicts, noise_conflicts
from hubbub.catalog.mechanism_choice import AUTO
from hubbub.fields.field import fields_of
from hubbub.mechanisms import build

CROWD_STRINGS: Final = "local_hash"
"""The mechanism over strings that somebody looks for whose whole epochs are accounted for."""
CROWD_TREE: Final = "tree"
"""The one over strings that nobody listed."""
CROWD_VECTORS: Final = "vector.codes"
# Over few enough parts of a range both have the same payloads.
CROWD_NUMBERS: Final = ("wave", *CROWD_MEANS)

# Number of reports for which messages quote the error of local randomization.
_MANY: Final = 100_000
DUMMIES_OF_LISTED: Final = (
    "are only for listed values, noise dummies also for means and parts; leave them out"
)
# A crowd that leaves when the pool is full reveals, by its time, the arrival of one more report.
_IN_PARTS: Final = (
    "hides the number of reports that leave together once, but a pool that leaves in parts "
    "reveals the arrival of the last report; write central_epsilon and crowd, or leave it "
    "out"
)
DUMMIES_OF_ONE: Final = "are made by devices, dummies by the shuffler; write only one of them"
# A device sends its report and its dummies separately. So a crowd that leaves as soon as it is
# large enough may contain more reports than assumed, whose dummies leave with the next crowd.
DUMMIES_OF_EPOCHS: Final = (
    "of devices may leave in another crowd than their report if crowds are rolling, and "
    'then hide nobody; leave "rolling" out, or let the shuffler make the dummies'
)

PROMISE: Final = ("central_epsilon", "crowd")
"""The fields that make a promise: both or none."""


def central_conflicts(metric: Any) -> dict[str, str]:
    """What conflicts with a metric's central promise: by field, what is wrong with it."""
    crowd = metric.crowd
    if crowd is None or None in (crowd.epsilon, crowd.reports):
        if metric.mechanism == CROWD_PARTS and metric.parameters.get("ways", 2) > 2:  # noqa: PLR2004 a pair
            mechanism: Any = build(metric.mechanism, **metric.arguments)
            error = sqrt(mechanism.groups * mechanism.variance(0, _MANY)) / _MANY
            return {
                "ways": f"{mechanism.ways} needs a crowd: at epsilon {metric.epsilon:g} a cell is "
                f"off by {error:.2%} of {_MANY:,} reports; write central_epsilon and crowd, or "
                'leave "ways" out'
            }
        message = "is only for a central promise; write central_epsilon and crowd"
        if crowd and crowd.count_epsilon is not None:
            return {"count_epsilon": _IN_PARTS}
        if metric.limits.lifetime_central_epsilon is not None:
            return {"limits": f"lifetime_central_epsilon {message}"}
        fields = [field for field in fields_of(Crowd) if crowd and field.of(crowd) != field.default]
        return {fields[0].name: message} if fields else {}
    problems = {}
    lifetime = metric.limits.lifetime_central_epsilon
    if lifetime is not None and lifetime < crowd.epsilon:
        problems["limits"] = "lifetime_central_epsilon must not be below central_epsilon; raise it"
    names = (CROWD_LISTED, CROWD_PARTS, CROWD_VECTORS, CROWD_STRINGS, CROWD_TREE, *CROWD_NUMBERS)
    if metric.mechanism not in names and not metric.model:
        choices = ", ".join(names)
        problems["mechanism"] = f'must be "{AUTO}" or one of {choices} with a crowd'
    problems |= _misfits(metric)
    if metric.epsilon > crowd.max_local_epsilon:
        problems["epsilon"] = (
            f"{metric.epsilon:g} is above max_local_epsilon {crowd.max_local_epsilon:g}; lower "
            "it, or write a larger max_local_epsilon"
        )
    return problems


def _misfits(metric: Any) -> dict[str, str]:
    """What conflicts with any crowd."""
    problems, is_listed, crowd = {}, metric.mechanism == CROWD_LISTED, metric.crowd
    if isinstance(crowd.dummies, str):
        problems["dummies"] = f'is "{crowd.dummies}" only in metrics.toml; write a number here'
    elif crowd.dummies and not is_listed:
        problems["dummies"] = DUMMIES_OF_LISTED
    if crowd.dummies_each and (crowd.dummies or not is_listed):
        problems["dummies_each"] = DUMMIES_OF_ONE if crowd.dummies else DUMMIES_OF_LISTED
    elif crowd.dummies_each and crowd.rolling:
        problems["dummies_each"] = DUMMIES_OF_EPOCHS
    if crowd.period and metric.report_on:
        problems["central_period"] = (
            "cannot be combined with report_on, which puts a person in one crowd of a "
            "period; leave it out"
        )
    problems |= count_conflicts(metric) | noise_conflicts(metric)
    if metric.min_batch != crowd.reports:
        problems["min_batch"] = "equals the crowd; leave it out"
    if metric.limits.reports_per_epoch != 1:
        problems["limits"] = (
            "reports_per_epoch must be 1 with a crowd, which has one report per person"
        )
    if metric.release is not None:
        problems["release"] = "is not needed with a crowd: its answers may be published unchanged"
    if metric.tiers:
        problems["tiers"] = "each would need its own crowd; leave them out"
    return problems
