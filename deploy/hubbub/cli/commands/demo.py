"""`hubbub demo`: real people's answers, from SDK to estimates, through every role."""

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hubbub.accounting import TERMS, balances, sum_terms
from hubbub.catalog import Metric
from hubbub.cli.commands.up import demo_catalog, until_interrupted
from hubbub.cli.local.census import Person, candidates, people, true_counts
from hubbub.cli.local.devices import Sent, send_everyone
from hubbub.cli.local.local_run import LocalRun, Ports
from hubbub.cli.terminal.output import progress, say, table
from hubbub.cli.terminal.service_client import ask, report_counts
from hubbub.errors import BadParameter, HubbubError, ServiceUnavailable
from hubbub.runtime import connect_redis
from hubbub.shuffler.pool import Pool
from hubbub.wire.v1.services_pb2 import Estimated, EstimateRequest

__all__ = ["add", "close_epochs"]

_PEOPLE: Final = 30_162
_MAX_PEOPLE: Final = 10_000_000
_DRAIN_SECONDS: Final = 600.0
_POLL_SECONDS: Final = 0.25
_ROWS: Final = 16


@dataclass(frozen=True, slots=True)
class _Metric:
    """One metric's answer beside the truth."""

    metric: Metric
    found: Estimated | None
    rows: list[dict[str, Any]]
    problem: str = ""

    @property
    def covered(self) -> int:
        """How many intervals hold the true count."""
        return sum(row["low"] <= row["true"] <= row["high"] for row in self.rows)


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `demo` to the command line."""
    demo = commands.add_parser("demo", help="30,162 real people's answers, from SDK to estimates")
    demo.add_argument("--people", type=int, default=_PEOPLE, help="how many devices (%(default)s)")
    demo.add_argument(
        "--keep",
        nargs="?",
        type=Path,
        const=Path(".hubbub-demo"),
        metavar="FOLDER",
        help="leave it and its page running until Ctrl-C; its state stays there (%(const)s)",
    )
    demo.add_argument("--json", type=Path, metavar="FILE", help="write all results there as well")
    demo.set_defaults(run=_demo)


def _demo(arguments: argparse.Namespace) -> int:
    if not 1 <= arguments.people <= _MAX_PEOPLE:
        raise BadParameter(f"--people {arguments.people} is outside [1, {_MAX_PEOPLE}]")
    if arguments.json and not arguments.json.absolute().parent.is_dir():
        raise BadParameter(f"--json {arguments.json}: there is no such folder; make it first")
    if arguments.keep:
        if arguments.keep.exists():
            raise BadParameter(
                f"--keep {arguments.keep} is there already: delete it, or go on with it by: "
                f"hubbub up --home {arguments.keep}"
            )
        return _run(arguments.keep.absolute(), arguments.people, arguments.json, keep=True)
    with tempfile.TemporaryDirectory(prefix="hubbub-demo-") as home:
        return _run(Path(home), arguments.people, arguments.json, keep=False)


def _run(home: Path, number: int, json_file: Path | None, *, keep: bool) -> int:
    seconds: dict[str, float] = {}
    started = time.monotonic()
    everyone = people(number)
    catalog = demo_catalog()
    say(f"{number:,} people, {len(catalog.metrics)} questions each; every device lies a little.")
    with LocalRun(home, catalog, Ports.free()) as run:
        seconds["start"] = _lap(started)
        sent, terms = _send(run, everyone, seconds)
        mark = time.monotonic()
        answers = [_ask(run, metric, everyone) for metric in run.bundle.metrics.values()]
        seconds["query"] = _lap(mark)
        seconds["total"] = _lap(started)
        for answered in answers:
            _show(answered)
        balanced = balances(terms) and terms["acknowledged"] == sent.acknowledged
        _show_summary(answers, sent, terms, seconds, balanced=balanced)
        if json_file:
            _write(json_file, answers, terms, seconds, balanced=balanced)
        if keep:
            say(f"Look at it: {run.endpoints.page}   (Ctrl-C ends it; state in {home})")
            until_interrupted(run)
    return 0 if balanced else 1


def _send(
    run: LocalRun, everyone: Sequence[Person], seconds: dict[str, float]
) -> tuple[Sent, dict[str, int]]:
    """Every person's answers, through to the totals: what was sent, and where it is."""
    with progress() as bars:
        mark = time.monotonic()
        bar = bars.add_task("devices", total=len(everyone))
        sent = send_everyone(everyone, run.bundle_path, lambda done: bars.advance(bar, done))
        seconds["devices"] = _lap(mark)
        mark = time.monotonic()
        close_epochs(run.shuffler_redis)
        terms = _drain(run, bars.add_task("mixed and counted", total=sent.acknowledged), bars)
        seconds["drain"] = _lap(mark)
    return sent, terms


