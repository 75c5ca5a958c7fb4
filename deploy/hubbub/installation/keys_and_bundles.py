"""Makes the keys of an installation, and signs with them: bundles, and the state of models."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from hubbub.authoring import Catalog
from hubbub.bundles import Bundle, read_bundle
from hubbub.bundles.encoding import to_text
from hubbub.bundles.key_handover import line_of
from hubbub.bundles.model_state import ModelState
from hubbub.bundles.opening_keys import DEVELOPMENT_IDS, OpeningKeyPublic, is_development
from hubbub.bundles.tokens import TokenIssuer
from hubbub.catalog import EPOCH_SECONDS, Metric, epoch_at, epoch_start
from hubbub.catalog.epochs_and_periods import days_at_most
from hubbub.errors import BadParameter, BundleRefused
from hubbub.keys.issuer_and_gateway_keys import read_gateway, read_token_public
from hubbub.keys.opening_key_files import read_public_keys, write_new_keys
from hubbub.keys.operator_key import read_handovers, read_operator_key
from hubbub.notebook.http_client import Service
from hubbub.programs.atomic_write import refuse_unwritable, replace_file
from hubbub.runtime.tls import authorities_of
from hubbub.signing.log.log_files import LOG, append_to_log, log_of
from hubbub.signing.metric_changes import continued_metrics, refuse_changes
from hubbub.signing.sign_bundle import sign_bundle, sign_models, stream_table

DEFAULT_DAYS: Final = 28
DEFAULT_PERIODS: Final = 13
"""Opening keys, and the days that each lasts, unless told otherwise."""

_DAY: Final = EPOCH_SECONDS["day"]
OPERATORS: Final = "operator.hubbub"
"""What the operator's bundle is called, beside the app's."""
DEMO_DEVICE: Final = "device"
"""The first device's state, in the demo's folder: what `hubbub ledger` shows."""
# When keys are first made, reports of recent epochs may still arrive.
_BACK_DAYS: Final = 14


def make_keys(
    folder: Path,
    days: int = DEFAULT_DAYS,
    periods: int = DEFAULT_PERIODS,
    *,
    development: bool = False,
) -> None:
    """Makes keys in a folder: `periods` opening keys for `days` days each, from two weeks ago on.

    The first key covers every epoch that runs now, whatever its length. With `development`, what is
    built with them is accepted by development installations only. Raises KeysUnusable if the folder
    holds keys already, or cannot be written.
    """
    now = int(time.time())
    start = (now // _DAY - _BACK_DAYS) * _DAY
    write_new_keys(
        folder,
        start=start,
        since=min(epoch_start(epoch_at(now, length), length) for length in EPOCH_SECONDS),
        period_seconds=days * _DAY,
        periods=periods,
        first_id=DEVELOPMENT_IDS if development else 1,
    )


def build_bundle(
    catalog: Catalog,
    keys: Path,
    *,
    out: Path,
    operators: Path | None = None,
    streams: Path,
    previous: Path | None = None,
    roots: str | None,
    log: Path | None = None,
    now: Callable[[], float] = time.time,
) -> Bundle:
    """Signs a catalog's bundle into `out`, and writes the stream table that goes with it.

    `operators` is the file of the same bundle for the aggregator, None for operator.hubbub beside
    `out`; `previous` the last bundle, which need not exist, None for `out`; `log` the log's folder,
    None for beside `out`. Of `roots`, authorities in PEM, the bundle gets the shuffler's.

    Raises:
        BundleRefused, CatalogInvalid: as `refuse_changes` does; or the last bundle is another
            operator's, or a file cannot be written.
        LogBroken, KeysUnusable: the log is not what it was, the keys cannot be read.
    """
    operator = read_operator_key(keys)
    signer, handovers = operator.public_key().public_bytes_raw(), read_handovers(keys)
    public = read_public_keys(keys)
    old = _previous_bundle(previous or out, line_of(handovers, signer), keys)
    metrics, history, serial = _continued_metrics(catalog.metrics, old, int(now()))
    try:
        _refuse_long_periods(catalog.metrics.values(), public, serial)
        bundle = Bundle(
            metrics=metrics,
            keys=public,
            shuffler=catalog.shuffler,
            roots=None if roots is None else _shuffler_authorities(roots),
            history=history,
            operator=signer,
            budget=catalog.budget,
            caps=catalog.caps,
            serial=serial,
            handovers=handovers,
            promised=old.retired_promises(metrics) if old else {},
            development=is_development(public),
            runs=catalog.runs,
            cover=catalog.cover,
            log=log_of(catalog, keys, old, previous or out),
            gateway=read_gateway(keys),
            tokens=TokenIssuer(catalog.tokens, read_token_public(keys)) if catalog.tokens else None,
        )
    except BadParameter as error:
        raise BundleRefused(f"{out}: cannot be built: {error}") from error
    signed = sign_bundle(bundle, operator)
    if bundle.log:
        signed = append_to_log(signed, bundle, log or out.with_name(LOG), keys, old)
    table, ours = stream_table(bundle).encode(), sign_bundle(bundle, operator, whole=True)
    contents = {out: signed, operators or out.with_name(OPERATORS): ours, streams: table}
    for path, content in contents.items():
        with refuse_unwritable(path, BundleRefused):
            replace_file(path, content)
    return bundle


def _continued_metrics(
    metrics: Mapping[str, Metric], old: Bundle | None, now: int
) -> tuple[Mapping[str, Metric], dict[str, str], int]:
    """The metrics as continued from the previous bundle, the history of names, and the serial."""
    if old is None:
        return metrics, {name: metric.digest() for name, metric in metrics.items()}, now
    after = continued_metrics(metrics, old)
    # Devices refuse a bundle older than their last one, so the serial must grow whatever the clock.
    return after, refuse_changes(after, old), max(now, old.serial + 1)


def _previous_bundle(previous: Path, line: Sequence[bytes], keys: Path) -> Bundle | None:
    """The previous bundle, if there is one, signed by a key that led to the last."""
    old = read_bundle(previous) if previous.exists() else None
    if old and old.operator not in line:
        raise BundleRefused(
            f"{previous}: signed by {to_text(old.operator)}, which never handed over to "
            f"{to_text(line[-1])} in {keys}; hand over there with: hubbub keys handover"
        )
    return old


def _shuffler_authorities(roots_pem: str) -> str:
    """Those authorities in PEM that devices must trust."""
    authorities = authorities_of("shuffler", roots_pem)
    if not authorities:
        raise BundleRefused(
            "the roots contain no authority of the shuffler; give the ca.pem of: hubbub keys tls"
        )
    return authorities


def publish_models(service: Service, keys: Path, out: Path) -> dict[str, int] | None:
    """Signs the state of every model into a file; returns each one's round, None if nothing is new.

    Raises:
        ServiceUnavailable: the aggregator does not answer.
        KeysUnusable, BadParameter: the keys cannot be read, the file cannot be written.
    """
    states = {
        model["model"]: ModelState(
            model["number"], *(tuple(model[part]) for part in ("centre", "weights", "edges"))
        )
        for model in service.ask("/v1/models")["models"]
        if model["number"] >= 0
    }
    if not states:
        return None
    signed = sign_models(states, read_operator_key(keys), read_handovers(keys))
    with refuse_unwritable(out, BadParameter):
        if out.exists() and out.read_bytes() == signed:  # Ed25519 signs the same bytes alike
            return None
        replace_file(out, signed)
    return {name: state.number for name, state in states.items()}


def _refuse_long_periods(
    metrics: Iterable[Metric], keys: Iterable[OpeningKeyPublic], now: float
) -> None:
    """Raises BadParameter if a period is longer than the opening keys last from now on."""
    days = max(0, int(max((key.end for key in keys), default=0) - now) // _DAY)
    for metric in metrics:
        if not metric.report_on:
            continue
        longest = days_at_most(metric.period)
        if longest > days:
            raise BadParameter(
                f'metric "{metric.name}": its period of {longest} days is longer than the '
                f"keys, which cover {days} days: devices could not report later; "
                "first make more keys with hubbub keys rotate, or write a shorter period"
            )
