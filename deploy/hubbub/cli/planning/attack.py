"""`hubbub plan --attack`: what fake reports could do to a metric, before it is launched."""

import argparse
import json
import sys
from collections.abc import Sequence
from math import sqrt
from pathlib import Path
from statistics import NormalDist
from typing import Any, Final

from hubbub.analysis import Attack, answer, maximal_gain
from hubbub.analysis.estimators.words_of_books import words_of
from hubbub.analysis.families import family_for
from hubbub.catalog import Catalog, Metric
from hubbub.catalog.models.of_metric import codes_of_round
from hubbub.cli.terminal.catalog_reading import read_aloud
from hubbub.cli.terminal.output import say, table
from hubbub.cli.terminal.progress import progress
from hubbub.errors import BadParameter, UnknownMetric
from hubbub.mechanisms import SystemBits, Totals, tally
from hubbub.mechanisms.directions import UNIT

CATALOG: Final = Path("metrics.toml")
"""Where a catalog usually is."""


def attack(arguments: argparse.Namespace) -> int:
    """Show what fake reports can do to the metrics asked for."""
    if not 0 < arguments.fake < 1:
        raise BadParameter(f"--fake {arguments.fake} is outside (0, 1)")
    if not 1 <= arguments.targets <= 1000:  # noqa: PLR2004 more than anyone promotes at once
        raise BadParameter(f"--targets {arguments.targets} is outside [1, 1000]")
    if arguments.simulate is not None and not 100 <= arguments.simulate <= 10_000_000:  # noqa: PLR2004 hours
        raise BadParameter(f"--simulate {arguments.simulate} is outside [100, 10000000]")
    catalog, metrics = _read(arguments)
    fakes = _fakes(catalog, metrics, arguments)
    rows = [_row(metric, arguments, *fakes[metric.name]) for metric in metrics]
    if arguments.format == "json":
        say(json.dumps(rows, indent=1))
    else:
        _show(rows, arguments, any(metric.model for metric in metrics))
    return 0


def is_missing(arguments: argparse.Namespace) -> bool:
    """Whether no catalog was named, and there is none where one usually is."""
    return arguments.catalog == CATALOG and not CATALOG.exists()


def chosen_metrics(arguments: argparse.Namespace) -> list[Metric]:
    """The metrics named on the command line, or all of the catalog."""
    return _read(arguments)[1]


def _read(arguments: argparse.Namespace) -> tuple[Catalog, list[Metric]]:
    if is_missing(arguments):
        raise BadParameter(
            f"there is no {arguments.catalog} here: name a catalog, as in: hubbub plan "
            "path/to/metrics.toml --attack; hubbub init makes one"
        )
    catalog = read_aloud(arguments.catalog)
    for name in arguments.metric:
        if name not in catalog.metrics:
            raise UnknownMetric(
                f'{arguments.catalog}: no metric "{name}"; look at: hubbub catalog check'
            )
    return catalog, [
        m for m in catalog.metrics.values() if not arguments.metric or m.name in arguments.metric
    ]


def _fakes(
    catalog: Catalog, metrics: Sequence[Metric], arguments: argparse.Namespace
) -> dict[str, tuple[float, int | None]]:
    """Of each metric the share of fake reports; and how many, where accounts bound them."""
    if arguments.accounts is None:
        return {metric.name: (arguments.fake, None) for metric in metrics}
    if not 1 <= arguments.accounts <= 10**9:
        raise BadParameter(f"--accounts {arguments.accounts} is outside [1, 1000000000]")
    if not arguments.others or not 1 <= arguments.others <= 10**12:
        raise BadParameter("--accounts needs --others N, the honest reports of an epoch")
    tokens = catalog.tokens
    if tokens is None:
        raise BadParameter(
            f"{arguments.catalog}: accounts bound no report where none needs a token; write "
            'tokens = { issuer = "https://HOST" } in it'
        )
    found: dict[str, tuple[float, int | None]] = {}
    for metric in metrics:
        # Of each tier an account has tokens of its own.
        of_device = metric.limits.reports_per_epoch * len(metric.own_streams)
        number = arguments.accounts * tokens.devices * of_device
        found[metric.name] = number / (number + arguments.others), number
    return found


