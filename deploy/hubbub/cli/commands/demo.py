"""`hubbub demo`: sends real people's answers from SDK to estimates, through every role."""

import asyncio
import csv
import gzip
import json
import secrets
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from itertools import accumulate, islice
from math import exp, sqrt
from pathlib import Path
from typing import Final

from hubbub.authoring.crowds.accountant import number_variance
from hubbub.catalog import EPOCH_SECONDS, epoch_at
from hubbub.cli.commands.up import until_interrupted
from hubbub.cli.demo_questions import (
    BOTH_WAYS,
    CROSSED,
    answers_of,
    ask_all,
    demo_questions,
    show_answers,
    show_change,
)
from hubbub.cli.terminal.output import chance_text, paragraph, say
from hubbub.cli.terminal.progress import progress
from hubbub.client import Client
from hubbub.conservation import TERMS, Window, balances
from hubbub.epochs import epoch_date, epoch_dates
from hubbub.errors import BadParameter, ServiceUnavailable
from hubbub.errors.message_words import at_most
from hubbub.fields.rules import Interval
from hubbub.installation.keys_and_bundles import DEMO_DEVICE
from hubbub.installation.local_run import LocalRun, Ports, program, shell_path
from hubbub.programs.atomic_write import read_output, write_output
from hubbub.programs.command_line import command
from hubbub.programs.option_parsing import Exclusive, option
from hubbub.runtime.redis.client import connect_redis
from hubbub.shuffler.pool import Pool
from hubbub.simulation import demo_history
from hubbub.simulation.devices import Person, Sent, send_everyone

PEOPLE: Final = 30_162
"""How many the census has."""
AGE_GROUPS = ((25, "17-24"), (35, "25-34"), (45, "35-44"), (55, "45-54"), (65, "55-64"))


def candidates() -> list[str]:
    """The 10,000 most queried domains, in order."""
    return _text("top_domains.txt.gz").split()


