"""`hubbub privacy`: the card of a catalog; what a crowd adds; what many events say together."""

import json
import shlex
from dataclasses import asdict
from math import exp, isfinite
from pathlib import Path
from typing import Any, Final, Literal

from hubbub.catalog import SPANS, read_bundle
from hubbub.catalog.bundles.difference import differences
from hubbub.catalog.encoding import MALFORMED, read_json
from hubbub.cli.commands.privacy_crowd import CROWD
from hubbub.cli.installation import DEMO_DEVICE
from hubbub.cli.terminal.catalog_reading import read_aloud
from hubbub.cli.terminal.difference_table import show_difference
from hubbub.cli.terminal.output import explain, say, table
from hubbub.cli.terminal.rendered_document import Document, Table
from hubbub.cli.terminal.review_page import leaflet_html, review_markdown
from hubbub.errors import BadParameter
from hubbub.errors.printable import visible
from hubbub.errors.text_files import read_text
from hubbub.fields.command_line import Command
from hubbub.fields.options import argument, option, options
from hubbub.fields.rules import Interval
from hubbub.privacy.amplification import ASSUMPTION, DELTA, Amplified, amplified
from hubbub.privacy.card import Card, card, max_posterior, meaning
from hubbub.privacy.composition import Event, compose
from hubbub.privacy.leaflet import leaflet
from hubbub.privacy.review import claims
from hubbub.privacy.verdict import verdict

_BAR: Final = 20


@options
class CardOptions:
    """Options of `hubbub privacy card`."""

    catalog: Path = argument("the catalog (%(default)s)", default=Path("metrics.toml"))
    delta: float = option(
        "of central figures (%(default)s)", default=DELTA, within=Interval(0, 1, "()")
    )
    format: Literal["table", "markdown", "html", "json"] = option(
        "of the output (%(default)s)", default="table"
    )


@options
class PageOptions:
    """Options of `hubbub privacy review` and `leaflet`."""

    catalog: Path = argument("the catalog (%(default)s)", default=Path("metrics.toml"))


@options
class DiffOptions:
    """Options of `hubbub privacy diff`."""

    old: Path = argument("the bundle before")
    new: Path = argument("the bundle after")


@options
class AmplifyOptions:
    """Options of `hubbub privacy amplify`."""

    epsilon: float = option("of one report, nats")
    reports: int = option("in the batch")
    delta: float = option("of the central guarantee (%(default)s)", default=DELTA)
    total_variation: float | None = option(
        "between the payloads of two values, if the mechanism's is known to be smaller than "
        "epsilon allows",
        default=None,
        metavar="V",
    )
    json: bool = option("as JSON", default=False)


@options
class ComposeOptions:
    """Options of `hubbub privacy compose`."""

    epsilon: tuple[float, ...] = option("of an event, nats (repeat)", default=())
    sigma: tuple[float, ...] = option("Gaussian (repeat)", default=())
    times: int = option("of each (%(default)s)", default=1)
    sampling: float = option("chance to be in it (%(default)s)", default=1.0)
    history: Path | None = option("JSON list of events, instead or besides", default=None)
    delta: float = option("of all events together")
    json: bool = option("as JSON", default=False)


def _review(options: PageOptions) -> int:
    name = shlex.quote(visible(str(options.catalog)))
    folder = options.catalog.parent
    demo = shlex.quote(visible(str(folder))) if (folder / DEMO_DEVICE).is_dir() else ""
    say(review_markdown(claims(read_aloud(options.catalog), name, demo), name).rstrip())
    return 0


def _leaflet(options: PageOptions) -> int:
    say(leaflet_html(leaflet(read_aloud(options.catalog))).rstrip())
    return 0


def _diff(options: DiffOptions) -> int:
    old, new = read_bundle(options.old), read_bundle(options.new)
    show_difference(f"From {options.old} to {options.new}", differences(old, new))
    return 0


