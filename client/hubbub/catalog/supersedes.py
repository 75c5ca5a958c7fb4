"""Supersedes: a metric that continues another under a new name, so that trends join them.

Reports of both stay separate, with their own mechanism, totals and budget: nothing is recoded.
"""

from collections.abc import Iterator, Mapping

from hubbub.catalog.metric import Metric


def superseded_by(metric: Metric, metrics: Mapping[str, Metric]) -> list[Metric]:
    """The metrics that this metric continues, latest first; none for a tier."""
    chain: list[Metric] = []
    name = "" if metric.tier else metric.supersedes
    while name:
        chain.append(metrics[name])
        name = metrics[name].supersedes
    return chain


def misfits(metrics: Mapping[str, Metric]) -> Iterator[tuple[str, str]]:
    """Yields each metric that cannot continue the one that it names, and why, with the remedy."""
    followed: dict[str, str] = {}
    for metric in metrics.values():
        name = metric.supersedes
        if not name:
            continue
        if name not in metrics:
            problem = (
                f'"{name[:60]}" is not in this catalog, but its totals still need a '
                "definition: restore its table, with the last day of its reports as expires"
            )
        elif name in followed:
            problem = f'"{name}" is superseded by "{followed[name]}"; leave one out'
        elif _ends_in_itself(metric, metrics):
            problem = f'"{name}" continues it in turn; leave it out of one of them'
        elif reason := _misfit(metric, metrics[name]):
            problem = f'cannot go on from "{name}": {reason}; leave it out'
        else:
            problem = ""
        if problem:
            yield metric.name, problem
        followed.setdefault(name, metric.name)


def _ends_in_itself(metric: Metric, metrics: Mapping[str, Metric]) -> bool:
    names = {metric.name}
    name = metric.supersedes
    while name in metrics:
        if name in names:
            return True
        names.add(name)
        name = metrics[name].supersedes
    return False


def _misfit(new: Metric, old: Metric) -> str:
    """Why two metrics' shares or means cannot be compared; "" if they can."""
    if new.epoch != old.epoch:
        return f"its epoch is {new.epoch}, and that one's {old.epoch}"
    if new.unit != old.unit:
        return "their units differ"
    kinds = [_kind(metric) for metric in (new, old)]
    if kinds in (["values", "values"], ["sets", "sets"]):
        shared = set(new.values or ()) & set(old.values or ())
        return "" if shared else "they have no value in common"
    if kinds == ["numbers", "numbers"]:
        ends = [[metric.parameters[end] for end in ("low", "high")] for metric in (new, old)]
        return "" if ends[0] == ends[1] else "their low and high differ"
    return f"it is over {kinds[0]} and that one over {kinds[1]}; values or numbers join"


def _kind(metric: Metric) -> str:
    if metric.parts:
        return "parts"
    if metric.values is not None:
        return metric.value_kind.SETS
    return "numbers" if "low" in metric.parameters else "strings"