def people(number: int) -> list[Person]:
    """`number` people: the 30,162 of the census, repeated if they do not suffice.

    Home pages follow Zipf's law with exponent 1.0 over the domains' ranks.
    """
    census = list(csv.DictReader(_text("census_people.csv.gz").splitlines()))
    domains = candidates()
    weights = list(accumulate(1 / rank for rank in range(1, len(domains) + 1)))
    homepages = secrets.SystemRandom().choices(domains, cum_weights=weights, k=number)
    repeated = (row for _ in range(number // len(census) + 1) for row in census)
    return [
        {
            "income_over_50k": "yes" if row["income"] == ">50K" else "no",
            "education": row["education"],
            "occupation": row["occupation"],
            "age_group": next(
                (name for age_limit, name in AGE_GROUPS if int(row["age"]) < age_limit), "65+"
            ),
            "homepage": homepage,
        }
        for row, homepage in zip(islice(repeated, number), homepages, strict=True)
    ]


def _text(name: str) -> str:
    return gzip.decompress((files("hubbub.cli") / "demo_data" / name).read_bytes()).decode()


_KEEP: Final = Exclusive()
_DRAIN_SECONDS: Final = 600.0
_POLL_SECONDS: Final = 0.25
_FLUSH_SECONDS: Final = 60.0
_MAX_MEANINGS: Final = 3
_HEX: Final = 16  # bytes of a sealed report to print
_DAY_SECONDS: Final = EPOCH_SECONDS["day"]
# Of the estimate of how many reports were acknowledged: off by chance once in 500 million runs.
_SIGMAS: Final = 6.0
_LAW: Final = "Where every report is, as counted by the shuffler and the aggregator:"


@command("demo")
def _demo(
    *,
    people: int = option(
        "number of devices (%(default)s)", default=PEOPLE, within=Interval(1, 10_000_000)
    ),
    keep: Path | None = option(
        "keep the state in this folder after Ctrl-C (%(const)s); with this option, or on a "
        "terminal, the page stays open until Ctrl-C",
        bare=Path(".hubbub-demo"),
        metavar="FOLDER",
        exclusive=_KEEP,
    ),
    no_keep: bool = option(
        "end after the answers, as the demo does when its output is not a terminal", exclusive=_KEEP
    ),
    json: Path | None = option(
        "also write all results to this file", metavar="FILE", read=read_output
    ),
) -> int:
    if keep:
        if keep.exists():
            raise BadParameter(
                f"--keep {keep} already exists: delete it, or continue with: hubbub "
                f"up --home {keep} --catalog {keep / 'metrics.toml'}"
            )
        return _run(keep.absolute(), people, json, keep=True)
    stays = sys.stdout.isatty() and not no_keep
    with tempfile.TemporaryDirectory(prefix="hubbub-demo-") as home:
        return _run(Path(home), people, json, keep=stays)


def _run(home: Path, number: int, json_file: Path | None, *, keep: bool) -> int:
    seconds: dict[str, float] = {}
    started = time.monotonic()
    everyone = answers_of(people(number))
    catalog = demo_questions(home, number)
    say(
        f"{number:,} people of a census, {len(catalog.metrics)} questions each; every device "
        "randomizes its answers.\n"
    )
    today = epoch_at(time.time(), "day")
    with LocalRun(home, catalog, Ports.free(), notice=demo_history.drawn_notice(today)) as run:
        seconds["start"] = _lap(started)
        metrics = run.bundle.metrics.values()
        stderr = sqrt(sum(number_variance(metric, number) for metric in metrics))
        sent, terms = _send(run, everyone, seconds, stderr)
        began = time.monotonic()
        dates = epoch_dates([*range(today, epoch_at(time.time(), "day") + 1)], _DAY_SECONDS)
        answers = ask_all(run.endpoints.connection, [*run.bundle.metrics.values()], everyone, dates)
        seconds["query"] = _lap(began)
        show_answers(answers)
        began = time.monotonic()
        _add_history(run, everyone, today)
        seconds["history"] = _lap(began)
        seconds["total"] = _lap(started)
        difference = abs(terms["acknowledged"] - sent.acknowledged)
        balanced = balances(terms) and difference <= _SIGMAS * stderr
        _show_law(sent, terms, seconds, stderr, balanced=balanced)
        if json_file:
            document = {
                "metrics": {
                    name: {
                        "reports": answer.document["reports"] if answer.document else 0,
                        "epsilon": answer.metric.report_loss,
                        "central_epsilon": answer.document["shuffled"]["epsilon"]
                        if answer.document and answer.metric.central
                        else None,
                        "values": answer.rows,
                    }
                    for name, answer in answers.items()
                },
                "conservation": {**terms, "balanced": balanced},
                "seconds": dict(seconds),
            }
            write_output(
                "--json", json_file, json.dumps(document, indent=1, ensure_ascii=False) + "\n"
            )
        if keep:
            until_interrupted(run, lambda: _show_next(run))
        else:
            say(f"{program()} demo --keep leaves all this running, with a web page to look at it.")
    return 0 if balanced else 1


def _send(
    run: LocalRun, everyone: Sequence[Person], seconds: dict[str, float], stderr: float
) -> tuple[Sent, dict[str, int]]:
    """Sends every person's answers; returns what was sent, and the law's terms afterwards."""
    comparison = BOTH_WAYS[0]
    for line in _send_one(run, everyone[0], len(everyone), comparison.alone, comparison.crowd):
        say(line)
    say("")
    with progress() as bars:
        began = time.monotonic()
        bar = bars.add_task("devices", total=len(everyone), completed=1)
        sent = send_everyone(everyone[1:], run.bundle_path, lambda done: bars.advance(bar, done))
        sent.add(Sent(devices=1, acknowledged=len(everyone[0])))
        seconds["devices"] = _lap(began)
        began = time.monotonic()
        close_epochs(run.shuffler_redis)
        bar = bars.add_task("mixed and counted", total=sent.acknowledged)
        law = _drain(run, sent.acknowledged, stderr, lambda done: bars.update(bar, completed=done))
        seconds["drain"] = _lap(began)
    return sent, law


def _send_one(
    run: LocalRun, person: Person, people: int, alone_metric: str, crowd_metric: str
) -> list[str]:
    """Sends one person's reports before all others'; returns the lines that explain one of them."""
    client = Client.from_bundle(run.bundle_path, state_dir=run.home / DEMO_DEVICE)
    for metric, value in person.items():
        client.report(metric, value)
    if not client.flush(_FLUSH_SECONDS):
        raise ServiceUnavailable(f"the shuffler accepts no reports: see {run.home / 'log'}")
    payloads = {payload.metric: payload for payload in client.ledger().payloads}
    client.close()

    async def pooled(window: Window) -> bytes:
        async with await connect_redis(run.shuffler_redis) as server:
            return bytes(await server.ask("SRANDMEMBER", window.key("shuffler:pool")))

    payload, other = payloads[alone_metric], payloads[crowd_metric]
    sealed = asyncio.run(pooled(Window(alone_metric, payload.epoch)))
    meant, meant_other = payload.meanings(), other.meanings()
    if not (meant and meant_other and other.stream and payload.stream):
        return []
    odds = at_most(meant[0][1] / meant[-1][1], ".1f")
    most = at_most(exp(payload.stream.report_loss), ".1f")
    likely = ", ".join(f"{value} {chance:.0%}" for value, chance in meant[:_MAX_MEANINGS])
    value, posterior = meant_other[0]
    return [
        f"One of {people:,} devices, and its answer to {alone_metric}:",
        f"  the person's answer, which stays there   {person[alone_metric]}",
        f"  the randomized payload, in hex           {payload.payload.hex()}",
        f"  what was sent, encrypted                 {sealed[:_HEX].hex()}...",
        f"  what it could have meant                 {likely},",
        f"                                           ..., {meant[-1][0]} {meant[-1][1]:.0%}",
        paragraph(
            "Nobody can tell, not even someone who breaks the encryption: each of the "
            f"{len(meant)} answers could have produced these bytes, the likeliest {odds} times "
            f"as often as the least likely (the bound is {most} times). Over many people "
            "the random answers average out; over one person they do not."
        ),
        paragraph(
            f"Asked in a crowd ({crowd_metric}) the same device randomized less, and sent "
            f"{other.payload.hex()}: read by itself, that report is "
            f'{chance_text(posterior)} likely to mean "{value}". Only the crowd hides it: the '
            f"shuffler releases {other.stream.fewest:,} reports or more at once, in a random "
            "order, or none."
        ),
    ]


def close_epochs(redis_url: str) -> None:
    """Closes the epoch now, as an operator may: pools go out whole instead of at midnight."""

    async def close() -> None:
        async with await connect_redis(redis_url) as server:
            await Pool(server).close_windows()

    asyncio.run(close())


def _drain(
    run: LocalRun, acknowledged: int, stderr: float, show: Callable[[int], object]
) -> dict[str, int]:
    """Waits until no report is on its way, showing how many arrived; returns the law's terms."""
    deadline = time.monotonic() + _DRAIN_SECONDS
    while True:
        run.check()
        law = run.endpoints.service.ask("/v1/status")
        terms = {term: law["total"][term] or 0 for term in TERMS}
        # Dummies arrive, too, and the law only estimates how many of the arrived are reports.
        show(min(sum(terms[term] for term in TERMS[4:]) - terms["dummies"], acknowledged))
        is_over = law["complete"] and not terms["pooled"] and not terms["in_flight"]
        # A crowd with noise dummies is in no term of the law before it leaves.
        has_all = terms["acknowledged"] >= acknowledged - _SIGMAS * stderr
        if is_over and has_all and balances(terms):
            return terms
        if time.monotonic() > deadline:
            raise ServiceUnavailable(f"reports are still on their way after minutes: {terms}")
        time.sleep(_POLL_SECONDS)


def _add_history(run: LocalRun, everyone: Sequence[Person], today: int) -> None:
    """Adds the days before today, and shows their trend in both ways."""
    days = demo_history.days_before(run.bundle, everyone, today)
    demo_history.write_history(days, run.aggregator_redis, run.shuffler_redis)
    change_date = epoch_date(today - demo_history.CHANGED_DAYS_AGO, _DAY_SECONDS)
    text = "made up: from here on fewer people have yahoo.com as their home page"
    mark = {"date": change_date, "text": text, "metric": "homepage"}
    run.endpoints.service.ask("/v1/marks/yahoo", body=mark, method="PUT")
    say(paragraph(f"{demo_history.drawn_notice(today)} {demo_history.STORY}"))
    first_day, now = (
        epoch_date(epoch, _DAY_SECONDS) for epoch in (today - demo_history.DAYS, today)
    )
    show_change(run.endpoints.connection, BOTH_WAYS[0], "Bachelors", first_day, now)
    say("")


def _show_law(
    sent: Sent,
    terms: Mapping[str, int],
    seconds: Mapping[str, float],
    stderr: float,
    *,
    balanced: bool,
) -> None:
    """Show where all reports are; `stderr` is that of how many were acknowledged."""
    for reason, number in sent.not_sent.items():
        if number:
            say(f"not sent: {number:,} ({reason})")
    say(_LAW)
    parts = " + ".join(f"{terms[term]:,} {term.replace('_', ' ')}" for term in TERMS[2:])
    dummies = f" + {terms['dummies']:,} dummies" if terms["dummies"] else ""
    say(f"{terms['acknowledged']:,} acknowledged{dummies} = {parts}")
    if stderr:
        say(
            f"The number acknowledged is an estimate, {terms['acknowledged']:,} ± {stderr:.0f} "
            "(standard error): the shuffler keeps the number of dummies secret."
        )
    say("The law balances." if balanced else "THE LAW DOES NOT BALANCE.")
    say(
        f"{seconds['total']:.0f} s in all; processor time: {sent.randomize_seconds:.1f} s "
        f"to randomize, {sent.send_seconds:.1f} s to seal and send.\n"
    )


def _show_next(run: LocalRun) -> None:
    ask = f"{program()} {{}} --home {shell_path(run.home)}"
    pair = BOTH_WAYS[1]
    say(f"Look at it: {run.endpoints.page}   (Ctrl-C ends it; state in {run.home})")
    say(f"  both ways: {run.endpoints.page}metric?name={pair.crowd}&beside={pair.alone}")
    say("Or from another terminal:")
    say(f"  {ask.format('top homepage')}")
    say(f"  {ask.format('trend ' + BOTH_WAYS[0].crowd)}")
    say(f"  {ask.format('cross ' + CROSSED)}")
    say(f"  {program()} privacy card {shell_path(run.home / 'metrics.toml')}")
    say("A metric of your own, in a quarter of an hour: docs/tutorial/first-metric.md")


def _lap(since: float) -> float:
    return round(time.monotonic() - since, 3)
