"""The sealer: encrypts payloads for the aggregator, with all that leaves beside them."""

from dataclasses import replace
from math import floor
from typing import Any, Final

from hubbub.bundles import Bundle, OpeningKeyPublic, key_at
from hubbub.catalog import Metric, epoch_start, grace_seconds
from hubbub.client.cover import FILLER, beside, fills
from hubbub.client.no_reentry import NoReentryLock
from hubbub.client.state.contract import DAMAGED, Dropped, OutboxEntry, PendingPayload
from hubbub.mechanisms import BitSource, OneHot, Probability, SystemBits
from hubbub.sealing.hpke import filler_info, seal, seal_info

_FORK_SECONDS: Final = 1.0


class Sealer:
    """Seals payloads to the keys of a bundle, one at a time."""

    def __init__(self, bundle: Bundle) -> None:
        self._bundle = bundle
        # During a fork no thread is inside OpenSSL, whose locks a child would inherit locked.
        self.lock = NoReentryLock(_FORK_SECONDS)

    def sealed(self, number: int, drawn: PendingPayload) -> OutboxEntry | Dropped:
        """Returns the sealed entry of a payload, or why it cannot be sealed."""
        metric = self._bundle.streams.get(drawn.stream)
        if metric is None:  # a process of the app with an older bundle drew it
            return Dropped(drawn.stream, "unknown_metric")
        key = key_at(self._bundle.keys, epoch_start(drawn.epoch, metric.epoch))
        if key is None:
            return Dropped(drawn.stream, "no_key")
        if drawn.payload == FILLER and not fills(self._bundle):
            return Dropped(drawn.stream, DAMAGED)
        entry = self._entry(number, drawn, metric, key)
        nothing = replace(drawn, tag="", payload=FILLER)
        along = [
            self._entry(number, replace(nothing, stream=stream.name), stream, key)
            for stream in beside(self._bundle, drawn.stream)
        ]
        # A dummy is recorded like a filler: even the device cannot tell later which value it had.
        along += [
            self._entry(number, nothing, metric, key, dummy)
            for dummy in dummy_payloads(metric, SystemBits())
        ]
        return replace(entry, beside=tuple(along))

    def _entry(
        self,
        number: int,
        drawn: PendingPayload,
        metric: Metric,
        key: OpeningKeyPublic,
        dummy: bytes = FILLER,
    ) -> OutboxEntry:
        """Returns the sealed entry; fillers and dummies have the length of a report."""
        payload, info = drawn.payload or dummy, seal_info(drawn.stream, drawn.epoch)
        if payload == FILLER:
            payload = bytes(metric.randomizer.layout.payload_bytes)
            info = filler_info(drawn.stream, drawn.epoch)
        with self.lock.inner:
            sealed = seal(payload, key.half(metric.kem), info)
        late = epoch_start(drawn.epoch + 1, metric.epoch) + grace_seconds(metric.epoch)
        return OutboxEntry(
            number=number, drawn=drawn, metric=metric, key_id=key.id, sealed=sealed, late=late
        )


def dummy_payloads(metric: Any, coins: BitSource) -> list[bytes]:
    """Random payloads that a device sends beside one report, which nobody can distinguish from it.

    PRIVACY: neither their number nor their values depend on the report; all values are equally
    likely.
    """
    layout, dummies_each = metric.randomizer.layout, metric.made_each
    if not dummies_each or not isinstance(layout, OneHot):
        return []
    number = floor(dummies_each) + coins.chance(Probability.at_most(dummies_each % 1))
    return [layout.encode(coins.below(layout.size)) for _ in range(number)]
