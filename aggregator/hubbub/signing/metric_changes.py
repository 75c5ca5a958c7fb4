"""Compares bundles: whether metrics may follow earlier ones, and what they then reveal."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from hubbub.bundles.bundle import Bundle
from hubbub.bundles.encoding import to_text
from hubbub.bundles.metric_promise import Promise, merge_promises
from hubbub.catalog.breakdown import missing_values
from hubbub.catalog.default_and_cover import NONE
from hubbub.catalog.metric import Metric
from hubbub.catalog.values.list_versions import digests_of, is_list
from hubbub.catalog.values.value_kind import OTHER
from hubbub.errors import BadParameter, BundleRefused, CatalogInvalid
from hubbub.fields.field import dumped
from hubbub.mechanisms.vector_codes import POOL, VectorCodes


def continued_metrics(metrics: Mapping[str, Metric], previous: Bundle) -> dict[str, Metric]:
    """The metrics as continued from the previous bundle, with appended values marked."""
    before = previous.metrics
    return {name: continued_metric(metric, before.get(name)) for name, metric in metrics.items()}


def refuse_changes(metrics: Mapping[str, Metric], previous: Bundle) -> dict[str, str]:
    """The history to continue: every name ever used, with its definition's digest.

    Raises:
        BundleRefused: a metric changed under an old name, or its limits were raised.
        CatalogInvalid: as `refuse_ended_experiment` does.
    """
    history = dict(previous.history)
    promises = previous.promises()
    _, broken = merge_promises(promises, {n: Promise.of(entry) for n, entry in metrics.items()})
    problems = []
    for name, metric in metrics.items():
        if all(
            history.setdefault(version, digest) == digest
            for version, digest in digests_of(metric).items()
        ):
            before = previous.metrics.get(name)
            if before and digests_of(before).keys() - digests_of(metric).keys():
                problems.append(
                    f'metric "{name}": values were removed under an old name; reports of them '
                    "would be lost: put them back, in their order, or give the metric a new name"
                )
            elif name in promises and promises[name].epsilon is None:
                problems.append(
                    f'metric "{name}": was retired by a version of hubbub that lost its promises, '
                    f'which devices still enforce; give the metric a new name, such as "{name}_2"'
                )
            elif name in broken:
                problems.append(
                    f'metric "{name}": {broken[name]} under an old name; devices refuse a '
                    "bundle that allows more than was promised: lower it, or give the "
                    f'metric a new name, such as "{name}_2"'
                )
            if before and (gone := missing_values(before.breakdown, metric.breakdown)):
                problems.append(
                    f'metric "{name}": breakdown has lost {gone}, whose totals would no '
                    "longer be found: restore it"
                )
            if changed := _changed_arms(before, metric):
                problems.append(f'metric "{name}": {changed}')
            continue
        if name in previous.metrics:
            old, new = previous.metrics[name].definition(), metric.definition()
            changed = ", ".join(
                field for field in {**new, **old} if new.get(field) != old.get(field)
            )
        else:
            changed = "the definition of this retired name"
        problems.append(
            f'metric "{name}": {changed} changed under an old name; their totals do not add: '
            f'give the new definition a new name, such as "{name}_2", and supersedes = "{name}" so '
            "that trends join them" + why_not_grown(previous.metrics.get(name), metric)
        )
    if problems:
        raise BundleRefused("\n".join(problems))
    return history


def continued_metric(metric: Metric, before: Metric | None) -> Metric:
    """The metric as continued from an earlier definition, if values were only appended.

    With `auto`, lists, numbers and vectors keep their mechanism, whatever this version would
    choose, since totals of one mechanism are added up. "other" and the "none" of a default keep
    their places among the values, so that a list begins as the earlier one did.
    """
    if before is None:
        return metric
    is_pool = metric.mechanism == before.mechanism == VectorCodes.NAME
    if metric.values == before.values and (metric.values is None or is_pool):
        return _with_former_mechanism(metric, before)
    if metric.values is None or before.values is None or not is_list(before):
        return metric
    specials = {OTHER} if metric.other and before.other else set()
    specials |= {NONE} if metric.default == before.default == NONE else set()
    if specials:
        metric = replace(metric, values=_continued_values(metric.values, before.values, specials))
    assert metric.values is not None  # noqa: S101 of a list alone
    if metric.values[: len(before.values)] != before.values:
        return metric
    has_grown = len(metric.values) > len(before.values)
    metric = _with_former_mechanism(metric, before)
    if not is_list(metric):
        return metric
    return replace(metric, grown=(*before.grown, len(before.values)) if has_grown else before.grown)


def _with_former_mechanism(metric: Metric, before: Metric) -> Metric:
    """The metric with the mechanism or pool that `auto` chose before, of the same question."""
    questions = [
        (item.epsilon, {n: x for n, x in item.parameters.items() if n not in POOL})
        for item in (metric, before)
    ]
    if not metric.choice or questions[0] != questions[1]:
        return metric
    signed_fields = {name: getattr(before, name) for name in ("mechanism", "parameters", "choice")}
    with suppress(BadParameter):  # rr takes two values alone
        metric = replace(metric, **signed_fields)
    return metric


def why_not_grown(before: Metric | None, metric: Metric) -> str:
    """Why values cannot be continued under their name, as a sentence's end; "" if they can."""
    if before is None or not before.values or not metric.values:
        return ""
    if not is_list(before):
        # What is listed beside each other: of a table its cells, of a number its ranges.
        list_kind = "edges" if before.edges else "parts" if before.parts else ""
        list_kind = list_kind or before.value_kind.NAME_OF_VALUES
        longer = set(before.values) < set(metric.values) or list_kind == "parts"
        return f" (values can only be appended to plain lists, not to {list_kind})" * longer
    if gone := len(set(before.values) - set(metric.values)):
        return (
            f"; {gone:,} of the {len(before.values):,} values vanished: values may only be appended"
        )
    is_longer = metric.values[: len(before.values)] == before.values
    if is_longer and before.choice and before.mechanism != metric.mechanism:
        return f'; {before.mechanism}, which "auto" chose for the shorter list, takes no longer one'
    if is_longer and before.central:
        return (
            "; values can be appended once it is written: "
            f'mechanism = "{before.mechanism}" and epsilon = {before.epsilon:g}'
        )
    return ""


