"""The stages of a query: decoding strings, and reading a million values through a transform."""

from collections.abc import Iterator
from functools import partial
from typing import Final

import numpy as np

from benchmarks.measure import Row, rate
from benchmarks.own import counted, times
from hubbub.analysis.answering import answer
from hubbub.analysis.comparisons.change import changes
from hubbub.analysis.estimators.fast_support_counts import walsh_hadamard
from hubbub.analysis.families import draw
from hubbub.analysis.families.listed_values import estimates_of
from hubbub.analysis.strings.rappor_decoding import decode
from hubbub.analysis.strings.rappor_equations import bloom_places
from hubbub.mechanisms import SystemBits, Totals, build
from hubbub.mechanisms.rappor import Rappor

_MILLION: Final = 1 << 20
_LISTED: Final = 1 << 12


def decoding() -> Iterator[Row]:
    """Ten million reports of 1,000 strings; then a list of candidates far longer than that."""
    wide = Rappor(bits=128, hashes=2, cohorts=128, f=0.5, p=0.25, q=0.75)
    strings = [f"s{n}" for n in range(1900)]
    totals = _totals(wide, strings[:1000])
    ours = 1 / rate(partial(counted, 1, partial(decode, wide, totals, strings)), 3)
    dense = np.zeros((wide.cohorts * wide.bits + 1, len(strings)), dtype=np.float32)
    dense[bloom_places(wide, strings).T, np.arange(len(strings))] = 1
    limit = 1 / rate(partial(counted, 1, lambda: dense.T @ dense), 3)
    yield Row(
        "decode, 1,900 candidates, 16,384 equations",
        f"{ours:.2f} s",
        f"dense normal equations alone {limit:.2f} s",
        ours / limit,
        "20 s: a 20th of the original",
    )
    narrow = Rappor(bits=128, hashes=2, cohorts=64, f=0.5, p=0.25, q=0.75)
    many = [f"s{n}" for n in range(100_000)]
    totals = _totals(narrow, many[:1000])
    ours = 1 / rate(partial(counted, 1, partial(decode, narrow, totals, many)), 1)
    limit = 1 / rate(partial(counted, 1, partial(bloom_places, narrow, many)), 1)
    yield Row(
        "decode, 100,000 candidates, 8,192 equations",
        f"{ours:.1f} s",
        f"hashing them alone {limit:.1f} s",
        ours / limit,
        "<= 60 s",
    )


def estimating() -> Iterator[Row]:
    """2^20 values: one report, and all estimates; 4,096 values: an answer, and a comparison."""
    coins = SystemBits()
    for name in ("hadamard", "projective"):
        mechanism = build(name, epsilon=1.0, categories=_MILLION)
        microseconds = 1e6 / rate(partial(times, 5000, mechanism.randomize, 777_777, coins))
        small = build(name, epsilon=1.0, categories=16)
        floor = 1e6 / rate(partial(times, 5000, small.randomize, 7, coins))
        yield Row(
            f"randomize, {name}, d = 2^20",
            f"{microseconds:.1f} us",
            f"d = 16: {floor:.1f} us",
            microseconds / floor,
            "<= 50 us",
        )
        cells = np.random.default_rng(1).integers(0, 1000, mechanism.layout.size)
        totals = Totals(cells=cells.tolist(), reports=int(cells.sum()))
        ours = 1 / rate(partial(counted, 1, partial(estimates_of, mechanism, totals)))
        limit = 1 / rate(partial(counted, 1, partial(walsh_hadamard, cells[:_MILLION])))
        yield Row(
            f"estimate, {name}, 2^20 values",
            f"{ours:.2f} s",
            f"one transform of 2^20 {limit:.2f} s",
            ours / limit,
            "< 1 s",
        )
    listed, chance = build("grr", epsilon=1.0, categories=_LISTED), np.random.default_rng(1)
    names = [str(value) for value in range(_LISTED)]
    both = [draw(listed, range(_LISTED), [25] * _LISTED, chance) for _ in range(2)]
    limit = 1 / rate(partial(counted, 1, partial(estimates_of, listed, both[0])))
    before, after = (answer(listed, totals, names) for totals in both)
    for what, work in (
        ("answer", partial(answer, listed, both[0], names)),
        ("compare", partial(changes, before, after)),
    ):
        ours = 1 / rate(partial(counted, 1, work))
        yield Row(
            f"{what}, grr, 4,096 values",
            f"{1000 * ours:.1f} ms",
            f"their estimates alone {1000 * limit:.1f} ms",
            ours / limit,
            "<= 10 ms",
        )


def _totals(mechanism: Rappor, strings: list[str]) -> Totals:
    """Ten million reports of these strings by Zipf's law, drawn from their exact law."""
    chance = np.random.default_rng(1)
    cohorts, bits = mechanism.cohorts, mechanism.bits
    shares = 1 / np.arange(1, len(strings) + 1)
    reports = chance.multinomial(10**7, shares / shares.sum())
    split = chance.multinomial(reports, np.full(cohorts, 1 / cohorts))
    holders = np.zeros(cohorts * bits + 1, dtype=np.int64)
    places = bloom_places(mechanism, strings).reshape(len(strings), cohorts, -1)
    np.add.at(holders, places, np.broadcast_to(split[:, :, None], places.shape))
    here, everybody = holders[:-1], split.sum(axis=0)
    p, q = float(mechanism.chain.channel.p), float(mechanism.chain.channel.q)
    ones = chance.binomial(here, p) + chance.binomial(np.repeat(everybody, bits) - here, q)
    cells = np.column_stack([everybody, ones.reshape(cohorts, bits)])
    return Totals(cells=cells.reshape(-1).tolist(), reports=10**7)
