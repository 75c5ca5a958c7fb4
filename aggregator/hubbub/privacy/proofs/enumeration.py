"""The proofs: each checks one promise of any mechanism by enumerating every outcome.

They run over the shipping randomizers: in `make test`, on every machine by `hubbub audit`, and on
mechanisms broken on purpose, which must fail. They use small sizes; the same code and formulas run
at every size.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations
from math import prod

from hubbub.errors import ProofFailed
from hubbub.mechanisms import (
    REGISTRY,
    AnyMechanism,
    BitSource,
    KeyedBits,
    Memoized,
    Probability,
    build,
    tally,
)
from hubbub.mechanisms.probability import DIGITS, log_at_least


class Replay:
    """Answers the calls of one run along one path, and records where the path could fork."""

    def __init__(self, path: list[int]) -> None:
        self.path = path
        self.taken: list[tuple[int, int]] = []  # (branch, number of branches)
        # The chance of the path. Integers: a fraction would be reduced at every question.
        self.numerator = self.denominator = 1

    def _branch(self, branches: int) -> int:
        depth = len(self.taken)
        branch = self.path[depth] if depth < len(self.path) else 0
        self.taken.append((branch, branches))
        return branch

    # The methods of BitSource; each returns one of the answers still to be explored.

    def chance(self, probability: Probability, /) -> bool:
        return bool(self.mask(probability, 1))

    def below(self, limit: int, /) -> int:
        self.denominator *= limit
        return self._branch(limit)

    def mask(self, probability: Probability, width: int, /) -> int:
        threshold, denominator = probability.threshold, 1 << DIGITS
        if threshold in (0, denominator):  # no coin: no fork
            return ((1 << width) - 1) * (threshold >> DIGITS)
        bits = self._branch(1 << width)
        one_bits = bits.bit_count()
        self.numerator *= threshold**one_bits * (denominator - threshold) ** (width - one_bits)
        self.denominator <<= DIGITS * width
        return bits


class TooMany(Exception):
    """There are too many outcomes to enumerate."""


def distribution(run: Callable[[Replay], bytes], most: int | None = None) -> dict[bytes, Fraction]:
    """Exact probability of every possible output of `run`. Raises TooMany beyond `most` runs."""
    chances: dict[bytes, Counter[int]] = defaultdict(Counter)  # numerators by denominator
    path: list[int] = []
    walked = 0
    while True:
        source = Replay(path)
        output = run(source)
        walked += 1
        if most is not None:
            outcomes = prod(branches for _, branches in source.taken)
            if max(walked, outcomes) > most:
                raise TooMany
        chances[output][source.denominator] += source.numerator
        choices = source.taken
        while choices and choices[-1][0] == choices[-1][1] - 1:
            choices.pop()
        if not choices:
            return {
                output: sum((Fraction(*term[::-1]) for term in terms.items()), Fraction())
                for output, terms in chances.items()
            }
        path = [branch for branch, _ in choices]
        path[-1] += 1


# Estimates are floats of magnitude ~1; sums of ~2**13 of them keep 10 digits.
CLOSE = 1e-9

SMALL = [build(name, **small) for name in REGISTRY for small in REGISTRY[name].SMALL]


@cache
def rows(mechanism: AnyMechanism) -> list[dict[bytes, Fraction]]:
    """Exact distribution of the payloads of each probed value."""
    return [
        distribution(lambda coins, v=value: mechanism.randomize(v, coins))  # type: ignore[misc]
        for value in mechanism.probes()
    ]


def chances_sum_to_one(mechanism: AnyMechanism) -> None:
    """Proves that the probabilities of a value's payloads add up to 1."""
    hold(all(sum(row.values()) == 1 for row in rows(mechanism)), "chances do not sum to 1")


def payloads_have_one_length_and_fit_the_layout(mechanism: AnyMechanism) -> None:
    """Proves that the layout can read every payload, and that all have the same length."""
    layout = mechanism.layout
    for row in rows(mechanism):
        for payload in row:
            hold(len(payload) == layout.payload_bytes, "payloads differ in length")
            fits = all(0 <= cell < layout.size for cell in layout.cells(payload))
            hold(fits, "a payload adds to a cell that does not exist")