def _continued_values(
    values: Sequence[str], before: Sequence[str], specials: Collection[str]
) -> tuple[str, ...]:
    """The values in the earlier order, if they begin like that; specials keep their places."""
    names, prior = (
        [value for value in listing if value not in specials] for listing in (values, before)
    )
    same = names[: len(prior)] == prior
    return (*before, *names[len(prior) :]) if same else tuple(values)


def refuse_ended_experiment(metric: Metric) -> None:
    """Raises CatalogInvalid if the experiment that a metric begins to measure has ended."""
    if metric.experiment and metric.experiment.is_over(()):
        raise CatalogInvalid(
            f'metric "{metric.name}": the experiment "{metric.experiment.name}" has ended, since '
            "an arm has weight 0, so no report would belong to an arm: name a running experiment, "
            "or none"
        )


def _changed_arms(former: Metric | None, metric: Metric) -> str:
    """The forbidden changes of a metric's experiment; "" if there are none: arms may only end."""
    before, after = former.experiment if former else None, metric.experiment
    if not (before and after and before.name == after.name):
        refuse_ended_experiment(metric)
        return ""
    ended = [arm for arm, weight in before.arms.items() if not weight]
    if revived := [arm for arm in ended if after.arms.get(arm)]:
        return (
            f'the experiment "{after.name}" ended its arm {revived[0]}, and devices that had it '
            "were given another: try it again in an experiment of another name"
        )
    # Their order counts: it decides which arm a device draws, and which is compared with.
    unended = [(arm, weight or before.arms.get(arm)) for arm, weight in after.arms.items()]
    if unended != list(before.arms.items()):
        return (
            f'experiment "{after.name}": arms changed under an old name, so that devices would '
            "change theirs; give the experiment a new name, or end an arm by a weight of 0"
        )
    return ""


MORE: Final = "more"
LESS: Final = "less"
NEITHER: Final = "other"