def close_epochs(redis_url: str) -> None:
    """End the epoch now, as an operator may: the pools go out whole instead of at midnight."""

    async def close() -> None:
        server = await connect_redis(redis_url)
        await Pool(server).close_windows()
        await server.close()

    asyncio.run(close())


def _drain(run: LocalRun, bar: Any, bars: Any) -> dict[str, int]:
    """Wait until nothing is pooled or in flight: the law's terms, over all windows."""
    deadline = time.monotonic() + _DRAIN_SECONDS
    while True:
        run.check()
        terms = sum_terms(report_counts(run.endpoints).values())
        bars.update(bar, completed=sum(terms[term] for term in TERMS[3:]))
        if not terms["pooled"] and not terms["in_flight"] and balances(terms):
            return terms
        if time.monotonic() > deadline:
            raise ServiceUnavailable(f"reports are still on their way after minutes: {terms}")
        time.sleep(_POLL_SECONDS)


def _ask(run: LocalRun, metric: Metric, everyone: Sequence[Person]) -> _Metric:
    try:
        strings = candidates() if metric.values is None else []
        request = EstimateRequest(metric=metric.name, candidates=strings)
        found: Estimated = ask(run.endpoints, "Estimate", request)
    except HubbubError as error:
        return _Metric(metric, None, [], str(error))
    truth = true_counts(everyone, metric.name)
    rows = [
        {
            "value": value.value,
            "true": truth[value.value],
            "estimate": value.estimate,
            "stderr": value.stderr,
            "low": value.low,
            "high": value.high,
            "detected": value.detected,
        }
        for value in found.values
    ]
    return _Metric(metric, found, rows)


def _show(answered: _Metric) -> None:
    metric, found = answered.metric, answered.found
    if found is None:
        say(f"{metric.name}: {answered.problem}\n")
        return
    rows = sorted(answered.rows, key=lambda row: -row["estimate"])
    shown = rows if len(rows) <= _ROWS else [row for row in rows if row["detected"]][:_ROWS]
    table(
        f"{metric.name}: {found.reports:,} reports by {found.mechanism}, "
        f"epsilon {found.epsilon:.3f} per report",
        ("value", "true", "estimate", "95% interval", ""),
        [
            (
                row["value"],
                f"{row['true']:,}",
                f"{row['estimate']:,.0f}",
                f"{row['low']:,.0f} to {row['high']:,.0f}",
                "" if row["low"] <= row["true"] <= row["high"] else "misses",
            )
            for row in shown
        ],
    )
    more = f"; {len(rows) - len(shown):,} candidates not shown" if len(shown) < len(rows) else ""
    say(f"{answered.covered:,} of {len(rows):,} intervals hold the truth{more}\n")


def _show_summary(
    answers: Sequence[_Metric],
    sent: Sent,
    terms: dict[str, int],
    seconds: dict[str, float],
    *,
    balanced: bool,
) -> None:
    values = sum(len(answered.rows) for answered in answers)
    covered = sum(answered.covered for answered in answers)
    if values:
        say(f"{covered:,} of {values:,} 95% intervals hold the truth, of absent ones nearly all.\n")
    reports = sent.acknowledged
    table(
        "where the time went",
        ("stage", "seconds", "reports/s"),
        [
            ("randomize (CPU of the devices)", *_rate(sent.randomize_seconds, reports)),
            ("seal and send (CPU of the devices)", *_rate(sent.send_seconds, reports)),
            ("devices to shuffler, counting meanwhile", *_rate(seconds["devices"], reports)),
            ("the rest: mixed, opened, counted", *_rate(seconds["drain"], 0)),
            ("estimated, strings decoded", *_rate(seconds["query"], 0)),
            ("everything, with starting and ending", *_rate(seconds["total"], reports)),
        ],
    )
    for reason, number in sent.not_sent.items():
        if number:
            say(f"not sent: {number:,} ({reason})")
    parts = " + ".join(f"{terms[term]:,} {term.replace('_', ' ')}" for term in TERMS[1:])
    say(f"{terms['acknowledged']:,} acknowledged = {parts}")
    say("The law balances." if balanced else "THE LAW DOES NOT BALANCE.")


def _write(
    path: Path,
    answers: Sequence[_Metric],
    terms: dict[str, int],
    seconds: dict[str, float],
    *,
    balanced: bool,
) -> None:
    document = {
        "metrics": {
            answered.metric.name: {
                "reports": answered.found.reports if answered.found else 0,
                "epsilon": answered.metric.report_loss,
                "values": answered.rows,
            }
            for answered in answers
        },
        "conservation": {**terms, "balanced": balanced},
        "seconds": seconds,
    }
    try:
        path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise BadParameter(f"--json {path}: cannot be written: {error.strerror}") from error


def _rate(seconds: float, reports: int) -> tuple[str, str]:
    return f"{seconds:.1f}", f"{reports / seconds:,.0f}" if reports and seconds else ""


def _lap(since: float) -> float:
    return round(time.monotonic() - since, 3)
