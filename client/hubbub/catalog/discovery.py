"""Discovery: some of a metric's devices tell a prefix tree any string, the others what is listed.

Which a device does, it draws from its secret, once an epoch or period. The tree is a stream of the
same metric, "plugin/tree", so it is under the metric's limits, and one account pays for both.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from hubbub.catalog.plain_value import as_python
from hubbub.catalog.values.list_versions import FINDER, is_list
from hubbub.errors import BadParameter, ValueOutOfDomain
from hubbub.fields import kinds
from hubbub.fields.field import entry
from hubbub.mechanisms import REGISTRY, build
from hubbub.mechanisms.hashing import encoded

_TREE: Final = "tree"

DISCOVER: Final = entry(
    kinds.number("a share", 1e-6, 0.9),
    "Share of the devices that report an unlisted string to a prefix tree instead; each device "
    "draws from its secret, once an epoch or period.",
    "0.2",
    write="write discover = 0.2, or leave it out",
    label="looks for what nobody listed with a share of",
)

_FIELDS: Final = {
    "crowd": "who looks for strings would need a crowd of their own",
    "tiers": "they are streams of their own, and so is what looks for strings",
    "breakdown": "each of its values is a stream of its own, and so few devices find nothing",
    "default": "it is one of the values that are listed",
}


def check_discovery(metric: Any) -> None:
    """Raises BadParameter where a metric cannot look for what nobody listed."""
    if not metric.discover:
        return
    for field, why in _FIELDS.items():
        if getattr(metric, field) not in (None, (), {}):
            raise BadParameter(f"{field}: does not go with discover: {why}; leave one of them out")
    mechanism: Any = REGISTRY[metric.mechanism]
    if hasattr(mechanism, "permanent_loss"):
        raise BadParameter(
            f"discover: {metric.mechanism} answers for life, and a tree afresh; choose a mechanism "
            "without a permanent answer"
        )
    if is_list(metric):
        if not metric.other:
            raise BadParameter(
                "discover: devices without the tree must count "
                "an unlisted string; write other = true"
            )
    elif mechanism.VALUES != "strings" or mechanism.FAMILY == "tree":
        raise BadParameter(
            f"discover: {metric.mechanism} is not of listed values or of strings that are looked "
            "for; leave it out"
        )


def finder_of(metric: Any) -> Any:
    """What its devices are asked that look for strings: a stream of the metric's."""
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
    """The text of a value that the metric has taken, which a tree is told; "" where none is.

    Raises:
        ValueOutOfDomain: it is too long, or holds what is no character; on every device, whichever
            half it is of.
    """
    if not metric.discover:
        return ""
    value = as_python(value, metric.values or ())
    text = str(value).lower() if isinstance(value, bool) else str(value)
    try:
        encoded(text)
    except ValueOutOfDomain as error:
        raise ValueOutOfDomain(f'metric "{metric.name}": {error}') from None
    return text


def counting(metric: Any) -> float:
    """The chance that a device answers, in an epoch, what is listed."""
    chance: float = metric.sampling * (1 - metric.discover)
    return chance


def loss_of_either(metric: Any) -> float:
    """What one report can lose at most, in nats, whichever half the device is of."""
    own: float = metric.report_loss
    if not metric.discover:
        return own
    # PRIVACY: a device tells one of both.
    return max(own, build(_TREE, epsilon=metric.epsilon).privacy_loss())


def finder_in(streams: Mapping[str, Any], metric: Any) -> Any:
    """Of a bundle's streams the metric's tree; None where it has none."""
    return streams[f"{metric.base_name}/{FINDER}"] if metric.discover else None
