"""The bundle: the one signed file that an app ships. And the shuffler's stream table, made with it.

A bundle is two lines of JSON: who signed it, and what was signed. The signature (Ed25519) is over
the second line's bytes as they stand, so there is nothing to canonicalise.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any, Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from hubbub.catalog.choice import load_choice
from hubbub.catalog.epochs import EPOCH_SECONDS, grace_seconds
from hubbub.catalog.keys import OpeningKeyPublic
from hubbub.catalog.metric import Limits, Metric
from hubbub.catalog.policy import Budget, Release
from hubbub.catalog.sealing import SEAL_BYTES
from hubbub.catalog.text import MALFORMED, from_text, to_text
from hubbub.errors import BundleRefused, HubbubError, UnknownMetric

__all__ = ["Bundle", "open_bundle", "read_bundle", "refuse_changes", "sign_bundle", "stream_table"]

_SIGNED: Final = b"hubbub/1 bundle\n"


@dataclass(frozen=True, slots=True)
class Bundle:
    """What an app knows: metrics, keys to come, the shuffler's address.

    roots: PEM of the certificates that the shuffler's TLS must chain to; None for the system's.
    budget: what may be spent on releases, if any metric has them.
    history: per metric name ever used, the digest of its definition.
    streams: every metric, and every tier of one, by the stream's name.
    operator: the Ed25519 public key (32 bytes) that signed it.
    signed: the file's content that it was read from.
    """

    metrics: Mapping[str, Metric]
    keys: tuple[OpeningKeyPublic, ...]
    shuffler: str
    roots: str | None
    history: Mapping[str, str]
    operator: bytes = b""
    budget: Budget | None = None
    signed: bytes = field(default=b"", repr=False, compare=False)
    streams: Mapping[str, Metric] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        every = [
            stream
            for metric in self.metrics.values()
            for stream in (metric, *(metric.at(epsilon) for epsilon in metric.tiers))
        ]
        object.__setattr__(self, "streams", {stream.name: stream for stream in every})

    def metric(self, name: str) -> Metric:
        """The metric of this name, or a tier of one. Raises UnknownMetric."""
        if name not in self.streams:
            raise UnknownMetric(
                f'metric "{name}" is not in the bundle; it has {_list(self.metrics)}'
            )
        return self.streams[name]


def sign_bundle(bundle: Bundle, operator: Ed25519PrivateKey) -> bytes:
    """The bundle as a file's content."""
    body = json.dumps(
        {
            "version": 1,
            "shuffler": bundle.shuffler,
            "roots": bundle.roots,
            "keys": [
                {"id": k.id, "start": k.start, "end": k.end, "public": to_text(k.public)}
                for k in bundle.keys
            ],
            "history": dict(bundle.history),
            "metrics": {name: _dump(metric) for name, metric in bundle.metrics.items()},
        }
        | ({"budget": asdict(bundle.budget)} if bundle.budget else {}),
        separators=(",", ":"),
    ).encode()
    head = {
        "hubbub bundle": 1,
        "operator": to_text(operator.public_key().public_bytes_raw()),
        "signature": to_text(operator.sign(_SIGNED + body)),
    }
    return json.dumps(head, separators=(",", ":")).encode() + b"\n" + body + b"\n"


def read_bundle(path: Path, *, operator: bytes | None = None) -> Bundle:
    """The bundle in a file, its signature checked; `operator` is the key that the app pins.

    Raises:
        BundleRefused: unreadable, malformed, altered, or signed by another than `operator`.
    """
    try:
        signed = path.read_bytes()
    except OSError as error:
        raise BundleRefused(f"{path}: cannot be read: {error.strerror}") from error
    return open_bundle(signed, str(path), operator=operator)


def open_bundle(signed: bytes, path: str, *, operator: bytes | None = None) -> Bundle:
    """As `read_bundle`, of a file's content; errors call it `path`."""
    try:
        head, body = signed.rstrip(b"\n").split(b"\n")
    except ValueError as error:
        raise BundleRefused(f"{path}: not a bundle; make one: hubbub catalog build") from error
    try:
        seal = json.loads(head)
        signer, signature = from_text(seal["operator"]), from_text(seal["signature"])
        Ed25519PublicKey.from_public_bytes(signer).verify(signature, _SIGNED + body)
    except MALFORMED as error:
        raise BundleRefused(f"{path}: not a bundle; make one: hubbub catalog build") from error
    except InvalidSignature as error:
        raise BundleRefused(
            f"{path}: the signature does not fit: altered after signing; ship it as it was built"
        ) from error
    if operator is not None and signer != operator:
        raise BundleRefused(
            f"{path}: signed by {to_text(signer)}, not by the pinned operator {to_text(operator)}; "
            "have it built with that operator's key"
        )
    try:
        return replace(_load(json.loads(body), signer), signed=signed)
    except (*MALFORMED, HubbubError) as error:
        raise BundleRefused(
            f"{path}: signed, but not readable by this version: {error}; upgrade hubbub"
        ) from error


