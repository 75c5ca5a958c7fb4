"""`hubbub doctor`: what is reachable, trusted, waiting, refused and about to end, on one screen."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Final

from cryptography import x509

from hubbub.cli.terminal.query_options import ServiceOptions
from hubbub.client.doctor import Finding, Verdict, device_checks, examine, show
from hubbub.errors import ServiceUnavailable
from hubbub.errors.message_words import several
from hubbub.installation.running_endpoints import HOME
from hubbub.programs.command_line import command
from hubbub.programs.option_parsing import argument, option

_SOON: Final = timedelta(days=30)


@command(
    "doctor",
    description=(
        "Examines this machine as a device and, with --home or --url, the services. It shows no "
        "value, and exits with 1 if a fault stops reports or answers. On a device with "
        "hubbub-client only: python -m hubbub.client.doctor"
    ),
)
def _doctor(
    *,
    bundle: Path | None = argument(
        "the app's bundle (app.hubbub of --home, if it exists; else HUBBUB_BUNDLE, or app.hubbub "
        "of this folder)"
    ),
    state_dir: Path | None = option("the app's state folder (all of this user's)"),
    app: str | None = option("name of the app whose trust is examined (all)"),
    tls: Path | None = option("folder of certificates (tls in --home)"),
    json: bool = option("print the findings as JSON"),
    service: ServiceOptions,
) -> int:
    home = service.home
    if bundle is None and (home / "app.hubbub").exists():
        bundle = home / "app.hubbub"
    checks = device_checks(bundle=bundle, state_dir=state_dir, app=app)
    checks.append(("certificates", lambda: _certificates(tls or home / "tls")))
    for name, folder in (("--home", home), ("--tls", tls)):
        if folder and folder != HOME and not folder.is_dir():
            text = f"{folder}: is not a folder; name one of hubbub up or init"
            checks.append((name, partial(iter, [Finding(name, "fault", text)])))
    if service.url or home.exists():
        checks.append(("aggregator", lambda: _aggregator(service)))
        checks.append(("queues", lambda: _queues(service)))
    return show(examine(checks), as_json=json)


def _certificates(folder: Path) -> Iterator[Finding]:
    """Yields each file that expires soon; if none does, the first that expires."""
    by_end = sorted((first_end(path), path) for path in folder.glob("*.pem"))
    for end, path in by_end:
        left = end - datetime.now(UTC)
        text = f"{path}: until {end:%Y-%m-%d}"
        if left > _SOON:
            yield Finding("certificates", "ok", f"{text}, the first of {len(by_end)} to end")
            return
        verdict: Verdict = "note" if left > timedelta() else "fault"
        yield Finding(
            "certificates", verdict, f"{text}; make new ones: hubbub keys tls {folder} --renew"
        )


def first_end(path: Path) -> datetime:
    """When the first certificate in a file expires."""
    certificates = x509.load_pem_x509_certificates(path.read_bytes())
    return min(certificate.not_valid_after_utc for certificate in certificates)


def _aggregator(service: ServiceOptions) -> Iterator[Finding]:
    with service.connection() as connection:
        url, its = connection.service.url, connection.service.ask("/health")["version"]
        own_version = version("hubbub")
        same = "the same as here" if its == own_version else f"and {own_version} here"
        verdict: Verdict = "ok" if its == own_version else "note"
        yield Finding("aggregator", verdict, f"{url} answers: version {its}, {same}")
        connection.service.ask("/ready")
        yield Finding("redis", "ok", "the aggregator's Redis answers")


def _queues(service: ServiceOptions) -> Iterator[Finding]:
    """Yields what waits and what was refused, by the conservation law."""
    with service.connection() as connection:
        law = connection.status().document
    if not law["complete"]:
        raise ServiceUnavailable(
            "the shuffler or its Redis does not return the number of waiting reports: see "
            "both logs, and start the aggregator with --shuffler-status"
        )
    total = law["total"]
    waiting = total["in_flight"] + (total["pooled"] or 0)
    place = "between devices and totals" if total["pooled"] is not None else "in flight"
    text = f"{several(waiting, 'report')} {place}, {total['counted']:,} counted"
    yield Finding("queues", "ok", text)
    if total["rejected"]:
        text = f"{several(total['rejected'], 'report')} refused by the aggregator: hubbub status"
        yield Finding("refused", "note", text)
    if not law["balanced"]:
        yield Finding("law", "fault", "reports are lost or counted twice: hubbub status --all")
