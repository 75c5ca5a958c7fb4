"""`hubbub privacy`: a catalog's card; what crowds hide; what many events reveal together."""

import shlex
from dataclasses import asdict
from functools import partial
from math import exp, inf, isfinite
from pathlib import Path
from typing import Any, Final, Literal

from hubbub.bundles import read_bundle
from hubbub.bundles.encoding import MALFORMED, read_json
from hubbub.catalog import SPANS
from hubbub.cli.terminal.catalog_reading import CatalogOptions
from hubbub.cli.terminal.difference_table import show_difference
from hubbub.cli.terminal.output import explain, say, say_json, table
from hubbub.cli.terminal.rendered_document import Document, Table, leaflet_html, review_markdown
from hubbub.errors import BadParameter
from hubbub.errors.message_words import at_most, visible
from hubbub.fields.rules import Interval
from hubbub.installation.keys_and_bundles import DEMO_DEVICE
from hubbub.mechanisms.probability import MAX_EPSILON
from hubbub.privacy.amplification import ASSUMPTION, DELTA, Amplified, amplified
from hubbub.privacy.card import Card, card, max_posterior, meaning
from hubbub.privacy.composition import MAX_TIMES, Event, compose
from hubbub.privacy.epsilon_words_and_advice import verdict
from hubbub.privacy.leaflet_and_reviewer_claims import claims, leaflet
from hubbub.privacy.legal_papers import DECIDE, papers, store_files
from hubbub.programs.atomic_write import refuse_unwritable, replace_file
from hubbub.programs.command_line import command
from hubbub.programs.option_parsing import argument, option, options
from hubbub.programs.text_files import read_text
from hubbub.signing.metric_changes import differences

_BAR: Final = 20


@options
class CardOptions(CatalogOptions):
    delta: float = option(
        "delta of central figures (%(default)s)", default=DELTA, within=Interval(0, 1, "()")
    )
    format: Literal["table", "markdown", "html", "json"] = option(
        "format of the output (%(default)s)", default="table"
    )


@command("privacy card", text="show the privacy card of a catalog")
def _card(options: CardOptions) -> None:
    privacy_card = card(options.read(), options.delta)
    if options.format == "json":
        data = asdict(privacy_card)
        for metric, metric_card in zip(data["metrics"], privacy_card.metrics, strict=True):
            metric["shuffled"] = amplified_json(metric_card.shuffled)
        say_json(data)
        return
    _document(privacy_card, options.catalog.name).write(options.format)


@command("privacy review", text="list ten claims of a catalog, each with its command and its tests")
def _review(options: CatalogOptions) -> None:
    name = shlex.quote(visible(str(options.catalog)))
    folder = options.catalog.parent
    demo = shlex.quote(visible(str(folder))) if (folder / DEMO_DEVICE).is_dir() else ""
    say(review_markdown(claims(options.read(), name, demo), name).rstrip())


@command("privacy leaflet", text="write a leaflet to print, for the people who are asked, as HTML")
def _leaflet(options: CatalogOptions) -> None:
    say(leaflet_html(leaflet(options.read())).rstrip())


@command(
    "privacy papers",
    text="write drafts of what ships with an app: record of processing, impact assessment, "
    "consent text, answers for the App Store and Google Play",
)
def _papers(
    chosen: CatalogOptions,
    out: Path = option("folder to write the papers into (%(default)s)", default=Path("papers")),
) -> None:
    files = store_files()
    for paper in papers(chosen.read()):
        stated = [entry for entry in paper.statements if DECIDE not in entry.text]
        rows = [(entry.subject, entry.text, entry.source) for entry in stated]
        others = [entry for entry in paper.statements if entry not in stated]
        open_rows = [(entry.subject, entry.text) for entry in others]
        heads = ("subject", "decision"), ("subject", "statement", "source")
        tables = [
            Table("What a person must decide", heads[0], open_rows, text_columns=2),
            Table("What the catalog and the proofs state", heads[1], rows, text_columns=3),
        ]
        document = Document(paper.title, [paper.purpose, *tables])
        files[f"{paper.name}.md"] = document.markdown().encode()
        files[f"{paper.name}.html"] = document.html().encode()
    with refuse_unwritable(out, BadParameter):
        out.mkdir(parents=True, exist_ok=True)
        for name in sorted(files):
            if (out / name).exists():
                raise BadParameter(
                    f"{out / name} exists; nothing is overwritten: give another folder "
                    "(--out), or delete it"
                )
        for name, content in files.items():
            replace_file(out / name, content)
    say(f"{out}: {', '.join(sorted(files))}")
    explain(f'They are drafts: search them for "{DECIDE}", and let a lawyer read them.')


