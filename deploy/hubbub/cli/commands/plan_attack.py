"""`hubbub plan attack`: what fake reports could do to a metric, before it is launched."""

from collections.abc import Sequence
from math import sqrt
from statistics import NormalDist
from typing import Any, Final, Literal

from hubbub.analysis.answering import answer
from hubbub.analysis.estimators.vector_book_errors import words_of
from hubbub.analysis.fake_report_attacks import maximal_gain
from hubbub.analysis.families import family_for
from hubbub.authoring import Catalog
from hubbub.catalog import Metric
from hubbub.catalog.models.model_metric import codes_of_round
from hubbub.cli.commands.planned_question import MetricsOptions
from hubbub.cli.terminal.output import listing, say, say_json
from hubbub.cli.terminal.progress import progress
from hubbub.errors import BadParameter
from hubbub.errors.message_words import at_least, at_most
from hubbub.fields.rules import Interval
from hubbub.mechanisms import SystemBits, Totals, tally
from hubbub.mechanisms.direction_pool import UNIT
from hubbub.programs.command_line import command
from hubbub.programs.option_parsing import Exclusive, option, options

_WHOSE: Final = Exclusive()


@options
class AttackOptions:
    chosen: MetricsOptions
    fake: float = option(
        "share of fake reports (%(default)s)",
        default=0.01,
        within=Interval(0, 1, "()"),
        exclusive=_WHOSE,
    )
    accounts: int | None = option(
        "instead of --fake, with tokens in the catalog: number of accounts of the attacker",
        metavar="N",
        within=Interval(1, 10**9),
        exclusive=_WHOSE,
    )
    others: int | None = option(
        "with --accounts: number of honest reports in an epoch",
        metavar="N",
        within=Interval(1, 10**12),
        needs="accounts",
    )
    targets: int = option(
        "number of values that the attacker promotes at once (%(default)s)",
        default=1,
        within=Interval(1, 1000),
    )
    simulate: int | None = option(
        "draw this number of honest reports, add fake reports and measure the effect",
        metavar="REPORTS",
        within=Interval(100, 10_000_000),
    )
    format: Literal["table", "json"] = option("format of the output (%(default)s)", default="table")


@command(
    "plan attack",
    text="show the effect of fake reports: the maximal gain attack (Cao, Jia, Gong 2021)",
)
def _attack(options: AttackOptions) -> None:
    catalog, metrics = options.chosen.read()
    fakes = _fakes(catalog, metrics, options)
    rows = []
    for metric in metrics:
        fake, number = fakes[metric.name]
        effect = _effect_of_model if metric.model else _effect
        row = {"metric": metric.name, "mechanism": metric.mechanism}
        shares = {"fake": fake, "fake_reports": number, **effect(metric, options, fake)}
        rows.append(row | shares)
    if options.format == "json":
        say_json(rows)
    else:
        supposed = (
            f"by {options.accounts:,} accounts beside {options.others:,} honest reports an epoch"
            if options.accounts
            else f"if {options.fake:.2%} of all reports are fake"
        )
        listing(
            f"What fake reports can do at most, {supposed}"
            + ("; values are spread evenly" if options.simulate else "; targets that nobody holds"),
            rows,
            {
                "metric": "{metric}",
                "mechanism": "{mechanism}",
                "targets": "{targets}",
                "worth": lambda row: at_most(row["worth"], ".2f"),
                **({"fake": "{fake_reports:,}"} if options.accounts else {}),
                "gain" if options.accounts else f"gain of {options.fake:.2%}": lambda row: (
                    f"{at_most(100 * row['gain'], '+.2f')}%"
                ),
                "1% takes": lambda row: f"{at_least(100 * row['fake_for_1_percent'], '.3f')}%",
                **({"measured": "{measured:+.2%}"} if options.simulate else {}),
            },
            text_columns=2,
        )
        say("targets: values that the fake reports promote together")
        say("worth: how many reports of its targets one fake report counts as")
        say("gain: increase of the targets' share; 1% takes: share of fake reports that adds 1%")
        if any(metric.model for metric in metrics):
            say("of a model: added to the mean direction, of length 1, of a round with all of them")
        if options.accounts:
            say("fake: number of reports for which the accounts have tokens in an epoch")
        if options.simulate:
            say("measured: the gain in one drawing of reports")


