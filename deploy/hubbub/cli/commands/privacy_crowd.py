"""`hubbub privacy crowd`: compute what a whole shuffled epoch reveals about one person."""

from dataclasses import replace
from math import inf, isfinite
from typing import Final

from hubbub.catalog import Crowd
from hubbub.catalog.crowds.crowd import NOISE, noise_of
from hubbub.cli.terminal.output import announced_if_long, explain, say_json
from hubbub.errors import BadParameter
from hubbub.errors.message_words import at_most, several
from hubbub.fields.rules import Interval
from hubbub.mechanisms.probability import MAX_EPSILON
from hubbub.privacy.amplification import DELTA
from hubbub.privacy.card import meaning
from hubbub.privacy.exact_accountant import ExactAccountant, crowd_of_promise, what_decides
from hubbub.privacy.fewest_dummies import best_noise
from hubbub.privacy.many_epochs import MAX_TIMES, composed_epsilon
from hubbub.privacy.shuffled_epoch import MAX_CATEGORIES, MAX_EACH, MAX_REPORTS, ShuffledEpoch
from hubbub.privacy.shuffled_histogram import central_epsilon, keeps
from hubbub.programs.command_line import command, number_or
from hubbub.programs.option_parsing import option, options

# Central epsilon of noise dummies if no promise is given.
_USUAL_CENTRAL: Final = 1.0


@options
class CrowdOptions:
    reports: int = option("number of reports in the epoch", within=Interval(1, MAX_REPORTS))
    values: int = option("number of values, or of hash buckets", within=Interval(2, MAX_CATEGORIES))
    hashes: int = option(
        "number of hash functions, for strings (%(default)s)",
        default=1,
        within=Interval(1, MAX_CATEGORIES),
    )
    local_epsilon: float | None = option(
        "privacy loss of one report, nats; inf if devices report the truth, which is the default "
        f"with --dummies {NOISE}",
        metavar="E",
        within=Interval(1e-09, inf),
    )
    central: float | None = option(
        f"central epsilon to be kept, nats; with --dummies {NOISE} {_USUAL_CENTRAL:g} by default",
        metavar="E",
        within=Interval(1e-09, MAX_EPSILON),
    )
    honest: float = option(
        "share of reports that come from honest devices (%(default)s)",
        default=1.0,
        within=Interval(1e-06, 1),
    )
    dummies: int | str = option(
        f"number of dummies with evenly spread values in the epoch; {NOISE}: a secret number for "
        "each value, drawn so that --central is kept (%(default)s)",
        default=0,
        parse=number_or(NOISE),
        metavar="N",
    )
    dummies_each: float = option(
        "average number of dummies per device (%(default)s)",
        default=0.0,
        within=Interval(0, MAX_EACH),
    )
    max_local: float | None = option(
        f"with --central: largest privacy loss of one report, nats ({MAX_EPSILON:g})",
        within=Interval(1e-09, MAX_EPSILON),
    )
    delta: float = option(
        "delta of the central guarantee (%(default)s)", default=DELTA, within=Interval(1e-15, 0.1)
    )
    epochs: int = option(
        "number of epochs in which a person reports; together they keep --central (%(default)s)",
        default=1,
        within=Interval(1, MAX_TIMES),
    )
    json: bool = option("print the figures as JSON")


@command(
    "privacy crowd",
    text="compute what a whole shuffled epoch reveals about one person",
    description="Computes the central epsilon of one person in an epoch of `grr` reports that "
    "leaves the shuffler whole. With --central it computes the largest local epsilon that keeps "
    f"this central epsilon, and with --dummies {NOISE} the noise that keeps it.",
)
def _crowd(options: CrowdOptions) -> None:
    if options.dummies != NOISE and not 0 <= int(options.dummies) <= MAX_REPORTS:
        raise BadParameter(f"--dummies {options.dummies} is outside [0, {MAX_REPORTS}]")
    both = options.local_epsilon is not None, options.central is not None
    if options.dummies != NOISE and all(both):
        raise BadParameter(
            f"--central and --local-epsilon need --dummies {NOISE} if given together: leave one out"
        )
    if options.dummies != NOISE and not any(both):
        raise BadParameter(
            "one of --local-epsilon and --central is needed: what a report reveals, or what the "
            "whole epoch may reveal"
        )
    if options.dummies == NOISE and options.max_local is not None:
        raise BadParameter(
            f"--max-local cannot be combined with --dummies {NOISE}: write it as --local-epsilon"
        )
    if options.max_local is not None and options.central is None:
        raise BadParameter("--max-local needs --central; it does not limit --local-epsilon")
    padded = options.dummies or options.dummies_each
    if options.hashes > 1 and (padded or options.values == 2):  # noqa: PLR2004 two
        raise BadParameter(
            f"--hashes {options.hashes} needs 3 or more --values (the buckets of each "
            "function), and no --dummies"
        )
    with announced_if_long(lambda: "computing what the crowd hides; this may take a minute"):
        crowd, central, composed = _crowd_and_epsilons(options)
    local = crowd.epsilon_local
    if options.json:
        document = {
            "epsilon_central": central if isfinite(central) else None,
            "delta": options.delta,
            "epsilon_local": local if isfinite(local) else None,
            "reports": crowd.reports,
            "categories": crowd.categories,
            "hashes": crowd.groups,
            "honest": crowd.honest,
            "dummies": crowd.dummies,
            "dummies_each": crowd.each,
            "epochs": options.epochs,
            "epsilon_all_epochs": composed if isfinite(composed) else None,
            "stderr_rare": crowd.stderr(0.0),
            "stderr_tenth": crowd.stderr(0.1),
        }
        if options.dummies == NOISE:  # the distribution of a value's dummies; 0 if none are needed
            shift = crowd.noise_dummies.reach if crowd.noise_dummies else 0
            scale = crowd.noise_dummies.scale if crowd.noise_dummies else 0.0
            document |= {"scale": scale, "shift": shift, "dummies_per_value": shift}
            document["stderr"] = crowd.stderr(0.0)
        say_json(document)
        return
    _tell(options, crowd, central, composed)