# Which way a person gives more, where a number alone tells; a limit that is not there is endless.
_MORE_IF_LARGER: Final = frozenset(
    {"epsilon", "reports_per_epoch", "lifetime_epsilon", "lifetime_central_epsilon", "sampling"}
)
_CAPS: Final = "caps."
_MORE_IF_SMALLER: Final = frozenset({"min_batch", "crowd"})
_WHERE_ABSENT: Final = {"sampling": 1.0, "crowd": 0.0, "reports_per_epoch": 1.0}
_LONGEST: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A field that differs. `metric` is "" for the bundle's own; `gives`: MORE, LESS or NEITHER."""

    metric: str
    field: str
    before: str
    after: str
    gives: str


def differences(old: Bundle, new: Bundle) -> list[Difference]:
    """All differences except serials and signatures, which always differ."""
    caps = [
        {f"{_CAPS}{name}": cap for name, cap in dumped(bundle.caps).items()}
        for bundle in (old, new)
    ]
    changes = [*_table_differences("", *caps), *_catalog_differences(old, new)]
    for name in sorted(old.metrics.keys() | new.metrics.keys()):
        before, after = old.metrics.get(name), new.metrics.get(name)
        if before and after:
            fields = (m.definition() | dumped(m, in_definition=False) for m in (before, after))
            changes += _table_differences(name, *fields)
            continue
        was, now = (
            f"epsilon {metric.epsilon:g} a report, {metric.limits.lifetime_epsilon:g} for life"
            if metric
            else "no"
            for metric in (before, after)
        )
        gives = MORE if after else LESS
        changes.append(Difference(metric=name, field="asked", before=was, after=now, gives=gives))
        promise = old.promises().get(name)
        if after and promise and (broken := promise.broken_by(Promise.of(after))):
            what = "promised under this name"
            changes.append(
                Difference(metric=name, field=what, before="less", after=broken, gives=MORE)
            )
    return changes


def _catalog_differences(old: Bundle, new: Bundle) -> Iterator[Difference]:
    after = _texts(new)
    for name, was in _texts(old).items():
        if was != (now := after[name]):
            yield Difference(metric="", field=name, before=was, after=now, gives=NEITHER)
    if old.tokens != new.tokens:
        was, now = _issuer(old), _issuer(new)
        yield Difference(metric="", field="tokens", before=was, after=now, gives=NEITHER)
    if old.cover is not new.cover:
        was, now, gives = _json_text(old.cover), _json_text(new.cover), (MORE, LESS)[new.cover]
        yield Difference(metric="", field="cover", before=was, after=now, gives=gives)


def _texts(bundle: Bundle) -> dict[str, str]:
    runs = bundle.runs
    return {
        "operator": to_text(bundle.operator),
        "shuffler": bundle.shuffler,
        "who runs the shuffler": runs.shuffler if runs else "not said",
        "who runs the aggregator": runs.aggregator if runs else "not said",
        "log": str(bundle.log or "none"),
        "opening keys": ", ".join(f"{key.id} {to_text(key.public)[:8]}" for key in bundle.keys),
        "authorities": _shortened(bundle.roots or "the system's"),
        "development": _json_text(bundle.development),
    }


def _issuer(bundle: Bundle) -> str:
    if bundle.tokens is None:
        return "none"
    terms = bundle.tokens.terms
    return f"{terms.issuer}, {terms.devices} devices, key {to_text(bundle.tokens.public)[:8]}"


def _table_differences(
    metric: str, old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[Difference]:
    for name in sorted(old.keys() | new.keys()):
        was, now = old.get(name), new.get(name)
        if was != now:
            before, after = _json_text(was), _json_text(now)
            gives = _change_direction(name, was, now)
            yield Difference(metric=metric, field=name, before=before, after=after, gives=gives)


def _change_direction(name: str, was: Any, now: Any) -> str:
    if_larger = name in _MORE_IF_LARGER or name.startswith(_CAPS)
    if not if_larger and name not in _MORE_IF_SMALLER:
        return NEITHER
    absent = _WHERE_ABSENT.get(name, float("inf"))
    before, after = (absent if value is None else value for value in (was, now))
    if not all(isinstance(value, int | float) for value in (before, after)):
        return NEITHER
    return MORE if (after > before) is if_larger else LESS


def _json_text(value: Any) -> str:
    return "none" if value is None else _shortened(json.dumps(value, default=str))


def _shortened(text: str) -> str:
    """A long text, cut, with its length, so that two that differ do not look the same."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({len(text)} letters)"