def _card(options: CardOptions) -> int:
    made = card(read_aloud(options.catalog), options.delta)
    if options.format == "json":
        data = asdict(made)
        for metric, one in zip(data["metrics"], made.metrics, strict=True):
            metric["shuffled"] = amplified_json(one.shuffled)
        say(json.dumps(data, indent=1))
        return 0
    document = _document(made, options.catalog.name)
    if options.format == "table":
        document.show()
    else:
        say((document.markdown() if options.format == "markdown" else document.html()).rstrip())
    return 0


def _document(made: Card, name: str) -> Document:
    document = Document(f"Privacy card of {name}")
    rows = [
        (
            one.name,
            one.mechanism,
            f"{one.per_report:.3f}",
            f"{one.per_epoch:.3f} a {one.epoch}",
            "no bound" if one.unchanged is None else f"{one.unchanged:.3f}",
            f"{one.lifetime_epsilon:g}",
            ", ".join(f"{tier:g}" for tier in one.tiers),
            "all" if one.sampling == 1 else f"{one.sampling:.4g}",
            f"{one.shuffled.epsilon:.3f}",
            f"{one.min_batch:,}",
        )
        for one in made.metrics
    ]
    header = (
        *("metric", "mechanism", "per report", "per epoch", "one value for life"),
        *("at most for life", "tiers", "sampled", "shuffled", "min batch"),
    )
    document.blocks += [
        "Verdict: "
        + "; ".join(f"all answers in a {span}, {made.verdicts[span]}" for span in SPANS)
        + ".",
        _picture(made),
        "Epsilons in nats, all upper bounds, of a person who takes part.",
        Table("What each metric can say about one person", header, rows, text_columns=2),
        (
            "shuffled: one report, as who sees shuffled batches alone can tell, as epsilon at "
            f"delta {_deltas(made)}, in the smallest batch that is forwarded; {made.assumption}."
        ),
        Table(
            "What all metrics together can say about one person",
            ("in a", "at most", "if no answer changes", "cap"),
            [
                (
                    span,
                    f"{made.together[span]:.4g}",
                    f"{made.unchanged[span]:.4g}",
                    "none" if (cap := made.caps[span]) is None else f"{cap:g}",
                )
                for span in SPANS
            ],
        ),
        _facts(made),
        *(f"{one.name}, shuffled: {one.rests_on}" for one in made.metrics),
        *made.sentences,
        *made.advice,
        *_answers(made),
        *(f"{one.name}: {one.description}. {one.further}" for one in made.metrics),
    ]
    return document


def _deltas(made: Card) -> str:
    """Of the figures after the shuffler: the card's, and a crowd's own where it is another."""
    own = [
        f"{one.name} {one.shuffled.delta:g}"
        for one in made.metrics
        if one.shuffled.delta != made.delta
    ]
    return f"{made.delta:g}" + (f" ({', '.join(own)})" if own else "")


def _picture(made: Card) -> Table:
    """How sure who thought it even can be afterwards, as bars from 50% to 100%."""
    spans = {f"all answers in a {span}": made.together[span] for span in SPANS}
    answers = {f"one answer, {names}": epsilon for epsilon, names in _alike(made).items()}
    rows = []
    for what, epsilon in (answers | spans).items():
        sure = max_posterior(epsilon)
        filled = round(_BAR * (2 * sure - 1))
        bar = "█" * filled + "░" * (_BAR - filled)
        rows.append((what, verdict(epsilon), bar, f"{sure:.1%}"))
    title = "How sure can somebody get who thought it even: from 50%, not at all, to 100%"
    return Table(title, ("from", "verdict", "", "at most"), rows, text_columns=3)


def _answers(made: Card) -> list[str]:
    """What one answer means, once for all metrics of which it means the same."""
    return [f"One answer to {names}: {meaning(e)}" for e, names in _alike(made).items()]


def _alike(made: Card) -> dict[float, str]:
    """The names of the metrics, by what one report of theirs says."""
    names: dict[float, list[str]] = {}
    for one in made.metrics:
        names.setdefault(one.per_report, []).append(one.name)
    return {epsilon: ", ".join(some) for epsilon, some in names.items()}