@command("privacy diff", text="compare the privacy loss of a person under two bundles")
def _diff(
    old: Path = argument("the older bundle"),
    new: Path = argument("the newer bundle"),
) -> None:
    show_difference(f"From {old} to {new}", differences(read_bundle(old), read_bundle(new)))


_COLUMNS: Final = (
    "metric",
    "mechanism",
    "per report",
    "per epoch",
    "one value for life",
    "at most for life",
    "tiers",
    "sampled",
    "shuffled",
    "min batch",
)


def _document(privacy_card: Card, name: str) -> Document:
    document = Document(f"Privacy card of {name}")
    rows = [
        (
            metric.name,
            metric.mechanism,
            at_most(metric.per_report, ".3f"),
            f"{at_most(metric.per_epoch, '.3f')} a {metric.epoch}",
            "no bound" if metric.unchanged is None else at_most(metric.unchanged, ".3f"),
            f"{metric.lifetime_epsilon:g}",
            ", ".join(f"{tier:g}" for tier in metric.tiers),
            "all" if metric.sampling == 1 else f"{metric.sampling:.4g}",
            at_most(metric.shuffled.epsilon, ".3f"),
            f"{metric.min_batch:,}",
        )
        for metric in privacy_card.metrics
    ]
    crowd_deltas = ", ".join(
        f"{metric.name} {metric.shuffled.delta:g}"
        for metric in privacy_card.metrics
        if metric.shuffled.delta != privacy_card.delta
    )
    deltas = f"{privacy_card.delta:g}" + (f" ({crowd_deltas})" if crowd_deltas else "")
    document.blocks += [
        "Verdict: "
        + "; ".join(f"all answers in a {span}, {privacy_card.verdicts[span]}" for span in SPANS)
        + ".",
        _picture(privacy_card),
        (
            "Epsilons are upper bounds in nats, for a person who takes part. Where an app's server "
            "reports for its visitors, the server sees their values before they are randomized."
        ),
        Table("What each metric can reveal about one person", _COLUMNS, rows, text_columns=2),
        (
            "shuffled: epsilon of one report to an observer of shuffled batches only, at delta "
            f"{deltas}, in the smallest batch that is forwarded; {privacy_card.assumption}."
        ),
        _together(privacy_card),
        _facts(privacy_card),
        *(f"{metric.name}, shuffled: {metric.rests_on}" for metric in privacy_card.metrics),
        *privacy_card.sentences,
        *privacy_card.advice,
        *(f"One answer to {names}: {meaning(e)}" for e, names in _groups(privacy_card).items()),
        *(
            f"{metric.name}: {metric.description}. {metric.further}".replace("?.", "?")
            for metric in privacy_card.metrics
        ),
    ]
    return document


def _together(privacy_card: Card) -> Table:
    return Table(
        "What all metrics together can reveal about one person",
        ("in a", "at most", "if no answer changes", "cap"),
        [
            (
                span,
                at_most(privacy_card.together[span], ".4g"),
                at_most(privacy_card.unchanged[span], ".4g"),
                "none" if (cap := privacy_card.caps[span]) is None else f"{cap:g}",
            )
            for span in SPANS
        ],
    )


def _picture(privacy_card: Card) -> Table:
    """Bars of how sure an observer can become who starts from 50:50."""
    spans = {f"all answers in a {span}": privacy_card.together[span] for span in SPANS}
    answers = {f"one answer, {names}": epsilon for epsilon, names in _groups(privacy_card).items()}
    rows = []
    for what, epsilon in (answers | spans).items():
        sureness = max_posterior(epsilon)
        filled = round(_BAR * (2 * sureness - 1))
        bar = "█" * filled + "░" * (_BAR - filled)
        percent = at_most(100 * sureness, ".4g")
        sure = "almost 100%" if percent == "100" else f"{percent}%"
        rows.append((what, verdict(epsilon), bar, sure))
    title = "How sure an observer can be who started from 50:50: from 50% (not at all) to 100%"
    return Table(title, ("from", "verdict", "", "at most"), rows, text_columns=3)


def _groups(privacy_card: Card) -> dict[float, str]:
    """The names of metrics, by the privacy loss of one report."""
    names: dict[float, list[str]] = {}
    for metric in privacy_card.metrics:
        names.setdefault(metric.per_report, []).append(metric.name)
    return {epsilon: ", ".join(metric_names) for epsilon, metric_names in names.items()}


def _facts(privacy_card: Card) -> Table:
    """The catalog's figures for every metric, with a column for each that any has."""
    metrics = privacy_card.metrics
    labels = list(dict.fromkeys(fact.label for metric in metrics for fact in metric.facts))
    rows = []
    for metric in metrics:
        texts = {fact.label: fact.text for fact in metric.facts}
        rows.append((metric.name, *(texts.get(label, "") for label in labels)))
    return Table("Figures of the catalog", ("metric", *labels), rows, text_columns=1 + len(labels))


