"""`hubbub privacy crowd`: what a whole shuffled epoch says of one person."""

import argparse
import json
from math import inf, isfinite
from typing import Final

from hubbub.catalog import CentralPromise
from hubbub.cli.terminal.bounds import refuse_outside
from hubbub.cli.terminal.long_work import said_if_long
from hubbub.cli.terminal.output import explain, say, several
from hubbub.errors import BadParameter
from hubbub.mechanisms.probability import MAX_EPSILON
from hubbub.privacy.amplification import DELTA
from hubbub.privacy.card import meaning
from hubbub.privacy.crowd import ExactAccountant, what_decides
from hubbub.privacy.many_epochs import MAX_TIMES, composed_epsilon
from hubbub.privacy.shuffled_epoch import MAX_CATEGORIES, MAX_EACH, MAX_REPORTS, ShuffledEpoch
from hubbub.privacy.shuffled_histogram import central_epsilon

_LIMITS: Final = {
    "reports": (1, MAX_REPORTS),
    "values": (2, MAX_CATEGORIES),
    "local_epsilon": (1e-9, inf),
    "central": (1e-9, MAX_EPSILON),
    "max_local": (1e-9, MAX_EPSILON),
    "honest": (1e-6, 1),
    "dummies": (0, MAX_REPORTS),
    "dummies_each": (0, MAX_EACH),
    "delta": (1e-15, 0.1),
    "hashes": (1, MAX_CATEGORIES),
    "epochs": (1, MAX_TIMES),
}


def add_crowd(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add it to the actions of `hubbub privacy`."""
    crowd = actions.add_parser(
        "crowd",
        help="what a whole shuffled epoch says of one person",
        description="The central epsilon of one person in an epoch of `grr` reports that leaves "
        "the "
        "shuffler whole; or, with --central, the largest local epsilon that keeps such a promise.",
    )
    crowd.add_argument("--reports", type=int, required=True, help="in the epoch")
    crowd.add_argument(
        "--values", type=int, required=True, help="how many there are to choose from; or buckets"
    )
    crowd.add_argument(
        "--hashes",
        type=int,
        default=1,
        help="hash functions, of strings in so many buckets each (%(default)s)",
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
        "--dummies-each", type=float, default=0.0, help="by every device, on average (%(default)s)"
    )
    crowd.add_argument("--max-local", type=float, help=f"with --central ({MAX_EPSILON:g})")
    crowd.add_argument(
        "--delta", type=float, default=DELTA, help="of the central guarantee (%(default)s)"
    )
    crowd.add_argument(
        "--epochs",
        type=int,
        default=1,
        help="that one person reports in, which keep --central all together (%(default)s)",
    )
    crowd.add_argument("--json", action="store_true", help="as JSON")
    crowd.set_defaults(run=_crowd)


def _crowd(arguments: argparse.Namespace) -> int:
    refuse_outside(arguments, _LIMITS)
    if arguments.max_local is not None and arguments.central is None:
        raise BadParameter("--max-local goes with --central: a --local-epsilon is what it is")
    padded = arguments.dummies or arguments.dummies_each
    if arguments.hashes > 1 and (padded or arguments.values == 2):  # noqa: PLR2004 two
        raise BadParameter(
            f"--hashes {arguments.hashes} goes with 3 --values or more, which are the buckets of "
            "each, and with no --dummies"
        )
    with said_if_long(lambda: "working out what the crowd hides, which may take half a minute"):
        crowd, central, together = _worked_out(arguments)
    local = crowd.epsilon_local
    if arguments.json:
        found = {
            "epsilon_central": central if isfinite(central) else None,
            "delta": arguments.delta,
            "epsilon_local": local if isfinite(local) else None,
            "reports": crowd.reports,
            "categories": crowd.categories,
            "hashes": crowd.groups,
            "honest": crowd.honest,
            "dummies": crowd.dummies,
            "dummies_each": crowd.each,
            "epochs": arguments.epochs,
            "epsilon_all_epochs": together if isfinite(together) else None,
            "stderr_rare": crowd.stderr(0.0),
            "stderr_tenth": crowd.stderr(0.1),
        }
        say(json.dumps(found, indent=1))
        return 0
    _tell(arguments, crowd, central, together)
    return 0


def _worked_out(arguments: argparse.Namespace) -> tuple[ShuffledEpoch, float, float]:
    """The crowd, what it says of one person, and what all epochs say together."""
    local = arguments.local_epsilon
    if arguments.central is not None:
        local = ExactAccountant().largest(_promise(arguments), arguments.values, arguments.hashes)
    crowd = ShuffledEpoch(
        *(arguments.reports, arguments.values, local),
        *(arguments.honest, arguments.dummies, arguments.hashes, arguments.dummies_each),
    )
    central = central_epsilon(crowd, arguments.delta)
    together = composed_epsilon([(crowd, arguments.epochs)], arguments.delta)
    return crowd, central, together


def _promise(arguments: argparse.Namespace) -> CentralPromise:
    """What is to be kept, by all epochs together."""
    return CentralPromise(
        *(arguments.central, arguments.reports, arguments.delta, arguments.honest),
        *(_most(arguments), arguments.dummies, arguments.dummies_each, arguments.epochs),
    )


def _most(arguments: argparse.Namespace) -> float:
    """The largest local epsilon that is asked for."""
    return MAX_EPSILON if arguments.max_local is None else float(arguments.max_local)


def _tell(
    arguments: argparse.Namespace, crowd: ShuffledEpoch, central: float, together: float
) -> None:
    """The same in words."""
    local = crowd.epsilon_local
    dummies = f" and {crowd.dummies:,} dummies" if crowd.dummies else ""
    dummies += f" with {crowd.each:g} dummies of each device" if crowd.each else ""
    explain(
        f"A whole epoch of {several(crowd.reports, 'report')}{dummies}, {crowd.honest:.0%} of them "
        f"honest, over {crowd.categories:,} "
        + (f"buckets of {crowd.groups:,} hash functions" if crowd.groups > 1 else "values")
    )
    explain(
        f"epsilon of one person, to who sees it shuffled: {central:.6g} at delta "
        f"{arguments.delta:g}"
    )
    if arguments.epochs > 1:
        explain(
            f"of {arguments.epochs:,} such epochs together, as values may change: {together:.6g}"
        )
    explain(f"epsilon of one report, whoever works together:  {local:.6g}")
    explain(
        f"standard error of a rare value: {crowd.stderr(0.0):,.4g} reports; of one that a tenth "
        f"holds: {crowd.stderr(0.1):,.4g}" + (", and collisions" if crowd.groups > 1 else "")
    )
    explain(
        f"For a person, to who sees it shuffled (but for a chance of {arguments.delta:g} that it "
        f"says more): {meaning(central)}"
    )
    explain(
        "For a person, if the shuffler and the aggregator work together against them: "
        f"{meaning(local)}"
    )
    if arguments.central is not None:
        cells = arguments.values, arguments.hashes
        said = what_decides(_promise(arguments), local, together, *cells)
        if said:
            explain(said)