def _row(
    metric: Metric, arguments: argparse.Namespace, fake: float, number: int | None
) -> dict[str, Any]:
    if metric.model:
        return _row_of_model(metric, arguments, fake, number)
    family = family_for(metric.randomizer)
    targets = family.targets(metric.randomizer, arguments.targets)
    attack = maximal_gain(metric.randomizer, targets)
    held = family.ABSENT_SHARE
    if arguments.simulate:
        held = family.example_share(metric.randomizer, targets)
    row: dict[str, Any] = {
        "metric": metric.name,
        "mechanism": metric.mechanism,
        "targets": len(targets),
        "worth": attack.worth,
        "fake": fake,
        "fake_reports": number,
        "true_share": held,
        "gain": attack.gain(fake, held),
        "fake_for_1_percent": attack.fake_share(0.01, held),
    }
    if arguments.simulate:
        row["measured"] = _measured(metric, attack, targets, arguments.simulate, fake)
    return row


def _row_of_model(
    metric: Metric, arguments: argparse.Namespace, fake: float, number: int | None
) -> dict[str, Any]:
    """How far fake reports move the mean direction of their round, whose length is at most 1.

    A fake one sends the word of the whole pool that lies farthest along the direction it pushes:
    the largest of so many normal numbers, by its median, over what an honest word is divided by.
    """
    codes = codes_of_round(metric, 1)
    farthest = NormalDist().inv_cdf(0.5 ** (1 / (codes.books * codes.words)))
    worth = farthest / sqrt(codes.dimensions) / codes.reach
    row: dict[str, Any] = {
        "metric": metric.name,
        "mechanism": metric.mechanism,
        "targets": 1,
        "worth": worth,
        "fake": fake,
        "fake_reports": number,
        "true_share": 0.0,
        "gain": fake * worth,
        "fake_for_1_percent": 0.01 / worth,
    }
    if arguments.simulate:
        # Along what lies between all axes.
        every = (float(words_of(codes, at).sum(axis=1).max()) for at in range(codes.books))
        sent = max(every) / UNIT / codes.dimensions / codes.reach
        row["measured"] = fake * sent
    return row


def _measured(
    metric: Metric, attack: Attack, targets: Sequence[Any], honest: int, share: float
) -> float:
    """By how much the targets' share of all reports grew, in one drawing."""
    mechanism, source = metric.randomizer, SystemBits()
    values = family_for(mechanism).examples(mechanism)
    fake = round(honest * share / (1 - share))
    with progress() as bars:
        numbers = bars.track(range(honest), description=metric.name)
        payloads = (mechanism.randomize(values[n % len(values)], source) for n in numbers)
        totals = tally(mechanism.layout, payloads)
    cells = list(totals.cells)
    for cell, amount in attack.cells.items():
        cells[cell] += amount * fake
    before = _share(metric, totals, targets)
    return _share(metric, Totals(cells, honest + fake), targets) - before


def _share(metric: Metric, totals: Totals, targets: Sequence[Any]) -> float:
    mechanism = metric.randomizer
    strings = []
    if mechanism.VALUES == "strings":
        strings = [*targets, *family_for(mechanism).examples(mechanism)]
    found = answer(mechanism, totals, metric.values, strings).places
    return float(found[range(len(targets)) if strings else list(targets)].sum())


def _show(rows: list[dict[str, Any]], arguments: argparse.Namespace, models: bool) -> None:  # noqa: FBT001 whether there are any
    header = [
        "metric",
        "mechanism",
        "targets",
        "worth",
        *(["fake"] if arguments.accounts else []),
        "gain" if arguments.accounts else f"gain of {arguments.fake:.2%}",
        "1% takes",
    ]
    if arguments.simulate:
        header.append("measured")
    table(
        f"What fake reports can do at most, {_supposed(arguments)}"
        + ("; values are spread evenly" if arguments.simulate else "; targets that nobody holds"),
        header,
        [
            (
                row["metric"],
                row["mechanism"],
                str(row["targets"]),
                f"{row['worth']:.2f}",
                *([f"{row['fake_reports']:,}"] if arguments.accounts else []),
                f"{row['gain']:+.2%}",
                f"{row['fake_for_1_percent']:.3%}",
                *([f"{row['measured']:+.2%}"] if arguments.simulate else []),
            )
            for row in rows
        ],
        text_columns=2,
    )
    if sys.stdout.isatty():
        say("worth: how many reports of its targets one fake report counts as")
        say(
            "gain: what is added to the targets' share; 1% takes: fake reports that add one percent"
        )
        if models:
            say("of a model: to the mean direction of a round that they are all in, of length 1")


def _supposed(arguments: argparse.Namespace) -> str:
    if arguments.accounts is None:
        return f"if {arguments.fake:.2%} of all reports are fake"
    return f"by {arguments.accounts:,} accounts beside {arguments.others:,} honest reports an epoch"
