"""Simulated RAPPOR collections with known truth: totals drawn from their exact law.

The coins are numpy's: what is tried here is the decoder, not the randomizer.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hubbub.analysis.arrays import Floats
from hubbub.analysis.families import draw_epochs
from hubbub.analysis.strings.rappor_equations import Collection, Places, bloom_places
from hubbub.mechanisms.rappor import Rappor

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
    mechanism = Rappor(
        bits=setting.bits,
        hashes=setting.hashes,
        cohorts=setting.cohorts,
        f=setting.f,
        p=setting.p,
        q=setting.q,
    )
    shares = LAWS[setting.law](np.arange(1.0, setting.strings + 1))
    truth = chance.multinomial(setting.reports, shares / shares.sum())
    prefix = chance.integers(1 << 60)  # so that each collection has other places
    strings = [f"{prefix}/{place}" for place in range(setting.strings + setting.absent)]
    epochs = draw_epochs(mechanism, strings[: len(truth)], truth.tolist(), repeats, chance)
    counts = np.sum([epoch.cells for epoch in epochs], axis=0)
    listed = np.sort(chance.choice(setting.strings, setting.listed, replace=False))
    candidates = np.append(listed, np.arange(setting.strings, len(strings)))
    return Simulated(
        Collection(counts.reshape(setting.cohorts, -1), setting.hashes, mechanism.chain.channel),
        bloom_places(mechanism, [strings[place] for place in candidates]),
        repeats * np.append(truth, np.zeros(setting.absent, dtype=np.int64))[candidates],
    )
