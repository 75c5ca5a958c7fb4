"""`hubbub ledger`: what left this device, in plain words, for the person whose device it is."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal

from hubbub.bundles.encoding import to_text
from hubbub.cli.terminal.output import likeliest, listing, say, short_payload, table
from hubbub.cli.terminal.percentile_and_candidate_options import read_candidates
from hubbub.client.ledger_view import LedgerView, MetricView, PayloadView
from hubbub.client.settings import Settings
from hubbub.client.startup import state_home
from hubbub.client.state_inspection import peek, state_folders
from hubbub.client.trust import possible_paths, read_places
from hubbub.errors import StateUnusable
from hubbub.errors.message_words import at_least, at_most, nats, visible
from hubbub.programs.command_line import command
from hubbub.programs.option_parsing import option, options
from hubbub.sealing.hpke import X_WING

# Larger tables belong in a file; json has all rows.
_ROWS: Final = 50
_ON: Final = "Through hubbub this device reports only what the table below lists."
_OFF: Final = "Reporting is switched off: nothing leaves this device through hubbub."


@options
class LedgerOptions:
    state_dir: Path | None = option(
        "an app's state folder (that of HUBBUB_STATE_DIR, or all of this user's)"
    )
    candidates: Path | None = option(
        "file of candidate strings, one per line, for metrics over strings"
    )
    format: Literal["table", "json"] = option("format of the output (%(default)s)", default="table")


@command("ledger")
def _ledger(options: LedgerOptions) -> None:
    candidates = read_candidates(options.candidates) if options.candidates else []
    state_dir = Settings.read(state_dir=options.state_dir).state_dir
    home = state_home()
    folders = [options.state_dir or state_dir] if state_dir else state_folders(home)
    if not folders:
        raise StateUnusable(f"{home}: no app has reported for this user; give --state-dir")
    views = {str(folder): peek(folder) for folder in folders}
    if options.format == "json":
        documents = {folder: _json(view, candidates) for folder, view in views.items()}
        say(json.dumps(documents, indent=1, ensure_ascii=False))
        return
    pins = read_places(possible_paths(home, state_dir)).pins
    for folder, view in views.items():
        _show(folder, view, candidates)
        for app, pin in pins.items():
            if state_dir or pin.folder == Path(folder).name:
                owner = f'the app "{app}"' if app else "this folder"
                handovers = f"; key handovers: {len(pin.before)}" if pin.before else ""
                say(f"{owner} trusts the operator {to_text(pin.operator)}{handovers}")


def _show(folder: str, view: LedgerView, candidates: Sequence[str]) -> None:
    say(f"{folder}\n{_ON if view.on else _OFF}\n")
    listing(
        "The questions, and what has been spent of each budget (in nats)",
        view.metrics,
        {
            "metric": "{name}",
            "question": "{description}",
            "a report": _report_loss,
            "this epoch": "{reports} of {reports_per_epoch}",
            "spent now": lambda metric: at_most(metric.spent_in_epoch, ".3f"),
            "in all": lambda metric: at_most(metric.spent, ".3f"),
            "for life": "{lifetime_epsilon:g}",
            "left": lambda metric: at_least(
                max(0.0, metric.lifetime_epsilon - metric.spent), ".3f"
            ),
        },
        text_columns=2,
    )
    if crowds := [metric for metric in view.metrics if metric.central_epsilon is not None]:
        _show_crowds(crowds)
    for line in (*_protections(view), *_lowered_metric_lines(view)):
        say(line)
    odds = at_most(math.exp(max((metric.epsilon for metric in view.metrics), default=0.0)), ".2f")
    say(
        f"No single report changes the odds between two answers by more than {odds} to 1; the "
        "percentages are probabilities after one report, for an observer who knew nothing before.\n"
    )
    listing(
        f"Your answers as they were sent ({len(view.payloads):,} remembered; times are UTC)",
        view.payloads[-_ROWS:],
        {
            "when": _minute,
            "metric": _metric_and_public,
            "sent, in hex": lambda payload: short_payload(payload.payload.hex()),
            "what became of it": lambda payload: payload.fate.replace("_", " "),
            "what it could have meant": lambda payload: _likeliest_text(payload, candidates),
        },
        text_columns=5,
    )
    if len(view.payloads) > _ROWS:
        say(f"... and {len(view.payloads) - _ROWS:,} before: --format json shows them all")
    for title, counts in (
        ("Values counted here for you only, in local mode: nothing was sent", view.own_counts),
        ("Counted here until the one report of an epoch; opting out deletes it", view.events),
    ):
        rows = [
            (metric, value, f"{number:,}")
            for metric, numbers in counts.items()
            for value, number in sorted(numbers.items(), key=lambda pair: -pair[1])
        ]
        if rows:
            table(title, ("metric", "value", "times"), rows, text_columns=2)
    for reason, number in sorted(view.counts.items()):
        if number:
            say(f"{number:,} {reason.replace('_', ' ')}")


def _report_loss(metric: MetricView) -> str:
    return at_most(metric.epsilon, ".3f") if metric.epsilon else "declined"


def _protections(view: LedgerView) -> Iterator[str]:
    """Yields what all crowds reveal, whom reports are charged to, and who can read them."""
    if view.crowds_in_year is not None and view.crowds_cap is not None:
        yield (
            f"All crowds of a year together can reveal {at_most(view.crowds_in_year, '.3f')} of "
            f"{nats(view.crowds_cap, 6)} about you to an observer of whole epochs; then this "
            "device stops."
        )
    charged = {metric.name: metric.spent for metric in view.metrics}
    if any(not own.is_filler and charged.get(own.metric) == 0 for own in view.payloads):
        yield (
            "Reports that a server makes for persons are charged to each person, not to the table "
            "above: client.person(NAME).ledger() in the app shows a person's budgets."
        )
    if hybrid := [metric.name for metric in view.metrics if metric.kem == X_WING]:
        yield (
            f"Encrypted also against a future quantum computer (X-Wing): {', '.join(hybrid)}. The "
            "content is randomized as well."
        )
    if view.tokens:
        yield (
            f"Reports go with tokens of an account at {visible(view.tokens)}, which knows that "
            "the account requested them, and cannot see which reports they were used for."
        )
    runs = view.runs
    if runs is None:
        return
    yield (
        f"As the operator signed: {visible(runs.shuffler)} runs the shuffler, which sees addresses "
        f"and no answer; {visible(runs.aggregator)} runs the aggregator, which sees randomized "
        "answers and no address."
    )
    if runs.apart:
        yield "Only both together could find out who sent a randomized answer."
    else:
        yield "One party runs both: it could find out who sent a report."


def _lowered_metric_lines(view: LedgerView) -> Iterator[str]:
    """Yields what the operator asks of fewer devices for a while."""
    until = None if view.notice_until is None else _date_of(view.notice_until)
    for metric in view.metrics:
        if metric.lowered:
            part = f"{metric.sampling:.4g} of all devices" if metric.sampling else "no device"
            yield (
                f"{metric.name}: the operator asks {part} until "
                f"{until:%Y-%m-%d} (notice {view.notice}, the same for everybody)"
                if until
                else f"{metric.name}: the operator asks {part} (notice {view.notice})"
            )


def _show_crowds(metrics: Sequence[MetricView]) -> None:
    """Shows the central promises of metrics with a crowd, and whom each depends on."""
    listing(
        "Questions in a crowd reveal less to an observer of whole epochs (in nats)",
        metrics,
        {
            "metric": "{name}",
            "a report": _report_loss,
            "in a crowd": lambda metric: at_most(metric.central_epsilon, ".3f"),
            "of any": lambda metric: metric.central_period or "epoch",
            "delta": "{delta:g}",
            "spent in all": lambda metric: at_most(metric.central, ".3f"),
            "for life": lambda metric: (
                "" if (most := metric.lifetime_central_epsilon) is None else f"{most:g}"
            ),
        },
    )
    say(
        "The first promise depends only on this device, even if the shuffler and the aggregator "
        "work together against you. The second depends on the shuffler, which releases reports "
        "together and hides who sent which; it adds up, and so does its delta.\n"
    )


def _minute(payload: PayloadView) -> str:
    created_at = _date_of(payload.made)
    return created_at.strftime("%Y-%m-%d %H:%M") if created_at else ""


def _metric_and_public(payload: PayloadView) -> str:
    public = ", ".join(payload.public.values())
    return f"{payload.metric} ({public})" if public else payload.metric


def _date_of(seconds: float) -> datetime | None:
    """The time as a date; None if no calendar has it, as after a clock error."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError, TypeError):
        return None


def _likeliest_text(payload: PayloadView, candidates: Sequence[str]) -> str:
    meanings = payload.meanings(candidates)
    if not meanings:
        if payload.is_filler:
            return "nothing: a filler, or a dummy"
        return "any string" if payload.stream else "no longer asked"
    return likeliest(meanings)


def _json(view: LedgerView, candidates: Sequence[str]) -> dict[str, Any]:
    return {
        "on": view.on,
        "metrics": [asdict(metric) for metric in view.metrics],
        "payloads": [
            {
                "metric": payload.metric,
                "epoch": payload.epoch,
                "made": created_at.isoformat(timespec="seconds")
                if (created_at := _date_of(payload.made))
                else None,
                "payload": payload.payload.hex(),
                "fate": payload.fate,
                "meanings": dict(payload.meanings(candidates)),
            }
            for payload in view.payloads
        ],
        "counts": dict(view.counts),
        "own_counts": view.own_counts,
        "events": view.events,
        "crowds_in_year": view.crowds_in_year,
        "crowds_cap": view.crowds_cap,
        "notice": view.notice,
        "notice_until": view.notice_until,
        "runs": asdict(view.runs) if view.runs else None,
        "tokens": view.tokens or None,
    }
