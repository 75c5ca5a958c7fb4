"""The audit: all proofs on the installed code, and attacks on every metric of a catalog.

Three parts. The coins: the bit source, digit by digit. The proofs: every mechanism at small sizes,
and every metric's own parameters if all its outcomes can be enumerated. The attacks, with real
coins:

    one report        at most its claim; for a model, with some books of its pool
    a second report   of the same person, whose value may have changed: at most one report's claim
    a judge's report  of a model that devices evaluate: at most one report's claim
    many reports      of one unchanged value: at most the permanent response's claim
    a whole epoch     of a metric with a central promise: at most the promise, and at most its
                      account at a delta where an attack comes close; also by the sum of dummies

All attacks together raise a false alarm with a probability below ALARM.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from itertools import count, product
from typing import Any, Final
from unittest.mock import patch

import numpy as np

from hubbub.analysis.families import family_for
from hubbub.catalog import Metric
from hubbub.catalog.crowds.noise_dummies import value_noise
from hubbub.catalog.models.model_metric import evaluation_report, judging
from hubbub.errors import HubbubError, ProofFailed
from hubbub.errors.message_words import at_least, at_most
from hubbub.mechanisms import AnyMechanism, BitSource, Memo, Memoized, Probability, random_bits
from hubbub.mechanisms.probability import DIGITS
from hubbub.mechanisms.vector_codes import VectorCodes
from hubbub.privacy.crowd_guarantees import smallest_crowd
from hubbub.privacy.proofs.distinguishing_attack import (
    COUNTS,
    SUM,
    Attacked,
    Draw,
    Reports,
    attack,
    attack_epochs,
    draw_neighbours,
    draw_sums,
)
from hubbub.privacy.proofs.enumeration import (
    PROOFS,
    TooMany,
    distribution,
    hold,
    ratios_are_within_the_claim,
)
from hubbub.privacy.shuffled_histogram import central_epsilon

_THRESHOLDS: Final = (1, 3, 2**32 + 1, 2**53 + 1, 2**63 - 1, 2**63 + 1, 2**64 - 1)
_HALF: Final = Probability.at_most(Fraction(1, 2))


def prove_coins(source: BitSource) -> None:
    """Proves a source that draws from the operating system; raises ProofFailed.

    Only the system's random bits are replaced, for the duration of a call; the comparisons are the
    shipping ones. A source that compares floats, uses too few digits, uses another generator or
    repeats itself does not pass.
    """
    for threshold in _THRESHOLDS:
        for fraction, expected in ((threshold - 1, True), (threshold, False)):
            with _drawing(fraction, DIGITS):
                hold(
                    source.chance(Probability(threshold)) is expected,
                    "a chance is not compared with all 64 digits of its probability",
                )
            # A mask takes the most significant digits first.
            with _drawing(int(f"{fraction:0{DIGITS}b}"[::-1], 2), DIGITS):
                hold(
                    source.mask(Probability(threshold), 1) == int(expected),
                    "a mask is not compared with all 64 digits of its probability",
                )
    for sixteenths, width in product(range(17), (1, 2)):
        probability = Probability.at_most(Fraction(sixteenths, 16))
        chances = dict.fromkeys(range(1 << width), Fraction(0))
        for supply in range(1 << 4 * width):
            with _drawing(supply, 4 * width):
                chances[source.mask(probability, width)] += Fraction(1, 1 << 4 * width)
        for mask, chance in chances.items():
            one_bits = mask.bit_count()
            exact = probability.exact**one_bits * (1 - probability.exact) ** (width - one_bits)
            hold(chance == exact, "the bits of a mask do not have exactly their chance")
    three = 3  # the first of these draws that is below 5
    with _drawing(0b011_101_110_111, 12):
        hold(source.below(5) == three, "a number below a limit is folded over, not drawn again")
    masks = {source.mask(_HALF, 256) for _ in range(64)}
    hold(len(masks) == 64, "the source repeats its coins")  # noqa: PLR2004 as drawn


@contextmanager
def _drawing(supply: int, width: int) -> Iterator[None]:
    """Context in which the operating system returns these bits, lowest first, and no more."""
    stock = [supply, width]

    def draw(bit_count: int) -> int:
        drawn = stock[0] & ((1 << bit_count) - 1)
        stock[0] >>= bit_count
        stock[1] -= bit_count
        hold(stock[1] >= 0, "more digits are drawn than the answer needs")
        return drawn

    with patch.object(random_bits, "_system", draw):
        yield


ALARM: Final = 1e-6
"""The chance, at most, that an audit of honest mechanisms fails."""

# Reports that an attacker has of one unchanged value; people whose reports they are, beside others.
_REPEATED: Final = 30
_FEWER_PEOPLE: Final = 4
# Outcomes that are walked of a metric's own mechanism, over all its values.
_WALKED: Final = 200_000
# Books of a model's pool that its reports are drawn of: each takes its words, and all in order.
_BOOKS: Final = 4
# Whole epochs that are drawn of each of two neighbours: a second's work.
_EPOCHS: Final = 2_000_000
# Whole epochs whose dummies have a fixed sum, of each: some seconds.
_SUMS: Final = 60_000
# A delta at which so many epochs come near to what an account says.
_NEAR: Final = 0.01
NOT_WALKED: Final = "own parameters, not walked"
"""The kind of a check that was skipped."""

Devices = Callable[[str], Memo]
"""A new device's memory of its permanent coins, for a metric of this name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check and whether it passed. `lower` and `claim`, in nats, are of an attack."""

    what: str
    kind: str
    passed: bool
    detail: str
    lower: float | None = None
    claim: float | None = None


