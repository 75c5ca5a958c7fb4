"""The central promise of a rehearsal: what its epochs say of one person."""

from dataclasses import dataclass

from hubbub.privacy.crowd import smallest_crowd
from hubbub.privacy.many_epochs import composed_epsilon
from hubbub.privacy.shuffled_histogram import central_epsilon
from hubbub.simulation.rehearsal import Plan


@dataclass(frozen=True, slots=True)
class Central:
    """What crowds of the smallest size say of one person: one epoch, and all of them, in nats."""

    epoch: float
    all_epochs: float
    delta: float
    crowd: int
    honest: float


def central_of_plan(plan: Plan) -> Central | None:
    """The promise that every epoch keeps that leaves; None of a metric without one."""
    metric, crowd = plan.metric, smallest_crowd(plan.metric)
    if crowd is None:
        return None
    return Central(
        central_epsilon(crowd, metric.delta),
        composed_epsilon([(crowd, plan.epochs)], metric.delta),
        metric.delta,
        crowd.reports,
        crowd.honest,
    )