def _facts(made: Card) -> Table:
    """What the catalog says of every metric, with a column for each that it says of any."""
    labels = list(dict.fromkeys(fact.label for one in made.metrics for fact in one.facts))
    rows = []
    for one in made.metrics:
        texts = {fact.label: fact.text for fact in one.facts}
        rows.append((one.name, *(texts.get(label, "") for label in labels)))
    return Table("What the catalog says", ("metric", *labels), rows, text_columns=1 + len(labels))


def amplified_json(found: Amplified) -> dict[str, Any]:
    """A central guarantee as JSON-ready data."""
    return {
        "epsilon_central": found.epsilon,
        "delta": found.delta,
        "reports": found.reports,
        "epsilon_local": found.epsilon_local,
        "total_variation": found.total_variation,
        "method": found.method,
        "closed_form": found.closed_form if isfinite(found.closed_form) else None,
        "assumption": found.assumption,
    }


def _amplify(options: AmplifyOptions) -> int:
    found = amplified(options.epsilon, options.reports, options.delta, options.total_variation)
    if options.json:
        say(json.dumps(amplified_json(found), indent=1))
        return 0
    explain(
        f"One report of epsilon {options.epsilon:g} among {options.reports:,} shuffled ones: "
        f"epsilon {found.epsilon:.6g} at delta {options.delta:g}"
    )
    explain(f"{ASSUMPTION}.")
    if options.total_variation is None:
        explain(
            "That holds whatever the mechanism is. A metric's own figure reckons with its "
            "mechanism and is often smaller: that is what its card and its estimates show."
        )
    explain(f"For a person: {meaning(found.epsilon)}")
    if isfinite(found.closed_form):
        explain(f"The published closed form gives {found.closed_form:.6g}.")
    return 0


def _compose(options: ComposeOptions) -> int:
    events = [Event(e, sampling=options.sampling, times=options.times) for e in options.epsilon]
    events += [
        Event(sigma=s, sampling=options.sampling, times=options.times) for s in options.sigma
    ]
    events += _history(options.history) if options.history else []
    found = compose(events, options.delta)
    if options.json:
        say(json.dumps({**asdict(found), "best": found.best}, indent=1))
        return 0
    lines = [
        ("basic: epsilons add up", found.basic),
        ("advanced (Dwork, Rothblum, Vadhan 2010)", found.advanced),
        ("Renyi divergences", found.rdp),
        ("privacy loss distributions", found.pld),
    ]
    table(
        f"{sum(event.times for event in events):,} events together, at delta {options.delta:g}",
        ("bound", "epsilon", "odds change by"),
        [
            (
                name,
                "says nothing" if bound is None else f"{bound:.4f}",
                "" if bound is None else f"{exp(min(bound, 700)):.4g}",
            )
            for name, bound in lines
        ],
    )
    say(f"the best of them: {found.best:.4f}")
    return 0


def _history(path: Path) -> list[Event]:
    """Events of a JSON list, such as [{"epsilon": 0.5, "delta": 0, "times": 12}]."""
    try:
        return [Event(**entry) for entry in read_json(read_text(path).encode())]
    except MALFORMED as error:
        raise BadParameter(
            f'--history {path}: not a JSON list of events such as {{"epsilon": 0.5}}: {error}'
        ) from error


COMMANDS: Final = (
    Command(name="privacy card", run=_card, text="the privacy card of a catalog"),
    Command(
        name="privacy review",
        run=_review,
        text="ten claims of a catalog, each with its command and its tests",
    ),
    Command(
        name="privacy leaflet",
        run=_leaflet,
        text="a page to print, for the people who are asked, as HTML",
    ),
    Command(
        name="privacy diff",
        run=_diff,
        text="what a person gives more or less by one bundle than by another",
    ),
    Command(name="privacy amplify", run=_amplify, text="the central epsilon of a shuffled report"),
    CROWD,
    Command(
        name="privacy compose", run=_compose, text="what many reports or releases say together"
    ),
)
