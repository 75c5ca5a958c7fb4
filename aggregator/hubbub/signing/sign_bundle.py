"""Signs bundles, notices and states of models; makes the shuffler's stream table of a bundle."""

import json
from collections.abc import Mapping
from dataclasses import replace

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hubbub.authoring.crowds.accountant import gathered, minimum
from hubbub.bundles.bundle import Bundle
from hubbub.bundles.encoding import to_text
from hubbub.bundles.key_handover import Handover
from hubbub.bundles.model_state import LARGEST_MODELS_BYTES, ModelState
from hubbub.bundles.reduction_notice import LARGEST_NOTICE_BYTES, Notice
from hubbub.bundles.signatures import as_line, sign_lines
from hubbub.bundles.signed_bundle import VERSION_OF_GROWN, VERSION_OF_TOKENS
from hubbub.catalog.crowds.noise_dummies import count_noise, value_noise
from hubbub.catalog.epochs_and_periods import EPOCH_SECONDS, GRACE_SECONDS
from hubbub.catalog.metric import Metric
from hubbub.errors import BadParameter
from hubbub.fields.field import dumped
from hubbub.sealing.hpke import X25519, X_WING


def sign_bundle(bundle: Bundle, operator: Ed25519PrivateKey, *, whole: bool = False) -> bytes:
    """The signed content of a bundle's file: the app's, or the operator's if `whole`.

    Raises BadParameter if the bundle's roots are not certificates.
    """
    if bundle.roots is not None:
        try:
            x509.load_pem_x509_certificates(bundle.roots.encode())
        except ValueError:
            raise BadParameter("roots does not contain certificates in PEM") from None
    caps, log = dumped(bundle.caps), bundle.log
    promised = {name: promise.data() for name, promise in bundle.promised.items()}
    hybrid = any(metric.kem == X_WING for metric in bundle.metrics.values())
    # A reader that knows only one list of values would count reports of another as its own; the
    # reports of one that knows no tokens would all be refused.
    version = VERSION_OF_GROWN if any(metric.grown for metric in bundle.metrics.values()) else 1
    body = as_line(
        {
            "version": VERSION_OF_TOKENS if bundle.tokens else version,
            "shuffler": bundle.shuffler,
            "roots": bundle.roots,
            "keys": [(key if hybrid else replace(key, x_wing=b"")).words() for key in bundle.keys],
            "history": dict(bundle.history),
            "metrics": {
                name: metric.definition() | dumped(metric, in_definition=False, operator=whole)
                for name, metric in bundle.metrics.items()
            },
        }
        | ({"budget": dumped(bundle.budget)} if bundle.budget else {})
        | ({"caps": caps} if caps else {})
        | ({"serial": bundle.serial} if bundle.serial else {})
        | ({"development": True} if bundle.development else {})
        | ({"runs": dumped(bundle.runs)} if bundle.runs else {})
        | ({"log": {"name": log.name, "key": to_text(log.public)}} if log else {})
        | ({"gateway": to_text(bundle.gateway)} if bundle.gateway else {})
        | ({"cover": True} if bundle.cover else {})
        | ({"tokens": bundle.tokens.words()} if bundle.tokens else {})
        | ({"handovers": [h.words() for h in bundle.handovers]} if bundle.handovers else {})
        | ({"promised": promised} if promised else {})
    )
    return sign_lines("bundle", body, operator)


def sign_notice(notice: Notice, operator: Ed25519PrivateKey) -> bytes:
    """The signed notice. Raises BadParameter if it is too long."""
    body = as_line(
        {
            "version": 1,
            "number": notice.number,
            "until": notice.until,
            "sampling": {name: list(map(list, steps)) for name, steps in notice.steps.items()},
        }
        | ({"handovers": [h.words() for h in notice.handovers]} if notice.handovers else {})
    )
    signed = sign_lines("notice", body, operator)
    if len(signed) > LARGEST_NOTICE_BYTES:
        raise BadParameter(
            f"a notice of {len(signed)} bytes is above {LARGEST_NOTICE_BYTES}, and every answer "
            "carries it; name fewer metrics"
        )
    return signed


def sign_models(
    states: Mapping[str, ModelState],
    operator: Ed25519PrivateKey,
    handovers: tuple[Handover, ...] = (),
) -> bytes:
    """The signed states of models. Raises BadParameter if they are too long."""
    body = as_line(
        {"version": 1, "models": {name: state.words() for name, state in sorted(states.items())}}
        | ({"handovers": [handover.words() for handover in handovers]} if handovers else {})
    )
    signed = sign_lines("models", body, operator)
    if len(signed) > LARGEST_MODELS_BYTES:
        raise BadParameter(
            f"the state of all models is {len(signed)} bytes, above {LARGEST_MODELS_BYTES}; train "
            "fewer models at once, or use fewer columns"
        )
    return signed


def stream_table(bundle: Bundle) -> str:
    """What the shuffler must know, as JSON: lengths, minimum batches and times, but no mechanism.

    If it adds dummies, the table also has the number of values, and the public keys of devices.
    """
    streams = {
        metric.name: {
            "sealed_bytes": metric.sealed_bytes,
            "min_batch": gathered(minimum(metric), metric.made_each),
            "epoch_seconds": EPOCH_SECONDS[metric.epoch],
            "grace_seconds": GRACE_SECONDS[metric.epoch],
            **_departure_fields(metric),
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


def _departure_fields(metric: Metric) -> dict[str, str | int | list[int]]:
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