def amplified_json(guarantee: Amplified) -> dict[str, Any]:
    """A central guarantee as JSON-ready data."""
    figures = asdict(guarantee)
    closed_form = guarantee.closed_form if isfinite(guarantee.closed_form) else None
    return {"epsilon_central": figures.pop("epsilon"), **figures, "closed_form": closed_form}


@command("privacy amplify", text="compute the central epsilon of a shuffled report")
def _amplify(
    *,
    epsilon: float = option(
        "privacy loss of one report, nats", within=Interval(0, MAX_EPSILON, "(]")
    ),
    reports: int = option("number of reports in the batch"),
    delta: float = option(
        "delta of the central guarantee (%(default)s)", default=DELTA, within=Interval(0, 1, "()")
    ),
    total_variation: float | None = option(
        "total variation between the payloads of two values, if it is smaller than epsilon allows",
        metavar="V",
    ),
    json: bool = option("print the figures as JSON"),
) -> None:
    guarantee = amplified(epsilon, reports, delta, total_variation)
    if json:
        say_json(amplified_json(guarantee))
        return
    explain(
        f"One report of epsilon {epsilon:g} among {reports:,} shuffled ones: "
        f"epsilon {at_most(guarantee.epsilon, '.6g')} at delta {delta:g}"
    )
    explain(f"{ASSUMPTION}.")
    if total_variation is None:
        explain(
            "This holds for every mechanism. The figure of a metric, on its card and with "
            "its estimates, accounts for its mechanism and is often smaller."
        )
    explain(f"For a person: {meaning(guarantee.epsilon)}")
    if isfinite(guarantee.closed_form):
        explain(f"The published closed form gives {guarantee.closed_form:.6g}.")


@command("privacy compose", text="compose the privacy losses of many reports or releases")
def _compose(
    *,
    epsilon: tuple[float, ...] = option("privacy loss of an event, nats (repeatable)"),
    sigma: tuple[float, ...] = option("standard deviation of a Gaussian event (repeatable)"),
    times: int = option(
        "number of times that each event happens (%(default)s)",
        default=1,
        within=Interval(1, MAX_TIMES),
    ),
    sampling: float = option(
        "chance that a person takes part in an event (%(default)s)",
        default=1.0,
        within=Interval(0, 1, "(]"),
    ),
    history: Path | None = option(
        'JSON list of further events, such as [{"epsilon": 0.5, "times": 12}]'
    ),
    delta: float = option(
        "chance that the bound on all events together fails, such as 1e-8",
        within=Interval(0, 1, "()"),
    ),
    json: bool = option("print the figures as JSON"),
) -> None:
    make_event = partial(Event, sampling=sampling, times=times)
    events = [make_event(epsilon=loss) for loss in epsilon]
    events += [make_event(sigma=deviation) for deviation in sigma]
    events += _history(history) if history else []
    composition = compose(events, delta)
    figures = {**asdict(composition), "best": composition.best}
    bounds = {name: None if bound == inf else bound for name, bound in figures.items()}
    if json:
        say_json(bounds)
        return
    lines = {
        "basic: epsilons add up": bounds["basic"],
        "advanced (Dwork, Rothblum, Vadhan 2010)": bounds["advanced"],
        "Renyi divergences": bounds["rdp"],
        "privacy loss distributions": bounds["pld"],
        "the best of them": bounds["best"],
    }
    table(
        f"{sum(event.times for event in events):,} events together, at delta {delta:g}",
        ("bound", "epsilon", "odds change by"),
        [
            (name, "no bound", "")
            if bound is None
            else (name, at_most(bound, ".4f"), at_most(exp(min(bound, 700)), ".4g"))
            for name, bound in lines.items()
        ],
    )


def _history(path: Path) -> list[Event]:
    """Reads events from a JSON list, such as [{"epsilon": 0.5, "delta": 0, "times": 12}]."""
    events: list[Event] = []
    try:
        text = read_text(path)
    except ValueError as error:
        raise BadParameter(f"--history {error}; give a JSON list of events") from error
    try:
        for entry in read_json(text.encode()):
            events.append(Event(**entry))  # noqa: PERF401 an error names the entry's place
    except BadParameter as error:
        raise BadParameter(f"--history {path}: entry {len(events) + 1}: {error}") from error
    except MALFORMED as error:
        raise BadParameter(
            f"--history {path}: entry {len(events) + 1} is not an event of a JSON list: write "
            '[{"epsilon": 0.5, "times": 12}], or sigma, with delta and sampling if needed'
        ) from error
    return events