Step = Check | None
"""What an audit yields: a check that is done, or None for a step on the way."""


def audit_coins(source: BitSource) -> Check:
    """Proves the coin source."""
    return _check_result("the coin source", "proof", lambda: prove_coins(source))


def audit_proofs(mechanisms: Sequence[AnyMechanism]) -> Iterator[Check]:
    """Runs every proof on each of these mechanisms, which must be small."""
    for mechanism in mechanisms:
        for proof in PROOFS:
            name = proof.__name__.replace("_", " ")
            yield _check_result(repr(mechanism), name, lambda p=proof, m=mechanism: p(m))  # type: ignore[misc]


def steps_of(metric: Metric, observations: int) -> int:
    """Number of steps that `audit_metric` yields."""
    attacks = [observations, observations // (_FEWER_PEOPLE if metric.memoized else 1)]
    if metric.model and not metric.model.held_out:
        attacks.pop()  # of the second report; in place of it those who judge are attacked
    whole_epochs = 4 + (2 if metric.crowd and metric.crowd.dummies_sum_scale else 0)
    steps = sum(2 * (size // 2) for size in attacks) + 4
    return steps + (whole_epochs if _has_counts(metric) else 0)


def _has_counts(metric: Metric) -> bool:
    """Whether whole epochs are attacked: if each value has one cell for its count."""
    return metric.central is not None and family_for(metric.randomizer).COUNTS_BY_CELL


def audit_metric(
    metric: Metric,
    source: BitSource,
    devices: Devices,
    observations: int,
    alarm: float,
) -> Iterator[Step]:
    """Audits the metric's own mechanism: enumerates it if possible, and attacks it.

    `observations` is the number of people whose reports are drawn, per value; `alarm` bounds the
    probability that an honest metric fails.
    """
    yield _check_by_walk(metric)
    if _has_counts(metric):
        alarm /= 2
        yield from _whole_epochs(metric, source, alarm)
    if metric.model and metric.model.held_out:
        alarm /= 2
        yield from _judges(metric, source, observations, alarm)
    under_attack = partial(
        _attack_reports,
        metric,
        values=family_for(metric.randomizer).far_apart(metric.randomizer),
        observations=observations,
        claim=metric.report_loss,
        alarm=alarm / 2,
    )
    if metric.model:  # one report for life
        codes = _few_books(metric.randomizer)
        kind = f"one report, by {codes.books} of its books"
        yield from under_attack(
            kind, lambda value: (codes.randomize(value, source),), mechanism=codes
        )
        return
    once = _report(metric, source)
    yield from under_attack("one report", lambda value: (once(devices(metric.name), value),))
    if metric.memoized is None:
        first, _ = family_for(metric.randomizer).far_apart(metric.randomizer)

        def after_another(value: Any) -> Reports:
            device = devices(metric.name)
            return once(device, first), once(device, value)

        yield from under_attack("a second report", after_another)
        return
    yield _check_result(metric.name, "a device's memory", lambda: _remembers(metric.name, devices))

    def again_and_again(value: Any) -> Reports:
        device = devices(metric.name)
        return tuple(once(device, value) for _ in range(_REPEATED))

    yield from under_attack(
        f"{_REPEATED} reports of one value",
        again_and_again,
        observations=observations // _FEWER_PEOPLE,
        claim=metric.lifetime_loss,
    )


class _FewBooks(VectorCodes):
    """Codes that order the words of a book once for each vector. All coins are the mechanism's."""

    def order(self, value: Sequence[float], number: int) -> list[int]:
        return _order_values(self, tuple(value), number)


@lru_cache(maxsize=256)
def _order_values(codes: VectorCodes, value: tuple[float, ...], number: int) -> list[int]:
    return VectorCodes.order(codes, value, number)


def _few_books(codes: Any) -> _FewBooks:
    """The same codes with few books, made quickly; each book shows what distinguishes vectors."""
    return _FewBooks(
        epsilon=codes.epsilon,
        dimensions=codes.dimensions,
        words=codes.words,
        books=min(codes.books, _BOOKS),
        seed=codes.seed,
    )


def _remembers(name: str, devices: Devices) -> None:
    """Proves that a device's permanent coins never change, and differ from another device's."""
    purpose, half_chance = b"permanent of the audit", Probability.at_most(Fraction(1, 2))
    device, other = devices(name), devices(name)
    drawn = [memory.coins(purpose).mask(half_chance, 256) for memory in (device, device, other)]
    if drawn[0] != drawn[1]:
        raise ProofFailed("a device draws its permanent coins again")
    if drawn[0] == drawn[2]:
        raise ProofFailed("two devices have the same permanent coins")


def _report(metric: Metric, source: BitSource) -> Callable[[Memo, Any], bytes]:
    """Function that makes one payload of a device, as the client does."""
    mechanism = metric.randomizer
    if isinstance(mechanism, Memoized):
        return lambda device, value: mechanism.randomize_again(value, device, source)
    return lambda _device, value: mechanism.randomize(value, source)


def _judges(metric: Metric, source: BitSource, observations: int, alarm: float) -> Iterator[Step]:
    """Attacks reports of a model's judges: lowest bin without the label, highest with it."""
    mechanism = judging(metric)
    edges = [float(edge) for edge in range(mechanism.categories // 2 - 1)]
    people = {0: (-1.0, 0.0), mechanism.categories - 1: (edges[-1] + 1, 1.0)}

    def draw(value: int) -> Reports:
        sent = evaluation_report(metric, *people[value], edges, source)
        [category] = metric.randomizer.layout.cells(sent)
        return (mechanism.layout.encode(category),)

    yield from _attack_reports(
        metric,
        "a judge's report",
        draw,
        values=(0, mechanism.categories - 1),
        observations=observations,
        claim=metric.report_loss,
        alarm=alarm,
        mechanism=mechanism,
    )


def _attack_reports(
    metric: Metric,
    kind: str,
    draw: Draw,
    *,
    values: tuple[Any, Any],
    observations: int,
    claim: float,
    alarm: float,
    mechanism: AnyMechanism | None = None,
) -> Iterator[Step]:
    """Attacks reports of two values; `mechanism` drew them, if it is not the metric's own."""
    for result in attack(
        mechanism or metric.randomizer,
        values,
        draw,
        observations=observations,
        claim=claim,
        alarm=alarm,
    ):
        yield None if result is None else _attack_check(metric, kind, result, claim)


def _attack_check(metric: Metric, kind: str, result: Attacked, claim: float) -> Check:
    lower = max(result.lower, 0.0)
    text = (
        f"shows at least {at_least(lower, '.3f')} of {at_most(claim, '.3f')} claimed "
        f"(if all of it were spent, these draws would show about {max(result.reach, 0):.3f}); "
        f"by {result.event}"
    )
    return Check(
        what=metric.name, kind=kind, passed=lower <= claim, detail=text, lower=lower, claim=claim
    )


def _whole_epochs(metric: Metric, source: BitSource, alarm: float) -> Iterator[Step]:
    """Attacks the smallest crowd that ever leaves: its promise, and its account at `_NEAR`."""
    crowd, promise = smallest_crowd(metric), metric.central
    assert crowd is not None  # noqa: S101 there is a promise
    assert promise is not None  # noqa: S101 as above
    chance = np.random.default_rng(source.below(1 << 63))
    first, other, third = _neighbours(metric)
    # Where lies are few, everybody else at one of the two values tells more than at a third one;
    # of two values there is no third.
    attacks = [
        (others, COUNTS, partial(draw_neighbours, metric.randomizer, crowd, values, _EPOCHS))
        for others, values in (
            ("others apart", (first, other, third)),
            ("others alike", (first, other, other)),
        )
    ]
    if (noise := value_noise(metric)) and noise.of_sum:
        attacks.append(("its dummies' sum", SUM, partial(draw_sums, noise, _SUMS)))
    claims = (promise.delta, promise.epsilon), (_NEAR, central_epsilon(crowd, _NEAR))
    alarm /= len(attacks) * len(claims)
    for what, event, draw in attacks:
        drawn = draw(chance)
        for delta, claim in claims:
            result = attack_epochs(drawn, delta=delta, claim=claim, alarm=alarm, event=event)
            yield _attack_check(metric, f"a whole epoch, {what}, delta {delta:g}", result, claim)


def _neighbours(metric: Metric) -> tuple[Any, Any, Any]:
    """Two values that reports distinguish, and everybody else's: a third one if there are three."""
    mechanism: Any = metric.randomizer
    if mechanism.VALUES == "strings":
        strings: dict[int, str] = {}
        for number in count():
            string = f"string {number}"
            strings.setdefault(mechanism.positions(string)[0], string)
            if len(strings) == 3:  # noqa: PLR2004 a crowd has as many buckets at least
                break
        first, other, third = strings.values()
        return first, other, third
    if mechanism.VALUES == "vectors":
        first, other, third, *_ = mechanism.probes()
        return first, other, third
    first, other = family_for(mechanism).far_apart(mechanism)
    if mechanism.layout.size == 2:  # noqa: PLR2004 two values
        return first, other, other
    if mechanism.VALUES == "numbers":
        return first, other, (mechanism.low + mechanism.high) / 2
    return first, other, 1


def _check_by_walk(metric: Metric) -> Check:
    """Checks the worst ratio of the metric's own mechanism, if it has few enough outcomes."""
    mechanism = metric.randomizer
    probes = list(mechanism.probes())
    # A pool of words has more outcomes than are walked, and each takes its book.
    most = 0 if mechanism.VALUES == "vectors" else _WALKED // len(probes)
    try:
        rows = [
            distribution(lambda coins, v=value: mechanism.randomize(v, coins), most)  # type: ignore[misc]
            for value in probes
        ]
    except TooMany:
        text = "too many outcomes to walk: its code is proven at small sizes"
        return Check(what=metric.name, kind=NOT_WALKED, passed=True, detail=text)
    return _check_result(
        metric.name,
        "own parameters",
        lambda: ratios_are_within_the_claim(rows, mechanism),
        "every outcome walked: sound",
    )


def _check_result(what: str, kind: str, prove: Callable[[], None], sound: str = "sound") -> Check:
    try:
        prove()
    except HubbubError as error:
        return Check(what=what, kind=kind, passed=False, detail=str(error))
    return Check(what=what, kind=kind, passed=True, detail=sound)