def worst_ratio_is_within_the_claim(mechanism: AnyMechanism) -> None:
    """Proves that no payload is more than exp(claim) times likelier from one value than another."""
    ratios_are_within_the_claim(rows(mechanism), mechanism)
    if hasattr(mechanism, "epsilon"):
        claim = mechanism.privacy_loss()
        hold(claim <= mechanism.epsilon, f"claims {claim:.6g}, above {mechanism.epsilon:g}")


def ratios_are_within_the_claim(
    law: Sequence[Mapping[bytes, Fraction]], mechanism: AnyMechanism
) -> None:
    """The same for given distributions of payloads, one for each value."""
    same = all(row.keys() == law[0].keys() for row in law)
    hold(same, "a payload that only some values can send distinguishes them")
    loss = log_at_least(_worst_ratio(law))
    claim = mechanism.privacy_loss()
    hold(loss <= claim * (1 + 2**-49), f"a report loses {loss:.6g} nats, above {claim:.6g}")


def claim_is_not_looser_than_a_thousandth(mechanism: AnyMechanism) -> None:
    """Proves that the claim is tight: a claim far above the truth wastes accuracy."""
    worst = _worst_ratio(rows(mechanism))
    claim = mechanism.privacy_loss()
    hold(math.log(worst) >= claim * 0.999, f"loses {math.log(worst):.6g}, claims {claim:.6g}")
    if hasattr(mechanism, "epsilon"):
        hold(claim >= mechanism.epsilon * 0.999, "claims less than it was given")


def estimate_is_unbiased(mechanism: AnyMechanism) -> None:
    """Proves that the expected estimate is the truth."""
    for value, moments in zip(mechanism.probes(), _moments(mechanism), strict=True):
        for truth, (mean, _) in zip(mechanism.row(value), moments, strict=True):
            right = math.isclose(mean, truth / mechanism.groups, abs_tol=CLOSE)
            hold(right, "the expected estimate is not the truth")


def variance_is_the_variance(mechanism: AnyMechanism) -> None:
    """Proves the variance of one report in a random group, by the law of total variance."""
    groups = mechanism.groups
    for value, moments in zip(mechanism.probes(), _moments(mechanism), strict=True):
        for true, (mean, square) in zip(mechanism.row(value), moments, strict=True):
            truth = float(true)
            claimed = (mechanism.variance(truth, 1) + truth**2) / groups - (truth / groups) ** 2
            right = math.isclose(square - mean * mean, claimed, rel_tol=CLOSE, abs_tol=CLOSE)
            hold(right, "the variance differs from the formula")


def likelihood_is_the_chance_up_to_a_factor(mechanism: AnyMechanism) -> None:
    """Proves that `hubbub ledger` applies Bayes' rule to the true probabilities of a payload."""
    values = list(mechanism.probes())
    first = rows(mechanism)[0]
    for value, row in zip(values, rows(mechanism), strict=True):
        for payload, chance in row.items():
            cells = mechanism.layout.cells(payload)
            ratio = mechanism.likelihood(value, cells) / mechanism.likelihood(values[0], cells)
            right = payload in first and chance / first[payload] == ratio
            hold(right, "the likelihood is not the chance")


def total_variation_is_within_the_claim(mechanism: AnyMechanism) -> None:
    """Proves the total variation; it is exact unless values are hashed and some differ less."""
    chances = [chance for row in rows(mechanism) for chance in row.values()]
    # Over one denominator they are integers, whose differences need not be reduced.
    denominator = math.lcm(*(chance.denominator for chance in chances))
    law = [
        {payload: int(chance * denominator) for payload, chance in row.items()}
        for row in rows(mechanism)
    ]
    differences = (
        sum(max(chance - other.get(payload, 0), 0) for payload, chance in row.items())
        for row, other in combinations(law, 2)
    )
    worst = Fraction(max(differences), denominator)
    hold(worst <= mechanism.total_variation(), "two values differ by more than is claimed")
    if mechanism.VALUES == "categories":
        hold(worst == mechanism.total_variation(), "two values differ by less than is claimed")


