"""`hubbub privacy`: the card of a catalog; what a crowd adds; what many events say together."""

import argparse
import json
import shlex
from dataclasses import asdict
from math import exp, isfinite
from pathlib import Path
from typing import Any, Final

from hubbub.catalog import SPANS, read_bundle
from hubbub.catalog.bundles.difference import differences
from hubbub.catalog.encoding import MALFORMED, read_json
from hubbub.cli.commands.privacy_crowd import add_crowd
from hubbub.cli.installation import DEMO_DEVICE
from hubbub.cli.terminal.catalog_reading import read_aloud
from hubbub.cli.terminal.difference_table import show_difference
from hubbub.cli.terminal.output import explain, say, table
from hubbub.cli.terminal.rendered_document import Document, Table
from hubbub.cli.terminal.review_page import leaflet_html, review_markdown
from hubbub.errors import BadParameter
from hubbub.errors.printable import visible
from hubbub.errors.text_files import read_text
from hubbub.privacy.amplification import ASSUMPTION, DELTA, Amplified, amplified
from hubbub.privacy.card import Card, card, max_posterior, meaning
from hubbub.privacy.composition import Event, compose
from hubbub.privacy.leaflet import leaflet
from hubbub.privacy.review import claims
from hubbub.privacy.verdict import verdict

_BAR: Final = 20


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `privacy` to the command line."""
    privacy = commands.add_parser("privacy")
    actions = privacy.add_subparsers(required=True, metavar="ACTION")
    shown = actions.add_parser("card", help="the privacy card of a catalog (also without `card`)")
    shown.add_argument(
        "catalog",
        type=Path,
        nargs="?",
        default=Path("metrics.toml"),
        help="the catalog (%(default)s)",
    )
    shown.add_argument(
        "--delta", type=float, default=DELTA, help="of central figures (%(default)s)"
    )
    shown.add_argument(
        "--format",
        choices=("table", "markdown", "html", "json"),
        default="table",
        help="of the output (%(default)s)",
    )
    shown.set_defaults(run=_card)
    _add_pages(actions)
    compared = actions.add_parser(
        "diff", help="what a person gives more or less by one bundle than by another"
    )
    compared.add_argument("old", type=Path, help="the bundle before")
    compared.add_argument("new", type=Path, help="the bundle after")
    compared.set_defaults(run=_diff)
    crowd = actions.add_parser("amplify", help="the central epsilon of a shuffled report")
    crowd.add_argument("--epsilon", type=float, required=True, help="of one report, nats")
    crowd.add_argument("--reports", type=int, required=True, help="in the batch")
    crowd.add_argument(
        "--delta", type=float, default=DELTA, help="of the central guarantee (%(default)s)"
    )
    crowd.add_argument(
        "--total-variation",
        type=float,
        metavar="V",
        help="between the payloads of two values, if the mechanism's is known to be smaller than "
        "epsilon allows",
    )
    crowd.add_argument("--json", action="store_true", help="as JSON")
    crowd.set_defaults(run=_amplify)
    add_crowd(actions)
    many = actions.add_parser("compose", help="what many reports or releases say together")
    many.add_argument(
        "--epsilon", type=float, action="append", default=[], help="of an event, nats (repeat)"
    )
    many.add_argument("--sigma", type=float, action="append", default=[], help="Gaussian (repeat)")
    many.add_argument("--times", type=int, default=1, help="of each (%(default)s)")
    many.add_argument(
        "--sampling", type=float, default=1.0, help="chance to be in it (%(default)s)"
    )
    many.add_argument("--history", type=Path, help="JSON list of events, instead or besides")
    many.add_argument("--delta", type=float, required=True, help="of all events together")
    many.add_argument("--json", action="store_true", help="as JSON")
    many.set_defaults(run=_compose)


def _add_pages(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the pages for reviewers, and for the people who are asked."""
    for name, run, purpose in (
        ("review", _review, "ten claims of a catalog, each with its command and its tests"),
        ("leaflet", _leaflet, "a page to print, for the people who are asked, as HTML"),
    ):
        shown = actions.add_parser(name, help=purpose)
        shown.add_argument(
            "catalog",
            type=Path,
            nargs="?",
            default=Path("metrics.toml"),
            help="the catalog (%(default)s)",
        )
        shown.set_defaults(run=run)


def _review(arguments: argparse.Namespace) -> int:
    name = shlex.quote(visible(str(arguments.catalog)))
    folder: Path = arguments.catalog.parent
    demo = shlex.quote(visible(str(folder))) if (folder / DEMO_DEVICE).is_dir() else ""
    say(review_markdown(claims(read_aloud(arguments.catalog), name, demo), name).rstrip())
    return 0


def _leaflet(arguments: argparse.Namespace) -> int:
    say(leaflet_html(leaflet(read_aloud(arguments.catalog))).rstrip())
    return 0


def _diff(arguments: argparse.Namespace) -> int:
    old, new = read_bundle(arguments.old), read_bundle(arguments.new)
    show_difference(f"From {arguments.old} to {arguments.new}", differences(old, new))
    return 0


def _card(arguments: argparse.Namespace) -> int:
    if not 0 < arguments.delta < 1:
        raise BadParameter(f"--delta {arguments.delta} is outside (0, 1)")
    made = card(read_aloud(arguments.catalog), arguments.delta)
    if arguments.format == "json":
        data = asdict(made)
        for metric, one in zip(data["metrics"], made.metrics, strict=True):
            metric["shuffled"] = amplified_json(one.shuffled)
        say(json.dumps(data, indent=1))
        return 0
    document = _document(made, arguments.catalog.name)
    if arguments.format == "table":
        document.show()
    else:
        say((document.markdown() if arguments.format == "markdown" else document.html()).rstrip())
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


def _amplify(arguments: argparse.Namespace) -> int:
    found = amplified(
        arguments.epsilon, arguments.reports, arguments.delta, arguments.total_variation
    )
    if arguments.json:
        say(json.dumps(amplified_json(found), indent=1))
        return 0
    explain(
        f"One report of epsilon {arguments.epsilon:g} among {arguments.reports:,} shuffled ones: "
        f"epsilon {found.epsilon:.6g} at delta {arguments.delta:g}"
    )
    explain(f"{ASSUMPTION}.")
    if arguments.total_variation is None:
        explain(
            "That holds whatever the mechanism is. A metric's own figure reckons with its "
            "mechanism and is often smaller: that is what its card and its estimates show."
        )
    explain(f"For a person: {meaning(found.epsilon)}")
    if isfinite(found.closed_form):
        explain(f"The published closed form gives {found.closed_form:.6g}.")
    return 0


def _compose(arguments: argparse.Namespace) -> int:
    events = [
        Event(e, sampling=arguments.sampling, times=arguments.times) for e in arguments.epsilon
    ]
    events += [
        Event(sigma=s, sampling=arguments.sampling, times=arguments.times) for s in arguments.sigma
    ]
    events += _history(arguments.history) if arguments.history else []
    found = compose(events, arguments.delta)
    if arguments.json:
        say(json.dumps({**asdict(found), "best": found.best}, indent=1))
        return 0
    lines = [
        ("basic: epsilons add up", found.basic),
        ("advanced (Dwork, Rothblum, Vadhan 2010)", found.advanced),
        ("Renyi divergences", found.rdp),
        ("privacy loss distributions", found.pld),
    ]
    table(
        f"{sum(event.times for event in events):,} events together, at delta {arguments.delta:g}",
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
