"""Crowds: what a central promise costs in error, as drawn and as measured, and what others cost.

Each row is one question, asked of so many people in one epoch that leaves whole: `grr` with the
largest local epsilon that central epsilon 1 allows. Epochs are drawn from the exact law, 10,000 or,
of wide questions, 2,000; 20 are made of reports that the shipping code randomizes, counts and
estimates, and of some questions all is real: sealing, the shuffler's pool and mix, the aggregator's
answer.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import sqrt
from typing import Final

import numpy as np

from benchmarks.noisy_crowds import noisy_crowd, noisy_epochs
from benchmarks.served_crowds import CENTRAL, DELTA, Counts, Floats, served
from hubbub.aggregator.ingest.fold import fold
from hubbub.analysis.families import draw
from hubbub.analysis.families.listed_values import estimates_of
from hubbub.mechanisms import AnyMechanism, SystemBits, Totals, build
from hubbub.mechanisms.probability import MAX_EPSILON
from hubbub.privacy.amplification import amplified
from hubbub.privacy.shuffled_epoch import ShuffledEpoch
from hubbub.privacy.shuffled_histogram import largest_local

QUESTIONS: Final = (
    (1_000, 2),
    (1_000, 16),
    (10_000, 2),
    (10_000, 16),
    (10_000, 4096),
    (100_000, 16),
    (100_000, 256),
    (100_000, 65_536),
    (1_000_000, 16),
    (1_000_000, 65_536),
)
HEADER: Final = (
    "people",
    "values",
    "local epsilon",
    "stderr, rare",
    "drawn / claimed",
    "stderr, held by 10%",
    "drawn / claimed",
    "randomized / claimed",
    "10%, of any so many people",
    "unary.oue alone, epsilon 1",
    "best alone, epsilon 1",
    "in batches of 1,000, central 1",
    "central Laplace",
    "noise dummies: stderr, rare",
    "over central Laplace",
    "drawn / claimed",
    "held by 10%: drawn / claimed",
    "through the services",
)
_DRAWN: Final = 10_000
_DRAWN_WIDE: Final = 2_000
_WIDE: Final = 1000  # values
_REPEATED_EPOCHS: Final = 20
_TENTHS: Final = 10  # values that a tenth holds: so many errors an epoch are as surely known
# Questions whose reports go the whole way, and in how many epochs.
_SERVED: Final = {
    (1_000, 2): _REPEATED_EPOCHS,
    (1_000, 16): _REPEATED_EPOCHS,
    (10_000, 2): _REPEATED_EPOCHS,
    (10_000, 16): _REPEATED_EPOCHS,
    (100_000, 256): 1,
}
_SERVED_NOISE: Final = {(1_000, 16): _REPEATED_EPOCHS}
_NOISE: Final = 'dummies = "noise"'
_BATCH: Final = 1_000
_FINE: Final = 0.01  # of a local epsilon
_ALONE: Final = ("unary.oue", "grr", "subset")
_LAPLACE: Final = sqrt(2) * 2 / CENTRAL  # a changed answer moves two counts by one


@dataclass(frozen=True, slots=True)
class _Errors:
    """Root mean squares of errors over what is claimed: of values nobody holds, and of the 10%."""

    rare: float
    tenth: float


def crowds() -> Iterator[tuple[str, ...]]:
    """Cells of the table, under HEADER."""
    for people, values in QUESTIONS:
        if sys.stderr.isatty():
            print(f"measuring: a crowd of {people:,}, {values:,} values ...", file=sys.stderr)
        crowd = ShuffledEpoch(reports=people, categories=values, epsilon_local=MAX_EPSILON)
        epsilon = largest_local(crowd, CENTRAL, DELTA)
        crowd = replace(crowd, epsilon_local=epsilon)
        true_counts = _true_counts(people, values)
        mechanism = build("grr", epsilon=epsilon, categories=values)
        drawn = _errors(crowd, true_counts, _drawn_estimates(mechanism, true_counts))
        nobodys, tenths = int((true_counts == 0).sum()), int((true_counts == true_counts[-1]).sum())
        epochs = _SERVED.get((people, values), 0)
        estimates = (
            served(people, values, true_counts, epochs)
            if epochs
            else _simulated_estimates(mechanism, true_counts)
        )
        together = _ratio_text(
            _one_error(_errors(crowd, true_counts, estimates), values),
            epochs or _REPEATED_EPOCHS,
            nobodys or 1,
        )
        whole = f" (services, {epochs} epoch{'s' * (epochs > 1)})" if epochs else ""
        many = _DRAWN if values < _WIDE else _DRAWN_WIDE
        yield (
            f"{people:,}",
            f"{values:,}",
            f"{epsilon:.3f}",
            f"{crowd.stderr(0):.2f}",
            _ratio_text(drawn.rare, many, nobodys) if nobodys else "",
            f"{crowd.stderr(0.1):.1f}",
            _ratio_text(drawn.tenth, many, tenths),
            together + whole,
            f"{sqrt(people * 0.1 * 0.9):,.0f}",
            f"{_lone_error(people, values, 1.0, _ALONE[:1]):,.0f}",
            f"{_lone_error(people, values, 1.0):,.0f}",
            f"{_in_batches(people, values):,.0f}",
            f"{_LAPLACE:.1f}",
            *_noise_dummy_cells(people, values, true_counts),
        )


def _noise_dummy_cells(people: int, values: int, true_counts: Counts) -> tuple[str, ...]:
    """The cells of noise dummies; empty of too many values."""
    crowd = noisy_crowd(people, values)
    if crowd is None:
        return ("",) * 5
    nobodys, tenths = int((true_counts == 0).sum()), int((true_counts == true_counts[-1]).sum())
    drawn = _errors(
        crowd, true_counts, noisy_epochs(crowd, true_counts, _DRAWN_WIDE, np.random.default_rng(20))
    )
    epochs = _SERVED_NOISE.get((people, values), 0)
    whole = ""
    if epochs:
        errors = _errors(crowd, true_counts, served(people, values, true_counts, epochs, _NOISE))
        whole = f"{_ratio_text(_one_error(errors, values), epochs, nobodys or 1)} ({epochs} epochs)"
    return (
        f"{crowd.stderr(0):.2f}",
        f"{crowd.stderr(0) / _LAPLACE:.3f}",
        _ratio_text(drawn.rare, _DRAWN_WIDE, nobodys) if nobodys else "",
        _ratio_text(drawn.tenth, _DRAWN_WIDE, tenths),
        whole,
    )


def _true_counts(people: int, values: int) -> Counts:
    """A tenth of the people hold each of the last ten values; of two, a tenth the last."""
    counts = np.zeros(values, dtype=np.int64)
    counts[-min(_TENTHS, values - 1) :] = people // 10
    counts[0] += people - counts.sum()
    return counts


def _drawn_estimates(mechanism: AnyMechanism, true_counts: Counts) -> Iterator[Floats]:
    """Estimates of epochs drawn from the exact law."""
    chance = np.random.default_rng(19)
    some = np.flatnonzero(true_counts)
    for _ in range(_DRAWN if len(true_counts) < _WIDE else _DRAWN_WIDE):
        totals = draw(mechanism, some.tolist(), true_counts[some].tolist(), chance)
        yield estimates_of(mechanism, totals)[0]


def _simulated_estimates(mechanism: AnyMechanism, true_counts: Counts) -> Iterator[Floats]:
    """Estimates of epochs whose reports were randomized one by one, with coins of the system."""
    coins, people = SystemBits(), int(true_counts.sum())
    length = mechanism.layout.payload_bytes
    for _ in range(_REPEATED_EPOCHS):
        payloads = [
            mechanism.randomize(value, coins)
            for value in np.flatnonzero(true_counts).tolist()
            for _ in range(int(true_counts[value]))
        ]
        matrix = np.frombuffer(b"".join(payloads), dtype=np.uint8).reshape(people, length)
        totals = Totals(cells=fold(mechanism.layout, matrix).tolist(), reports=people)
        yield estimates_of(mechanism, totals)[0]


def _errors(crowd: ShuffledEpoch, true_counts: Counts, epochs: Iterator[Floats]) -> _Errors:
    rare = tenth = 0.0
    number = 0
    for epoch in epochs:
        wrong = (epoch - true_counts) ** 2
        rare += float(wrong[true_counts == 0].mean()) if (true_counts == 0).any() else 0.0
        tenth += float(wrong[true_counts == true_counts[-1]].mean())
        number += 1
    return _Errors(
        sqrt(rare / number) / crowd.stderr(0),
        sqrt(tenth / number) / crowd.stderr(true_counts[-1] / true_counts.sum()),
    )


def _ratio_text(ratio: float, epochs: int, values: int) -> str:
    """Root mean square over what is claimed, and its own standard error where the claim is true."""
    return f"{ratio:.3f} ± {1 / sqrt(2 * epochs * values):.3f}"


def _one_error(errors: _Errors, values: int) -> float:
    """One figure of 20 epochs: over all values, where there are more than the two that are held."""
    return errors.rare if values > 2 else errors.tenth  # noqa: PLR2004 both are held


def _lone_error(people: int, values: int, epsilon: float, names: tuple[str, ...] = _ALONE) -> float:
    """The least standard error of a rare value of the mechanisms that need no crowd."""
    return min(
        sqrt(build(name, epsilon=epsilon, categories=values).variance(0, people)) for name in names
    )


def _in_batches(people: int, values: int) -> float:
    """The same, at the largest local epsilon whose shuffled batch of 1,000 says the central one."""
    least = _lone_error(people, values, CENTRAL)
    for name in _ALONE:
        low, high = CENTRAL, 12.0
        while high - low > _FINE:
            middle = (low + high) / 2
            mechanism = build(name, epsilon=middle, categories=values)
            variation = min(float(mechanism.total_variation()) * (1 + 2**-50), 1.0)
            amplified_loss = amplified(mechanism.privacy_loss(), _BATCH, DELTA, variation)
            low, high = (middle, high) if amplified_loss.epsilon <= CENTRAL else (low, middle)
        mechanism = build(name, epsilon=low, categories=values)
        least = min(least, sqrt(mechanism.variance(0, people)))
    return least
