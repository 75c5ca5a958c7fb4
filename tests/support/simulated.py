"""Simulated RAPPOR collections with known truth: totals drawn from their exact law.

The coins are numpy's: what is tried here is the decoder, not the randomizer.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from hubbub.analysis.arrays import Floats
from hubbub.analysis.strings.design import Collection, Places
from hubbub.mechanisms.chain import channel

LAWS: dict[str, Callable[[Floats], Floats]] = {
    "uniform": np.ones_like,
    "gauss": lambda rank: np.exp(-0.5 * ((rank / rank[-1] - 0.5) * 6) ** 2),
    "exponential": lambda rank: np.exp(-5 * rank / rank[-1]),
    "zipf": lambda rank: 1 / rank,
    "steep zipf": lambda rank: rank**-1.5,
}


@dataclass(frozen=True)
class Setting:
    """Parameters of a collection, and who is in it: of `strings`, `listed` are candidates."""

    bits: int
    hashes: int
    cohorts: int
    p: float
    q: float
    f: float
    law: str
    strings: int
    listed: int
    absent: int
    reports: int


@dataclass(frozen=True)
class Simulated:
    """A collection, its candidates' places, and how many reports each candidate truly has."""

    collection: Collection
    places: Places
    truth: npt.NDArray[np.int64]


def simulate(setting: Setting, chance: np.random.Generator, repeats: int = 1) -> Simulated:
    """One collection of this setting; `repeats` reports of every device, on one permanent lie."""
    bits, cohorts, many = setting.bits, setting.cohorts, setting.strings
    shares = LAWS[setting.law](np.arange(1.0, many + 1))
    truth = chance.multinomial(setting.reports, shares / shares.sum())
    shape = (many + setting.absent, cohorts, setting.hashes)
    positions = np.sort(chance.integers(bits, size=shape), axis=2)
    cells = positions + bits * np.arange(cohorts)[None, :, None]
    again = np.zeros(shape, dtype=np.bool_)
    again[:, :, 1:] = cells[:, :, 1:] == cells[:, :, :-1]
    cells[again] = cohorts * bits
    split = chance.multinomial(truth, np.full(cohorts, 1 / cohorts))  # reports of each, by cohort
    holders = np.zeros(cohorts * bits + 1, dtype=np.int64)
    np.add.at(holders, cells[:many], np.broadcast_to(split[:, :, None], cells[:many].shape))
    in_cohort = np.repeat(split.sum(axis=0), bits)
    both = channel(*(Fraction(str(x)) for x in (setting.f, setting.p, setting.q)))
    if repeats == 1:
        ones = chance.binomial(holders[:-1], float(both.p))
        ones += chance.binomial(in_cohort - holders[:-1], float(both.q))
    else:
        permanent = chance.binomial(holders[:-1], 1 - setting.f / 2)
        permanent += chance.binomial(in_cohort - holders[:-1], setting.f / 2)
        ones = chance.binomial(repeats * permanent, setting.q)
        ones += chance.binomial(repeats * (in_cohort - permanent), setting.p)
    counts = np.column_stack([repeats * split.sum(axis=0), ones.reshape(cohorts, bits)])
    listed = np.sort(chance.choice(many, setting.listed, replace=False))
    candidates = np.concatenate([listed, np.arange(many, many + setting.absent)])
    return Simulated(
        Collection(counts, setting.hashes, both),
        cells[candidates].reshape(len(candidates), -1).astype(np.int32),
        repeats * np.append(truth, np.zeros(setting.absent, dtype=np.int64))[candidates],
    )
