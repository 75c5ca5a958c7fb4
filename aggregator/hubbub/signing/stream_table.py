"""Makes the shuffler's stream table from a bundle."""

import json

from hubbub.authoring.crowds.dummy_counts import gathered, minimum
from hubbub.bundles.bundle import Bundle
from hubbub.bundles.encoding import to_text
from hubbub.catalog.crowds.noise_dummies import count_noise, value_noise
from hubbub.catalog.epochs import EPOCH_SECONDS, grace_seconds
from hubbub.catalog.metric import Metric
from hubbub.sealing.kems import X25519, X_WING


def stream_table(bundle: Bundle) -> str:
    """What the shuffler must know, as JSON: lengths, minimum batches and times, but no mechanism.

    If it adds dummies, the table also has the number of values, and the public keys of devices.
    """
    streams = {
        metric.name: {
            "sealed_bytes": metric.sealed_bytes,
            "min_batch": gathered(minimum(metric), metric.made_each),
            "epoch_seconds": EPOCH_SECONDS[metric.epoch],
            "grace_seconds": grace_seconds(metric.epoch),
            **_leaving(metric),
            **({"tokens": metric.limits.reports_per_epoch} if bundle.tokens else {}),
        }
        for metric in bundle.streams.values()
    }
    padded = {metric.kem for metric in bundle.streams.values() if "values" in streams[metric.name]}
    keys = [
        {"id": key.id, "start": key.start, "end": key.end}
        | ({"public": to_text(key.public)} if X25519 in padded else {})
        | ({"x_wing": to_text(key.x_wing)} if X_WING in padded else {})
        for key in bundle.keys
    ]
    marked: dict[str, bool | int] = {"development": True} if bundle.development else {}
    if bundle.tokens:
        marked["devices"] = bundle.tokens.terms.devices
    return json.dumps({"version": 1, **marked, "streams": streams, "keys": keys}, indent=1) + "\n"


def _leaving(metric: Metric) -> dict[str, str | int | list[int]]:
    """The fields that say how a crowd leaves, and the dummies: their number or distribution."""
    crowd = metric.central
    if crowd is None:
        return {}
    named = value_noise(metric)
    laws = {
        "noise": count_noise(metric),
        "value_noise": named and named.each,
        "sum_noise": named and named.of_sum,
    }
    if not (crowd.dummies or any(laws.values())):
        return {"mix": metric.mix}
    return {
        "mix": metric.mix,
        **({"dummies": crowd.dummies} if crowd.dummies else {}),
        **{name: [law.odds, law.reach] for name, law in laws.items() if law},
        "values": metric.randomizer.layout.size,
        **({} if metric.kem == X25519 else {"kem": metric.kem}),
    }
