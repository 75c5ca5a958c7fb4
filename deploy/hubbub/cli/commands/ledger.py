"""`hubbub ledger`: what left this device, in plain words, for the person whose device it is."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal

from hubbub.catalog import X_WING
from hubbub.catalog.encoding import to_text
from hubbub.cli.terminal.candidate_file import read_candidates
from hubbub.cli.terminal.output import say, table
from hubbub.cli.terminal.payloads import likeliest, sent
from hubbub.client.inspection import peek
from hubbub.client.ledger_view import LedgerView, MetricView, PayloadView
from hubbub.client.settings import Settings
from hubbub.client.startup import state_home
from hubbub.client.state.database import FILE_NAME
from hubbub.client.trust.bundles import Trust
from hubbub.client.trust.store import beside, look
from hubbub.errors import StateUnusable
from hubbub.errors.printable import visible
from hubbub.fields.command_line import Command
from hubbub.fields.options import option, options

# More rows than this are for a file, not for eyes; the rest is in json.
_ROWS: Final = 50
_ON: Final = "This device reports what the table below says, and nothing else, through hubbub."
_OFF: Final = "Reporting is switched off: nothing leaves this device through hubbub."


@options
class LedgerOptions:
    """Options of `hubbub ledger`."""

    state_dir: Path | None = option(
        "an app's state folder (that of HUBBUB_STATE_DIR, or all of this user's)", default=None
    )
    candidates: Path | None = option(
        "strings to weigh where an answer is a string, one a line", default=None
    )
    format: Literal["table", "json"] = option("of the output (%(default)s)", default="table")


def _ledger(options: LedgerOptions) -> int:
    candidates = read_candidates(options.candidates) if options.candidates else []
    given = Settings.read(state_dir=options.state_dir).state_dir
    folders = [options.state_dir or given] if given else _own_folders()
    views = {str(folder): peek(folder) for folder in folders}
    if options.format == "json":
        documents = {folder: _json(shown, candidates) for folder, shown in views.items()}
        say(json.dumps(documents, indent=1, ensure_ascii=False))
        return 0
    trust = look(beside(state_home(), given))
    for folder, shown in views.items():
        _show(folder, shown, candidates)
        for line in _trusted(trust, Path(folder).name if given is None else ""):
            say(line)
    return 0


def _trusted(trust: Trust, folder: str) -> Iterator[str]:
    """Whose bundles are taken here, and how that came."""
    for app, pin in trust.pins.items():
        if folder in {"", pin.folder}:
            who = f'the app "{app}"' if app else "this folder"
            over = f"; handed over so often: {len(pin.before)}" if pin.before else ""
            yield f"{who} trusts the operator {to_text(pin.operator)}{over}"


def _own_folders() -> list[Path]:
    home = state_home()
    folders = sorted(path.parent for path in home.glob(f"*/{FILE_NAME}"))
    if not folders:
        raise StateUnusable(f"{home}: no app has reported for this user; give --state-dir")
    return folders


def _show(folder: str, shown: LedgerView, candidates: Sequence[str]) -> None:
    say(f"{folder}\n{_ON if shown.on else _OFF}\n")
    table(
        "What may be asked, and what has been spent of each budget (in nats)",
        ("metric", "question", "a report", "this epoch", "spent now", "in all", "for life", "left"),
        [
            (
                metric.name,
                metric.description,
                f"{metric.epsilon:.3f}" if metric.epsilon else "declined",
                f"{metric.reports} of {metric.reports_per_epoch}",
                f"{metric.spent_in_epoch:.3f}",
                f"{metric.spent:.3f}",
                f"{metric.lifetime_epsilon:g}",
                f"{max(0.0, metric.lifetime_epsilon - metric.spent):.3f}",
            )
            for metric in shown.metrics
        ],
        text_columns=2,
    )
    crowds = [metric for metric in shown.metrics if metric.central_epsilon is not None]
    if crowds:
        _show_crowds(crowds)
    if shown.crowds_cap is not None:
        say(
            f"All crowds of a year together can say {shown.crowds_in_year:.3f} of "
            f"{shown.crowds_cap:g} nats about you to who sees whole epochs; then this device stops."
        )
    _say_seals(shown.metrics)
    for line in _run_by(shown):
        say(line)
    for line in _lowered(shown):
        say(line)
    say(f"{_odds(shown.metrics)}\n")
    table(
        f"What was made of your answers ({len(shown.payloads):,} remembered; times are UTC)",
        ("when", "metric", "sent, in hex", "what became of it", "what it could have meant"),
        [_row(payload, candidates) for payload in shown.payloads[-_ROWS:]],
        text_columns=5,
    )
    if len(shown.payloads) > _ROWS:
        say(f"... and {len(shown.payloads) - _ROWS:,} before: --format json shows them all")
    for reason, number in sorted(shown.counts.items()):
        if number:
            say(f"{number:,} {reason.replace('_', ' ')}")


def _run_by(shown: LedgerView) -> Iterator[str]:
    """Who runs what, and what those could do together."""
    if shown.tokens:
        yield (
            f"Reports go with tokens of an account at {visible(shown.tokens)}, which knows that "
            "the account asked for them, and cannot tell which reports they went with."
        )
    runs = shown.runs
    if runs is None:
        return
    yield (
        f"As the operator signed: {visible(runs.shuffler)} runs the shuffler, which sees addresses "
        f"and no answer; {visible(runs.aggregator)} runs the aggregator, which sees randomized "
        "answers and no address."
    )
    if runs.apart:
        yield "Only both together could tell whose a randomized answer is."
    else:
        yield "Both are run by one: take what a report says as said to somebody who knows you."


def _lowered(shown: LedgerView) -> Iterator[str]:
    """What the operator asks less for a while, of all devices alike."""
    until = None if shown.notice_until is None else _when(shown.notice_until)
    for metric in shown.metrics:
        if metric.lowered:
            part = f"{metric.sampling:.4g} of all devices" if metric.sampling else "no device"
            yield (
                f"{metric.name}: the operator asks {part} until "
                f"{until:%Y-%m-%d} (notice {shown.notice}, the same for everybody)"
                if until
                else f"{metric.name}: the operator asks {part} (notice {shown.notice})"
            )


def _show_crowds(metrics: Sequence[MetricView]) -> None:
    """The other promise of metrics that are asked in a crowd, and on whom each rests."""
    table(
        "What is asked in a crowd says less to who sees whole epochs (in nats)",
        ("metric", "a report", "in a crowd", "of any", "delta", "spent in all", "for life"),
        [
            (
                metric.name,
                f"{metric.epsilon:.3f}" if metric.epsilon else "declined",
                f"{metric.central_epsilon:.3f}",
                metric.central_period or "epoch",
                f"{metric.delta:g}",
                f"{metric.central:.3f}",
                "" if (most := metric.lifetime_central_epsilon) is None else f"{most:g}",
            )
            for metric in metrics
        ],
    )
    say(
        "The first promise rests on this device alone: if the shuffler and the aggregator work "
        "together against you, a report says that. The second rests on the shuffler, which lets "
        "reports leave together and tells nobody who sent what; it adds up, as its delta does.\n"
    )


def _say_seals(metrics: Sequence[MetricView]) -> None:
    """What is sealed so that a quantum computer opens it one day, and what is not."""
    hybrid = [metric.name for metric in metrics if metric.kem == X_WING]
    if hybrid:
        say(
            f"Sealed so that a recording of today stays shut for quantum computers too (X-Wing): "
            f"{', '.join(hybrid)}. What is in a seal is randomized all the same."
        )


def _odds(metrics: Sequence[MetricView]) -> str:
    most = max((metric.epsilon for metric in metrics), default=0.0)
    return (
        f"No single report changes the odds between two answers by more than {math.exp(most):.2f} "
        "to 1; the percentages say what one report alone tells who knew nothing before."
    )


def _row(payload: PayloadView, candidates: Sequence[str]) -> tuple[str, ...]:
    made, public = _when(payload.made), ", ".join(payload.public.values())
    return (
        made.strftime("%Y-%m-%d %H:%M") if made else "",
        f"{payload.metric} ({public})" if public else payload.metric,
        sent(payload.payload.hex()),
        payload.fate.replace("_", " "),
        _meant(payload, candidates),
    )


def _when(seconds: float) -> datetime | None:
    """The time, if calendars have it: a clock may have been anywhere."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError, TypeError):
        return None


def _meant(payload: PayloadView, candidates: Sequence[str]) -> str:
    meanings = payload.meanings(candidates)
    if not meanings:
        if payload.is_filler:
            return "nothing: a filler, or a dummy"
        return "any string" if payload.stream else "no longer asked"
    return likeliest(meanings)


def _json(shown: LedgerView, candidates: Sequence[str]) -> dict[str, Any]:
    return {
        "on": shown.on,
        "metrics": [asdict(metric) for metric in shown.metrics],
        "payloads": [
            {
                "metric": one.metric,
                "epoch": one.epoch,
                "made": made.isoformat(timespec="seconds") if (made := _when(one.made)) else None,
                "payload": one.payload.hex(),
                "fate": one.fate,
                "meanings": dict(one.meanings(candidates)),
            }
            for one in shown.payloads
        ],
        "counts": dict(shown.counts),
        "crowds_in_year": shown.crowds_in_year,
        "crowds_cap": shown.crowds_cap,
        "notice": shown.notice,
        "notice_until": shown.notice_until,
        "runs": asdict(shown.runs) if shown.runs else None,
        "tokens": shown.tokens or None,
    }


COMMANDS: Final = (Command(name="ledger", run=_ledger),)