def refuse_changes(metrics: Mapping[str, Metric], previous: Bundle) -> dict[str, str]:
    """The history to carry on: every name ever used with its definition's digest.

    Raises:
        BundleRefused: a metric changed under an old name.
    """
    history = dict(previous.history)
    problems = []
    for name, metric in metrics.items():
        if history.setdefault(name, metric.digest()) == metric.digest():
            continue
        if name in previous.metrics:
            old, new = previous.metrics[name].definition(), metric.definition()
            changed = ", ".join(field for field in new if new[field] != old[field])
        else:
            changed = "the definition of this retired name"
        problems.append(
            f'metric "{name}": {changed} changed under an old name; their totals do not add: '
            f'give the new definition a new name, such as "{name}_2"'
        )
    if problems:
        raise BundleRefused("\n".join(problems))
    return history


def stream_table(bundle: Bundle) -> str:
    """What the shuffler must know, as JSON: lengths, minimum batches and times. No mechanism."""
    streams = {
        metric.name: {
            "sealed_bytes": metric.randomizer.layout.payload_bytes + SEAL_BYTES,
            "min_batch": metric.min_batch,
            "epoch_seconds": EPOCH_SECONDS[metric.epoch],
            "grace_seconds": grace_seconds(metric.epoch),
        }
        for metric in bundle.streams.values()
    }
    keys = [{"id": key.id, "start": key.start, "end": key.end} for key in bundle.keys]
    return json.dumps({"version": 1, "streams": streams, "keys": keys}, indent=1) + "\n"


def _dump(metric: Metric) -> dict[str, Any]:
    return (
        metric.definition()
        | {
            "description": metric.description,
            "owner": metric.owner,
            "expires": metric.expires.isoformat(),
            "min_batch": metric.min_batch,
            "reports_per_epoch": metric.limits.reports_per_epoch,
            "lifetime_epsilon": metric.limits.lifetime_epsilon,
        }
        | ({"choice": asdict(metric.choice)} if metric.choice else {})
        | ({"tiers": list(metric.tiers)} if metric.tiers else {})
        | ({"sampling": metric.sampling} if metric.sampling < 1 else {})
        | ({"release": asdict(metric.release)} if metric.release else {})
    )


def _load(body: dict[str, Any], signer: bytes) -> Bundle:
    if body["version"] != 1:
        raise ValueError(f"version {body['version']}")
    metrics = {}
    for name, entry in body["metrics"].items():
        metric = Metric(
            name=name,
            description=entry["description"],
            owner=entry["owner"],
            expires=date.fromisoformat(entry["expires"]),
            epoch=entry["epoch"],
            mechanism=entry["mechanism"],
            epsilon=entry["epsilon"],
            min_batch=entry["min_batch"],
            limits=Limits(entry["reports_per_epoch"], entry["lifetime_epsilon"]),
            values=None if entry["values"] is None else tuple(entry["values"]),
            parameters=entry["parameters"],
            choice=load_choice(entry["choice"]) if "choice" in entry else None,
            tiers=tuple(entry.get("tiers", ())),
            sampling=entry.get("sampling", 1.0),
            release=Release(**entry["release"]) if "release" in entry else None,
        )
        if entry["version"] != metric.randomizer.VERSION:
            raise ValueError(
                f'metric "{name}" needs version {entry["version"]} of {metric.mechanism}'
            )
        metrics[name] = metric
    keys = tuple(
        OpeningKeyPublic(k["id"], k["start"], k["end"], from_text(k["public"]))
        for k in body["keys"]
    )
    budget = Budget(**body["budget"]) if "budget" in body else None
    return Bundle(metrics, keys, body["shuffler"], body["roots"], body["history"], signer, budget)


def _list(names: Mapping[str, object]) -> str:
    return ", ".join(sorted(names)) or "none"
