"""Reads signed bundles, the one file that an app ships, and checks their signature.

It is two signed lines of JSON. In bundles with a transparency log, a third line proves that the log
contains the first two.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from hubbub.bundles.bundle import Bundle
from hubbub.bundles.encoding import MALFORMED, from_text, read_json, to_text
from hubbub.bundles.key_handover import Handover
from hubbub.bundles.metric_promise import Promise
from hubbub.bundles.opening_keys import OpeningKeyPublic
from hubbub.bundles.signatures import KEY_BYTES, SignatureMismatch, check_lines
from hubbub.catalog.limits_and_budgets import Budget, Caps
from hubbub.catalog.metric import Metric
from hubbub.errors import BadParameter, BundleRefused, HubbubError
from hubbub.errors.message_words import visible
from hubbub.fields.field import loaded, table_of
from hubbub.fields.rules import as_table, as_tuple, int_if_whole

# Versions for content that older SDKs would misread: grown lists of values, and tokens.
VERSION_OF_GROWN: Final = 2
VERSION_OF_TOKENS: Final = 3
_MAX_BYTES: Final = 64 << 20
_NO_BUNDLE: Final = "not a bundle; make one: hubbub catalog build"
_REASON: Final = 300


def read_bundle(path: Path, *, operator: bytes | None = None) -> Bundle:
    """The bundle in a file, after checking its signature. Raises BundleRefused.

    `operator` is the key that the app pins; it signed the bundle, or handed over to its signer.
    Raises BadParameter if it is not a key.
    """
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            signed = file.read(_MAX_BYTES + 1)
    except OSError as error:
        path_start = str(path)[:_REASON]  # an app may give a bundle's whole text in place of a path
        raise BundleRefused(
            f"{path_start}: cannot be read: {error.strerror}; give the bundle of hubbub catalog "
            "build, or of hubbub up (.hubbub/app.hubbub)"
        ) from error
    except ValueError as error:
        raise BundleRefused(f"{path!r}: is not a path: {error}") from error
    return open_bundle(signed, str(path), operator=operator)


def _open_at_once(path: str, flags: int) -> int:
    """Opens a file; to open a named pipe would otherwise wait for a writer."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def open_bundle(signed: bytes, path: str, *, operator: bytes | None = None) -> Bundle:
    """Like `read_bundle`, from a file's content; errors call it `path`."""
    if operator is not None and not (isinstance(operator, bytes) and len(operator) == KEY_BYTES):
        needed = f"a public key of {KEY_BYTES} bytes; give base64.b64decode(KEY)"
        raise BadParameter(f"operator is not {needed}")
    if len(signed) > _MAX_BYTES:
        raise BundleRefused(f"{path}: larger than {_MAX_BYTES >> 20} MiB: {_NO_BUNDLE}")
    try:
        head, body, *proofs = signed.rstrip(b"\n").split(b"\n")
        if len(proofs) > 1:
            raise ValueError("more than three lines")
        _, signer = check_lines("bundle", head, body)
    except (*MALFORMED, BadParameter) as error:
        raise BundleRefused(f"{path}: {_NO_BUNDLE}") from error
    except SignatureMismatch as error:
        raise BundleRefused(
            f"{path}: the signature does not match: altered after signing; ship it as it was built"
        ) from error
    try:
        bundle = replace(_load(read_json(body), signer), signed=signed)
    except (*MALFORMED, HubbubError) as error:
        reason = visible(f"no {error}" if isinstance(error, KeyError) else str(error))[:_REASON]
        raise BundleRefused(
            f"{path}: signed, but not readable by this version: {reason}; upgrade hubbub"
        ) from error
    if operator is not None and operator not in bundle.line:
        raise BundleRefused(
            f"{path}: signed by {to_text(signer)}, not by the pinned operator {to_text(operator)}; "
            "have it built with that operator's key"
        )
    return _with_proof(bundle, proofs[0], head + b"\n" + body + b"\n", path) if proofs else bundle


def _with_proof(bundle: Bundle, line: bytes, content: bytes, path: str) -> Bundle:
    """The bundle with its proof, after checking it. Raises BundleRefused."""
    if bundle.log is None:
        raise BundleRefused(
            f"{path}: it has a proof of a log but does not name the log; {_NO_BUNDLE}"
        )
    from hubbub.bundles.transparency_log import open_proof  # noqa: PLC0415 of bundles in a log

    try:
        return replace(bundle, proof=open_proof(line, content, bundle.log))
    except BundleRefused as error:
        raise BundleRefused(f"{path}: {error}") from error


def _load(body: Any, signer: bytes) -> Bundle:
    if not (
        type(body["version"]) in (int, float)
        and body["version"] in (1, VERSION_OF_GROWN, VERSION_OF_TOKENS)
    ):
        raise ValueError(f"version {body['version']}")
    flags = {name: body.get(name, False) for name in ("development", "cover")}
    if not all(isinstance(flag, bool) for flag in flags.values()):
        raise TypeError("development or cover must be true or false")
    caps: Caps = table_of(Caps).load(body.get("caps", {}))
    return Bundle(
        metrics={name: _load_metric(name, entry, caps) for name, entry in body["metrics"].items()},
        keys=tuple(map(OpeningKeyPublic.load, as_tuple(body["keys"]))),
        shuffler=body["shuffler"],
        roots=body["roots"],
        history=as_table(body["history"]),
        operator=signer,
        budget=table_of(Budget).load(body["budget"]) if "budget" in body else None,
        caps=caps,
        serial=int_if_whole(body.get("serial", 0)),
        development=flags["development"],
        gateway=from_text(body.get("gateway", "")),
        cover=flags["cover"],
        handovers=tuple(map(Handover.load, as_tuple(body.get("handovers", [])))),
        promised={n: Promise.load(p) for n, p in as_table(body.get("promised", {})).items()},
        **_rare_parts(body),
    )


def _load_metric(name: str, entry: Mapping[str, Any], caps: Caps) -> Metric:
    try:
        metric = Metric(name=name, caps=caps, **loaded(Metric, entry))
    except BadParameter as error:
        raise BadParameter(f'metric "{name}": {error}') from error
    if isinstance(entry["version"], bool) or entry["version"] != metric.randomizer.VERSION:
        raise ValueError(f'metric "{name}" needs version {entry["version"]} of {metric.mechanism}')
    return metric


def _rare_parts(body: Mapping[str, Any]) -> dict[str, Any]:
    """What few bundles have, imported where one has it: an app's start does not wait for it."""
    parts: dict[str, Any] = {}
    if "log" in body:
        from hubbub.bundles.transparency_log import NoteKey  # noqa: PLC0415 as above

        parts["log"] = NoteKey(body["log"]["name"], from_text(body["log"]["key"]))
    if "runs" in body:
        from hubbub.bundles.bundle import Runs  # noqa: PLC0415 as above

        parts["runs"] = table_of(Runs).load(body["runs"])
    if "tokens" in body:
        from hubbub.bundles.tokens import TokenIssuer  # noqa: PLC0415 as above

        parts["tokens"] = TokenIssuer.load(body["tokens"])
    return parts