def permanent_response_bounds_every_report(mechanism: AnyMechanism) -> None:
    """Proves the claim for all reports, which depend on the value only through permanent bits."""
    if not isinstance(mechanism, Memoized):
        hold(not hasattr(mechanism, "permanent_loss"), "claims a permanent response without one")
        return
    rows = [
        # With a truthful second step the report is the permanent bits alone.
        distribution(
            lambda coins, v=value: mechanism.randomize_again(  # type: ignore[misc]
                v, _SingleSourceMemo(coins), _Truthful()
            )
        )
        for value in mechanism.probes()
    ]
    hold(all(row.keys() == rows[0].keys() for row in rows), "permanent bits distinguish values")
    worst = log_at_least(_worst_ratio(rows))
    claim = mechanism.permanent_loss()
    hold(worst <= claim * (1 + 2**-49), f"all reports lose {worst:.6g} nats, above {claim:.6g}")


def permanent_response_is_remembered(mechanism: AnyMechanism) -> None:
    """Proves that permanent coins come from the memory: fresh coins have the same law each time."""
    if not isinstance(mechanism, Memoized):
        return
    for value in mechanism.probes()[:2]:
        # With fixed permanent answers, only the second step is random.
        fresh = distribution(lambda coins, v=value: mechanism.randomize_again(v, _memory(), coins))  # type: ignore[misc]
        second = distribution(lambda coins, v=value: mechanism.randomize_again(v, _memory(), coins))  # type: ignore[misc]
        total_law = distribution(lambda coins, v=value: mechanism.randomize(v, coins))  # type: ignore[misc]
        hold(fresh == second and fresh != total_law, "the permanent response is drawn again")


PROOFS = (
    chances_sum_to_one,
    payloads_have_one_length_and_fit_the_layout,
    worst_ratio_is_within_the_claim,
    claim_is_not_looser_than_a_thousandth,
    estimate_is_unbiased,
    variance_is_the_variance,
    likelihood_is_the_chance_up_to_a_factor,
    total_variation_is_within_the_claim,
    permanent_response_bounds_every_report,
    permanent_response_is_remembered,
)
"""All of them; each raises ProofFailed."""


def hold(holds: bool, message: str) -> None:  # noqa: FBT001 what must hold
    """Raises ProofFailed with this message unless `holds`."""
    if not holds:
        raise ProofFailed(message)


def _worst_ratio(law: Sequence[Mapping[bytes, Fraction]]) -> Fraction:
    """Largest ratio of a payload's probabilities over two values that can send it."""
    chances = defaultdict(list)
    for row in law:
        for payload, chance in row.items():
            chances[payload].append(chance)
    return max(max(same) / min(same) for same in chances.values())


@cache
def _moments(mechanism: AnyMechanism) -> list[list[tuple[float, float]]]:
    """Mean and mean square of each estimate over one report's payloads, per probed value."""
    every_payload = {payload for row in rows(mechanism) for payload in row}
    estimates = {
        payload: mechanism.estimate(tally(mechanism.layout, [payload])).values
        for payload in every_payload
    }
    moments = []
    for row in rows(mechanism):
        columns = zip(*(estimates[payload] for payload in row), strict=True)
        weights = [float(chance) for chance in row.values()]
        moments.append(
            [
                (
                    math.fsum(w * x for w, x in zip(weights, column, strict=True)),
                    math.fsum(w * x * x for w, x in zip(weights, column, strict=True)),
                )
                for column in columns
            ]
        )
    return moments


class _SingleSourceMemo:
    """A memory that takes all permanent coins from one source."""

    def __init__(self, source: BitSource) -> None:
        self._source = source

    def coins(self, _purpose: bytes, /) -> BitSource:
        return self._source


class _Truthful:
    """A source whose coins always choose the truth: it keeps values and ones, and flips nothing."""

    def chance(self, _probability: Probability, /) -> bool:
        return True

    def below(self, _limit: int, /) -> int:
        return 0

    def mask(self, probability: Probability, width: int, /) -> int:
        return (1 << width) - 1 if probability.exact > Fraction(1, 2) else 0


def _memory() -> _SingleSourceMemo:
    """A memory that is the same in every report: its coins come from one key."""
    return _SingleSourceMemo(KeyedBits(bytes(32)))
