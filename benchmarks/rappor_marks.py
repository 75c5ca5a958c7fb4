"""RAPPOR's marks: strings that are held, and false ones, beside Benjamini and Hochberg's.

Four public collections with their true histograms (tests/data/rappor), and twenty simulated ones of
other parameters, shapes and lists. Theirs: of the decode's own p-values, at the same rate.
"""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

from hubbub.analysis.arrays import Mask
from hubbub.analysis.strings.rappor_decoding import decode_counts
from hubbub.analysis.strings.rappor_equations import Collection, Places
from hubbub.analysis.uncertainty.intervals import stand_out
from hubbub.cli.commands.rappor import read_collection, read_map
from tests.support.simulated_rappor import LAWS, Setting, simulate

HEADER: Final = ("collections", "rate", "held, marked", "by BH", "false, marked", "by BH")
RATES: Final = (0.01, 0.05, 0.2)
_PUBLIC: Final = Path(__file__).parents[1] / "tests" / "data" / "rappor"
_SIMULATED: Final = 20

Tried = tuple[str, Collection, Places, Mask]
"""A collection's name, its totals, its candidates' bits, and which of these are held."""


def rappor_marks() -> Iterator[tuple[str, ...]]:
    """A row for each collection and rate; of those that are simulated, their sums."""
    sums: dict[tuple[str, float], list[int]] = {}
    for name, collection, places, is_held in (*_public(), *simulated()):
        for rate in RATES:
            decoding = decode_counts(collection, places, rate)
            best = stand_out(decoding.p_values, rate)
            row = [
                (mask & whose).sum()
                for whose in (is_held, ~is_held)
                for mask in (decoding.detected, best)
            ]
            before = sums.setdefault((name, rate), [0] * len(row))
            sums[name, rate] = [a + int(b) for a, b in zip(before, row, strict=True)]
    for (name, rate), row in sums.items():
        yield name, f"{rate:g}", *(f"{number:,}" for number in row)


def _public() -> Iterator[Tried]:
    for folder in sorted(path for path in _PUBLIC.iterdir() if path.is_dir()):
        collection = read_collection(folder / "params.csv", folder / "counts.csv")
        names, places = read_map(folder / "map.csv.gz", collection)
        with (folder / "true.csv").open() as text:
            true_counts = {row["value"]: int(row["count"]) for row in csv.DictReader(text)}
        is_held = np.array([true_counts.get(name, 0) > 0 for name in names])
        yield folder.name, collection, places, is_held


def simulated() -> Iterator[Tried]:
    """Twenty, of drawn parameters."""
    chance = np.random.default_rng(2014)
    for _ in range(_SIMULATED):
        bits, hashes, strings = (
            int(chance.choice(sizes)) for sizes in ((16, 32, 64, 128), (1, 2), (50, 100, 300))
        )
        setting = Setting(
            bits=bits,
            hashes=hashes,
            cohorts=int(chance.choice((8, 32, 64))),
            p=0.25,
            q=0.75,
            f=float(chance.choice((0.25, 0.5))),
            law=str(chance.choice(list(LAWS))),
            strings=strings,
            listed=strings * 9 // 10,
            absent=strings * int(chance.choice((1, 3))),
            reports=int(chance.choice((20_000, 100_000, 500_000))),
        )
        drawing = simulate(setting, chance)
        yield f"{_SIMULATED} simulated", drawing.collection, drawing.places, drawing.truth > 0
