"""`hubbub audit`: the proofs on what is installed here, and a catalog under attack."""

import secrets
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Final, Literal

from hubbub.catalog.discovery import finder_of
from hubbub.cli.terminal.catalog_reading import LastBundle, chosen_metrics
from hubbub.cli.terminal.output import say_json
from hubbub.cli.terminal.progress import tracked
from hubbub.cli.terminal.rendered_document import Document, Table
from hubbub.client.state.secret import SECRET_BYTES, DeviceMemo
from hubbub.errors import BadParameter
from hubbub.fields.rules import Interval
from hubbub.mechanisms import SystemBits
from hubbub.privacy.proofs.audit import (
    ALARM,
    NOT_WALKED,
    Check,
    audit_coins,
    audit_metric,
    audit_proofs,
    steps_of,
)
from hubbub.privacy.proofs.enumeration import PROOFS, SMALL
from hubbub.programs.command_line import command
from hubbub.programs.installed_hashes import identity
from hubbub.programs.option_parsing import argument, option, options

_DEFAULT: Final = Path("metrics.toml")


@options
class AuditOptions:
    catalog: Path | None = argument("catalog to attack (metrics.toml, if it exists)")
    last: LastBundle
    metrics: tuple[str, ...] = option(
        "attack only this metric (repeatable)", name="--metric", metavar="METRIC"
    )
    samples: int = option(
        "number of people drawn for each of two values (%(default)s)",
        default=20_000,
        within=Interval(1000, 10**8),
    )
    no_proofs: bool = option("skip the proofs and only attack the catalog")
    format: Literal["table", "json", "html"] = option(
        "format of the output (%(default)s)", default="table"
    )


@command(
    "audit",
    description="Proves the coin source and every installed mechanism by exact enumeration, "
    "then attacks every metric of the catalog with real coins. The exit code is 1 "
    "if anything failed.",
)
def _audit(options: AuditOptions) -> int:
    path = options.catalog or (_DEFAULT if _DEFAULT.exists() else None)
    # Every tier is attacked as a metric of its own.
    if path is None:
        if options.metrics:
            raise BadParameter("--metric names a metric of a catalog: give the catalog")
        metrics = []
    else:
        chosen = chosen_metrics(options.last.read(path), path, options.metrics)
        versions = [
            version for m in chosen for version in (m, *(m.at_tier(tier) for tier in m.tiers))
        ]
        metrics = [*versions, *(finder_of(metric) for metric in chosen if metric.discover)]
    if options.no_proofs and not metrics:
        raise BadParameter("--no-proofs without a catalog leaves nothing to do; give a catalog")
    checks = []
    if not options.no_proofs:
        checks += _checks_with_progress([audit_coins(SystemBits())], 1, "coins")
        checks += _checks_with_progress(audit_proofs(SMALL), len(SMALL) * len(PROOFS), "proofs")
    for metric in metrics:
        checks += _checks_with_progress(
            audit_metric(
                metric,
                SystemBits(),
                lambda name: DeviceMemo(secrets.token_bytes(SECRET_BYTES), name),
                options.samples,
                ALARM / len(metrics),
            ),
            steps_of(metric, options.samples),
            metric.name,
        )
    if options.format == "json":
        data = {
            "installed": identity(),
            "passed": all(check.passed for check in checks),
            "alarm": ALARM,
            "samples": options.samples,
            "checks": [asdict(check) for check in checks],
        }
        say_json(data)
    else:
        _document(checks, options, path).write(options.format)
    return 0 if all(check.passed for check in checks) else 1


def _checks_with_progress(steps: Iterable[Check | None], count: int, name: str) -> list[Check]:
    return [step for step in tracked(steps, count, name) if step]


def _document(checks: list[Check], options: AuditOptions, path: Path | None) -> Document:
    failed = [check for check in checks if not check.passed]
    proofs = [check for check in checks if check.claim is None]
    attacks = [check for check in checks if check.claim is not None]
    tried = [check for check in proofs if check.kind != NOT_WALKED]
    skipped = len(proofs) - len(tried)
    verdict = "FAILED" if failed else "all checks passed"
    document = Document(f"hubbub audit: {verdict}" + (f", {skipped} not tried" * bool(skipped)))
    sound = sum(check.passed for check in tried)
    coins = "" if options.no_proofs else " The first proof tests the coin source."
    document.blocks.append(f"{sound} of {len(tried)} proofs passed, on {identity()}.{coins}")
    names = {check.what for check in attacks}
    checks_shown = [check for check in proofs if not check.passed or check.what in names]
    if checks_shown:
        title = "Proofs of the catalog's metrics, and failed proofs"
        document.blocks.append(_table(title, checks_shown))
    if attacks:
        document.blocks += [
            _table(f"Attacks on {path}, nats", attacks),
            (
                f"An attack shows a lower bound on epsilon; all bounds hold with a chance of 1 - "
                f"{ALARM:g}. It draws {options.samples:,} people for each of two values, with real "
                "coins; whole epochs are drawn as counts from the mechanism's exact law. A bound "
                "below the claim proves nothing; only the proofs prove the claim."
            ),
        ]
    return document


def _table(title: str, checks: list[Check]) -> Table:
    rows = [(check.what, check.kind, _verdict_text(check), check.detail) for check in checks]
    return Table(title, ("what", "checked", "", "found"), rows, text_columns=4)


def _verdict_text(check: Check) -> str:
    if check.kind == NOT_WALKED:
        return "not tried"
    return "passed" if check.passed else "FAILED"
