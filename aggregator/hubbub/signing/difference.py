"""The difference in privacy between two bundles: what a person gives more or less."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from hubbub.bundles.bundle import Bundle
from hubbub.bundles.encoding import to_text
from hubbub.bundles.promise import Promise
from hubbub.fields.field import dumped

MORE: Final = "more"
LESS: Final = "less"
OTHER: Final = "other"

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
    """A field that differs. `metric` is "" for the bundle's own; `gives`: MORE, LESS, or OTHER."""

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
            yield Difference(metric="", field=name, before=was, after=now, gives=OTHER)
    if old.tokens != new.tokens:
        was, now = _issuer(old), _issuer(new)
        yield Difference(metric="", field="tokens", before=was, after=now, gives=OTHER)
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
        "authorities": _short(bundle.roots or "the system's"),
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
            gives = _gives(name, was, now)
            yield Difference(metric=metric, field=name, before=before, after=after, gives=gives)


def _gives(name: str, was: Any, now: Any) -> str:
    if_larger = name in _MORE_IF_LARGER or name.startswith(_CAPS)
    if not if_larger and name not in _MORE_IF_SMALLER:
        return OTHER
    absent = _WHERE_ABSENT.get(name, float("inf"))
    before, after = (absent if value is None else value for value in (was, now))
    if not all(isinstance(value, int | float) for value in (before, after)):
        return OTHER
    return MORE if (after > before) is if_larger else LESS


def _json_text(thing: Any) -> str:
    return "none" if thing is None else _short(json.dumps(thing, default=str))


def _short(text: str) -> str:
    """A long text, cut, with its length, so that two that differ do not look the same."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({len(text)} letters)"