def _crowd_and_epsilons(options: CrowdOptions) -> tuple[ShuffledEpoch, float, float]:
    """The crowd, its central epsilon for one epoch, and for all epochs together."""
    local, promised = options.local_epsilon, options.central
    if options.dummies == NOISE:
        local = inf if local is None else local
        promised = _USUAL_CENTRAL if promised is None else promised
    if local is None:
        local = ExactAccountant().largest(_promise(options), options.values, options.hashes)
    crowd = crowd_of_promise(_promise(options), options.values, local, options.hashes)
    if options.dummies == NOISE and promised:
        law = best_noise(crowd, promised, options.delta, options.epochs)
        crowd = replace(crowd, noise_dummies=noise_of(*law))
    central = central_epsilon(crowd, options.delta)
    if options.epochs > 1:
        return crowd, central, composed_epsilon([(crowd, options.epochs)], options.delta)
    if promised and keeps(crowd, promised, options.delta):
        central = min(central, promised)  # whose root is found from above
    return crowd, central, central


def _promise(options: CrowdOptions) -> Crowd:
    """The promise to keep in all epochs together."""
    return Crowd(
        epsilon=options.central or 0.0,
        reports=options.reports,
        delta=options.delta,
        honest=options.honest,
        max_local_epsilon=MAX_EPSILON if options.max_local is None else options.max_local,
        dummies=0 if isinstance(options.dummies, str) else options.dummies,
        dummies_each=options.dummies_each,
        epochs=options.epochs,
    )


def _tell(options: CrowdOptions, crowd: ShuffledEpoch, central: float, composed: float) -> None:
    local = crowd.epsilon_local
    dummies = f" and {crowd.dummies:,} dummies" if crowd.dummies else ""
    if crowd.noise_dummies:
        shift, scale = crowd.noise_dummies.reach, crowd.noise_dummies.scale
        dummies = f" and 0 to {2 * shift} dummies of each value (shift {shift}, scale {scale:.4g})"
    dummies += f" with {crowd.each:g} dummies of each device" if crowd.each else ""
    explain(
        f"A whole epoch of {several(crowd.reports, 'report')}{dummies}, {crowd.honest:.0%} of them "
        f"honest, over {crowd.categories:,} "
        + (f"buckets of {crowd.groups:,} hash functions" if crowd.groups > 1 else "values")
    )
    after = at_most(central, ".6g")
    explain(f"epsilon of one person after the shuffler: {after} at delta {options.delta:g}")
    if options.epochs > 1:
        together = at_most(composed, ".6g")
        explain(f"of {options.epochs:,} such epochs together, as values may change: {together}")
    explain(f"epsilon of one report, even if all servers collude: {at_most(local, '.6g')}")
    explain(
        f"standard error of a rare value: {crowd.stderr(0.0):,.4g} reports; of a value held by a "
        f"tenth: {crowd.stderr(0.1):,.4g}" + (", and collisions" if crowd.groups > 1 else "")
    )
    explain(
        f"For a person, to someone who sees the shuffled reports (except with probability "
        f"{options.delta:g}): {meaning(central)}"
    )
    explain(
        "For a person, if the shuffler and the aggregator work together against them: "
        f"{meaning(local)}"
    )
    if options.central is not None and options.dummies != NOISE:
        promise = _promise(options)
        if sentence := what_decides(promise, local, composed, options.values, options.hashes):
            explain(sentence)
