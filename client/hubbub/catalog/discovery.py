"""Discovery: some of a metric's devices report any string to a prefix tree, others listed values.

Each device draws its role from its secret, once per epoch or period. The tree is a stream of the
same metric, "plugin/tree", so its limits and account are shared.
"""

from dataclasses import replace
from typing import Any, Final

from hubbub.catalog.plain_python_value import as_python
from hubbub.catalog.values.list_versions import FINDER, is_list
from hubbub.errors import BadParameter, ValueOutOfDomain
from hubbub.fields import kinds
from hubbub.fields.field import entry
from hubbub.mechanisms import REGISTRY, build

_TREE: Final = "tree"

DISCOVER: Final = entry(
    kinds.number("a share", 1e-6, 0.9),
    "Share of the devices that report an unlisted string to a prefix tree instead; each device "
    "draws from its secret, once an epoch or period.",
    "0.2",
    write="write discover = 0.2, or leave it out",
    label="also finds unlisted strings, with a share of",
)

_FIELDS: Final = {
    "crowd": "the devices that find strings would need their own crowd",
    "tiers": "they are streams of their own, and so is what looks for strings",
    "breakdown": "each of its values is a stream of its own, and so few devices find nothing",
    "default": "it is one of the values that are listed",
}


def check_discovery(metric: Any) -> None:
    """Raises BadParameter if a metric cannot discover unlisted strings."""
    if not metric.discover:
        return
    for field, why in _FIELDS.items():
        if getattr(metric, field) not in (None, (), {}):
            raise BadParameter(
                f"{field}: cannot be combined with discover: {why}; leave one of them out"
            )
    mechanism: Any = REGISTRY[metric.mechanism]
    if hasattr(mechanism, "permanent_loss"):
        raise BadParameter(
            f"discover: {metric.mechanism} repeats one permanent answer, but devices of the prefix "
            "tree draw a new one each time; choose a mechanism without a permanent answer"
        )
    if is_list(metric):
        if not metric.other:
            raise BadParameter(
                "discover: devices outside the tree report unlisted strings as other; write "
                "other = true"
            )
    elif mechanism.VALUES != "strings" or mechanism.FAMILY == "tree":
        raise BadParameter(
            f"discover: {metric.mechanism} takes neither listed values nor strings to look for; "
            'leave "discover" out'
        )


def finder_of(metric: Any) -> Any:
    """The stream of the metric for devices that discover strings."""
    return replace(
        metric,
        name=f"{metric.base_name}/{FINDER}",
        mechanism=_TREE,
        parameters={},
        values=None,
        other=False,
        candidates=(),
        grown=(),
        choice=None,
        release=None,
        alert=None,
        supersedes="",
        sampling=metric.sampling * metric.discover,
        discover=0.0,
    )


def spoken(metric: Any, value: Any) -> str:
    """The text that a tree is told of a value, or "". Raises ValueOutOfDomain, in every role."""
    if not metric.discover:
        return ""
    from hubbub.mechanisms.string_hashing import encoded  # noqa: PLC0415 of metrics that discover alone

    value = as_python(value, metric.values or ())
    text = str(value).lower() if isinstance(value, bool) else str(value)
    try:
        encoded(text)
    except ValueOutOfDomain as error:
        raise ValueOutOfDomain(f'metric "{metric.name}": {error}') from None
    return text


def counting(metric: Any) -> float:
    """The chance that a device reports listed values in an epoch."""
    chance: float = metric.sampling * (1 - metric.discover)
    return chance


def loss_of_either(metric: Any) -> float:
    """The largest privacy loss of one report, in nats, in either role."""
    report_loss: float = metric.report_loss
    if not metric.discover:
        return report_loss
    # PRIVACY: a device reports in one of both roles, never in both.
    return max(report_loss, build(_TREE, epsilon=metric.epsilon).privacy_loss())
