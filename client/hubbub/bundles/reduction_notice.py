"""Notices: signed reductions of what an operator asks, without a release of the app.

They are two signed lines like bundles. A notice can only lower how many devices take part in a
metric, down to none, or stop an arm of an experiment: it has no field for epsilon, values or new
metrics, and a sampling above the bundle's counts as the bundle's.
"""

from collections.abc import Mapping
from dataclasses import field
from itertools import pairwise
from typing import Any, Final, Self

from hubbub.bundles.encoding import MALFORMED, read_json
from hubbub.bundles.key_handover import Handover, line_of
from hubbub.bundles.signatures import SignatureMismatch, check_lines, other_operator_error
from hubbub.catalog.epochs_and_periods import epoch_start
from hubbub.catalog.metric import Metric
from hubbub.errors import BadParameter, NoticeRefused
from hubbub.fields.frozen import frozen, set_derived
from hubbub.fields.rules import NAME, as_tuple, int_if_whole

LARGEST_NOTICE_BYTES: Final = 16 << 10
"""Every answer carries one."""

_LAST: Final = 1 << 53
_STEPS: Final = 16
_LEAST: Final = 1e-6  # as of `sampling` in a catalog

Step = tuple[int, float]
"""From which moment, in seconds since 1970-01-01 UTC, and the chance to take part from then on."""


@frozen(kw_only=True)
class Notice:
    """A notice: metrics that are sampled less, or stopped.

    Args:
        number: grows from notice to notice of one signing key.
        until: epochs that begin at this time or later follow the bundle; seconds since 1970.
        steps: changes by metric, ascending in time; a chance of 0 stops it.
        handovers: from the operator's earlier keys to this one.

    Raises:
        BadParameter: it contains something that a notice cannot change.
    """

    number: int
    until: int
    steps: Mapping[str, tuple[Step, ...]]
    operator: bytes
    handovers: tuple[Handover, ...] = ()
    line: tuple[bytes, ...] = field(init=False, repr=False, compare=False)
    """The operator's signing keys, oldest first, the signer's last."""

    def __post_init__(self) -> None:
        set_derived(self, line=line_of(self.handovers, self.operator))
        if not (_is_moment(self.number) and self.number and _is_moment(self.until)):
            raise BadParameter(f'"number" and "until" must be whole and below {_LAST}')
        for name, steps in self.steps.items():
            if not (isinstance(name, str) and NAME.fullmatch(name)):
                raise BadParameter("a notice contains an invalid metric")
            _check_steps(name, steps)

    def follows(self, former: Self) -> bool:
        """Whether it replaces another: by a higher number, or a later key."""
        if self.operator == former.operator:
            return self.number > former.number
        return former.operator in self.line

    def stopped(self, now: float) -> set[str]:
        """The metrics that it stops at a moment, and arms of experiments as "EXPERIMENT.ARM"."""
        if now >= self.until:
            return set()
        so_far = {
            name: [chance for since, chance in steps if since <= now]
            for name, steps in self.steps.items()
        }
        return {name for name, chances in so_far.items() if chances and not chances[-1]}

    def sampling(self, metric: Metric, epoch: int) -> float:
        """The chance that a device takes part in an epoch; 0 for none.

        It is the same for the whole epoch, whenever a device hears of it: a change during an epoch
        applies from the next one. Only a stop applies at once.
        """
        start = epoch_start(epoch, metric.epoch)
        steps = self.steps.get(metric.base_name, ())
        if start >= self.until:
            return metric.sampling
        if any(not chance and since >= start for since, chance in steps):
            return 0.0
        chances = [chance for since, chance in steps if since <= start]
        return min(metric.sampling, chances[-1]) if chances else metric.sampling


def open_notice(signed: bytes, *, operator: bytes | None) -> Notice:
    """The notice in some bytes, after checking its signature.

    `operator` is the key that signed the app's bundle; it signed the notice too, or handed over to
    its signer. None accepts any signer. Raises NoticeRefused if it is malformed, altered, of
    another operator, or has a field that this version does not support; nothing of it is used.
    """
    if len(signed) > LARGEST_NOTICE_BYTES:
        raise NoticeRefused(f"larger than {LARGEST_NOTICE_BYTES >> 10} KiB: not a notice")
    try:
        head, body = signed.rstrip(b"\n").split(b"\n")
        _, signer = check_lines("notice", head, body)
    except (*MALFORMED, BadParameter) as error:
        raise NoticeRefused("not a notice; make one: hubbub notice make") from error
    except SignatureMismatch as error:
        raise NoticeRefused(
            "the signature does not match: altered after signing; serve it as it was made"
        ) from error
    try:
        notice = _load(read_json(body), signer)
    except (*MALFORMED, BadParameter) as error:
        raise NoticeRefused("signed, but not readable by this version; upgrade hubbub") from error
    if operator is not None and operator not in notice.line:
        raise NoticeRefused(other_operator_error(signer, operator))
    return notice


def _load(body: Any, signer: bytes) -> Notice:
    fields = {"version", "number", "until", "sampling", "handovers"}
    if isinstance(body["version"], bool) or body["version"] != 1 or not body.keys() <= fields:
        raise ValueError("of a later version")
    return Notice(
        number=int_if_whole(body["number"]),
        until=int_if_whole(body["until"]),
        steps={
            name: tuple((int_if_whole(since), chance) for since, chance in as_tuple(steps))
            for name, steps in body["sampling"].items()
        },
        operator=signer,
        handovers=tuple(map(Handover.load, as_tuple(body.get("handovers", [])))),
    )


def _check_steps(name: str, steps: tuple[Step, ...]) -> None:
    if not 1 <= len(steps) <= _STEPS:
        raise BadParameter(f'metric "{name}": {len(steps)} steps are outside [1, {_STEPS}]')
    for since, chance in steps:
        if not _is_moment(since):
            raise BadParameter(f'metric "{name}": a step has no valid time')
        if type(chance) not in (int, float) or not (chance == 0 or _LEAST <= chance <= 1):
            raise BadParameter(f'metric "{name}": a chance to take part is 0 or in [{_LEAST:g}, 1]')
    if any(after <= since for (since, _), (after, _) in pairwise(steps)):
        raise BadParameter(f'metric "{name}": steps do not ascend')


def _is_moment(value: Any) -> bool:
    return type(value) is int and 0 <= value < _LAST