def _fakes(
    catalog: Catalog, metrics: Sequence[Metric], options: AttackOptions
) -> dict[str, tuple[float, int | None]]:
    """The share of fake reports by metric, and their number if accounts limit them."""
    if options.accounts is None:
        return {metric.name: (options.fake, None) for metric in metrics}
    if options.others is None:
        raise BadParameter("--accounts needs --others N, the honest reports of an epoch")
    tokens = catalog.tokens
    if tokens is None:
        raise BadParameter(
            f"{options.chosen.catalog}: --accounts limits nothing, since the catalog has no "
            'tokens; write tokens = { issuer = "https://HOST" } in it'
        )
    fakes: dict[str, tuple[float, int | None]] = {}
    for metric in metrics:
        # An account has separate tokens for each tier.
        of_device = metric.limits.reports_per_epoch * len(metric.own_streams)
        number = options.accounts * tokens.devices * of_device
        fakes[metric.name] = number / (number + options.others), number
    return fakes


def _effect(metric: Metric, options: AttackOptions, fake: float) -> dict[str, Any]:
    family = family_for(metric.randomizer)
    targets = family.targets(metric.randomizer, options.targets)
    attack = maximal_gain(metric.randomizer, targets)
    share = family.ABSENT_SHARE
    if options.simulate:
        share = family.example_share(metric.randomizer, targets)
    effect = {
        "targets": len(targets),
        "worth": attack.worth,
        "true_share": share,
        "gain": attack.gain(fake, share),
        "fake_for_1_percent": attack.fake_share(0.01, share),
    }
    if options.simulate:
        # The increase of the targets' share of all reports, in one simulation.
        mechanism, source = metric.randomizer, SystemBits()
        values = family_for(mechanism).examples(mechanism)
        fake_reports = round(options.simulate * fake / (1 - fake))
        with progress() as bars:
            numbers = bars.track(range(options.simulate), description=metric.name)
            payloads = (mechanism.randomize(values[n % len(values)], source) for n in numbers)
            totals = tally(mechanism.layout, payloads)
        cells = list(totals.cells)
        for cell, amount in attack.cells.items():
            cells[cell] += amount * fake_reports
        attacked = Totals(cells=cells, reports=options.simulate + fake_reports)
        effect["measured"] = _share(metric, attacked, targets) - _share(metric, totals, targets)
    return effect


def _effect_of_model(metric: Metric, options: AttackOptions, fake: float) -> dict[str, Any]:
    """The distance by which fake reports move a round's mean direction, whose length is at most 1.

    A fake report sends the word of the pool that points farthest in the desired direction: the
    median of the largest of so many normal numbers, divided by the scale of an honest word.
    """
    codes = codes_of_round(metric, 1)
    farthest = NormalDist().inv_cdf(0.5 ** (1 / (codes.books * codes.words)))
    worth = farthest / sqrt(codes.dimensions) / codes.reach
    effect = {"targets": 1, "worth": worth, "true_share": 0.0, "gain": fake * worth}
    effect["fake_for_1_percent"] = 0.01 / worth
    if options.simulate:
        # Along the diagonal between all axes.
        maxima = (float(words_of(codes, book).sum(axis=1).max()) for book in range(codes.books))
        sent = max(maxima) / UNIT / codes.dimensions / codes.reach
        effect["measured"] = fake * sent
    return effect


def _share(metric: Metric, totals: Totals, targets: Sequence[Any]) -> float:
    mechanism = metric.randomizer
    strings = []
    if mechanism.VALUES == "strings":
        strings = [*targets, *family_for(mechanism).examples(mechanism)]
    estimates = answer(mechanism, totals, metric.values, strings).places
    return float(estimates[range(len(targets)) if strings else list(targets)].sum())
