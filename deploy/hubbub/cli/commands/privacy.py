"""`hubbub privacy`: the card of a catalog; what a crowd adds; what many events say together."""

import argparse
import json
from dataclasses import asdict
from math import exp, isfinite
from pathlib import Path
from typing import Any

from hubbub.catalog import SPANS
from hubbub.catalog.encoding import MALFORMED, read_json
from hubbub.cli.terminal.document import Document, Table
from hubbub.cli.terminal.output import say, table
from hubbub.errors import BadParameter
from hubbub.mechanisms.probability import MAX_EPSILON
from hubbub.privacy.amplification import ASSUMPTION, DELTA, Amplified, amplified
from hubbub.privacy.card import Card, card, meaning
from hubbub.privacy.composition import Event, compose
from hubbub.privacy.crowd import read_planned
from hubbub.privacy.histogram import Crowd, central_epsilon, largest_local
from hubbub.privacy.many_epochs import composed_epsilon

__all__ = ["add"]


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `privacy` to the command line."""
    privacy = commands.add_parser("privacy", help="what a catalog reveals; amplify; compose")
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
    _add_crowd(actions)
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


def _add_crowd(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    crowd = actions.add_parser(
        "crowd",
        help="what a whole shuffled epoch says of one person",
        description="The central epsilon of one person in an epoch of `grr` reports that leaves "
        "the "
        "shuffler whole; or, with --central, the largest local epsilon that keeps such a promise.",
    )
    crowd.add_argument("--reports", type=int, required=True, help="in the epoch")
    crowd.add_argument(
        "--values", type=int, required=True, help="how many there are to choose from"
    )
    which = crowd.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "--local-epsilon", type=float, metavar="E", help="of one report, nats; inf: nobody lies"
    )
    which.add_argument("--central", type=float, metavar="E", help="the promise to be kept, nats")
    crowd.add_argument(
        "--honest", type=float, default=1.0, help="share of reports counted on (%(default)s)"
    )
    crowd.add_argument(
        "--dummies", type=int, default=0, help="evenly spread, added to it (%(default)s)"
    )
    crowd.add_argument(
        "--max-local", type=float, default=MAX_EPSILON, help="with --central (%(default)s)"
    )
    crowd.add_argument(
        "--delta", type=float, default=DELTA, help="of the central guarantee (%(default)s)"
    )
    crowd.add_argument(
        "--epochs", type=int, default=1, help="that one person reports in (%(default)s)"
    )
    crowd.add_argument("--json", action="store_true", help="as JSON")
    crowd.set_defaults(run=_crowd)


def _crowd(arguments: argparse.Namespace) -> int:
    local = arguments.local_epsilon
    if arguments.central is not None:
        if not 0 < arguments.central <= MAX_EPSILON:
            raise BadParameter(f"--central {arguments.central:g} is outside (0, {MAX_EPSILON}]")
        if not 0 < arguments.max_local <= MAX_EPSILON:
            raise BadParameter(f"--max-local {arguments.max_local:g} is outside (0, {MAX_EPSILON}]")
        local = largest_local(
            arguments.reports,
            arguments.values,
            arguments.central,
            arguments.delta,
            honest=arguments.honest,
            dummies=arguments.dummies,
            most=arguments.max_local,
        )
    crowd = Crowd(arguments.reports, arguments.values, local, arguments.honest, arguments.dummies)
    central = central_epsilon(crowd, arguments.delta)
    together = composed_epsilon([(crowd, arguments.epochs)], arguments.delta)
    rare, tenth = crowd.stderr(0.0), crowd.stderr(0.1)
    if arguments.json:
        found = {
            "epsilon_central": central if isfinite(central) else None,
            "delta": arguments.delta,
            "epsilon_local": local if isfinite(local) else None,
            "reports": crowd.reports,
            "categories": crowd.categories,
            "honest": crowd.honest,
            "dummies": crowd.dummies,
            "epochs": arguments.epochs,
            "epsilon_all_epochs": together if isfinite(together) else None,
            "stderr_rare": rare,
            "stderr_tenth": tenth,
        }
        say(json.dumps(found, indent=1))
        return 0
    dummies = f" and {crowd.dummies:,} dummies" if crowd.dummies else ""
    say(
        f"A whole epoch of {crowd.reports:,} reports{dummies}, {crowd.honest:.0%} of them honest, "
        f"over {crowd.categories:,} values"
    )
    say(
        f"epsilon of one person, to who sees it shuffled: {central:.6g} at delta "
        f"{arguments.delta:g}"
    )
    if arguments.epochs > 1:
        say(f"of {arguments.epochs:,} such epochs together, as values may change: {together:.6g}")
    say(f"epsilon of one report, whoever works together:  {local:.6g}")
    say(
        f"standard error of a rare value: {rare:,.4g} reports; of one that a tenth holds: "
        f"{tenth:,.4g}"
    )
    say(f"For a person: {meaning(central)}")
    return 0


def _card(arguments: argparse.Namespace) -> int:
    if not 0 < arguments.delta < 1:
        raise BadParameter(f"--delta {arguments.delta} is outside (0, 1)")
    made = card(read_planned(arguments.catalog), arguments.delta)
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
            "" if one.unchanged is None else f"{one.unchanged:.3f}",
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
        "Epsilons in nats, all upper bounds, of a person who takes part.",
        Table("What each metric can say about one person", header, rows, text_columns=2),
        (
            "shuffled: one report, as who sees shuffled batches alone can tell, as epsilon at "
            f"delta {made.delta:g}, in the smallest batch that is forwarded; {made.assumption}."
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
        *made.sentences,
        *(f"{one.name}: {one.description}. {one.sentence}" for one in made.metrics),
    ]
    return document


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
    say(
        f"One report of epsilon {arguments.epsilon:g} among {arguments.reports:,} shuffled ones: "
        f"epsilon {found.epsilon:.6g} at delta {arguments.delta:g}"
    )
    say(f"{ASSUMPTION}.")
    say(f"For a person: {meaning(found.epsilon)}")
    if isfinite(found.closed_form):
        say(f"The published closed form gives {found.closed_form:.6g}.")
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
        return [Event(**entry) for entry in read_json(path.read_bytes())]
    except (OSError, *MALFORMED) as error:
        raise BadParameter(
            f'--history {path}: not a JSON list of events such as {{"epsilon": 0.5}}: {error}'
        ) from error
