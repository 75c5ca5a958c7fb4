"""Strings that nobody listed: the prefix tree beside PEM, on words of six letters.

PEM (Wang, Li, Jha, TDSC 2019) is simulated by its own exact law: users split over prefixes of 2, 4
and 6 letters, optimal local hashing with all of epsilon, whose supports of a candidate are two
binomials, and the best `NAMED` prefixes of a length extended by every two letters. It names so many
strings whatever was reported.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import product
from math import exp
from string import ascii_lowercase
from typing import Final

import numpy as np

from hubbub.analysis import answer
from hubbub.mechanisms.tree import PrefixTree
from hubbub.privacy.draws import draw

HEADER: Final = (
    *("epsilon", "reports", "PEM: exist", "do not", "top 10, 20, 50"),
    *("tree: exist", "do not", "top 10, 20, 50"),
)
NAMED: Final = 60
_WORDS: Final = 4000
_RUNS: Final = 3
_ENDS: Final = (2, 4, 6)
_TOPS: Final = (10, 20, 50)
_STEP: Final = tuple(map("".join, product(ascii_lowercase, repeat=2)))


def unlisted() -> Iterator[tuple[str, ...]]:
    """A row for each epsilon and number of reports: means over some drawings."""
    words = _words(np.random.default_rng(6))
    shares = 1 / np.arange(1.0, len(words) + 1)
    for epsilon in (1.0, 2.0, 4.0):
        for reports in (100_000, 1_000_000):
            told = np.zeros((2, 2 + len(_TOPS)))
            for run in range(_RUNS):
                chance = np.random.default_rng(run)
                counts = chance.multinomial(reports, shares / shares.sum())
                held = dict(zip(words, counts.tolist(), strict=True))
                told[0] += _judged(_pem(held, epsilon, chance), words)
                told[1] += _judged(_tree(held, epsilon, chance), words)
            yield (f"{epsilon:g}", f"{reports:,}", *_shown(told[0]), *_shown(told[1]))


def _words(chance: np.random.Generator) -> list[str]:
    """Words of six letters, some letters much more frequent than others."""
    weights = 1 / np.arange(1.0, len(ascii_lowercase) + 1)
    letters = chance.choice([*ascii_lowercase], (2 * _WORDS, _ENDS[-1]), p=weights / weights.sum())
    return list(dict.fromkeys(map("".join, letters.tolist())))[:_WORDS]


def _pem(held: dict[str, int], epsilon: float, chance: np.random.Generator) -> list[str]:
    p, q = 0.5, 1 / (exp(epsilon) + 1)
    groups = chance.multinomial([*held.values()], [1 / len(_ENDS)] * len(_ENDS)).T
    best = [""]
    for end, group in zip(_ENDS, groups, strict=True):
        own = Counter[str]()
        for word, number in zip(held, group.tolist(), strict=True):
            own[word[:end]] += number
        candidates = [before + step for before in best for step in _STEP]
        true = np.array([own[one] for one in candidates])
        seen = chance.binomial(true, p) + chance.binomial(int(group.sum()) - true, q)
        best = [candidates[place] for place in np.argsort(-seen, kind="stable")[:NAMED]]
    return best


def _tree(held: dict[str, int], epsilon: float, chance: np.random.Generator) -> list[str]:
    tree = PrefixTree(epsilon)
    totals = draw(tree, [*held], [*held.values()], chance)
    return [one.value for one in answer(tree, totals, None).values]


def _judged(found: list[str], words: list[str]) -> list[float]:
    exist = len(set(found) & set(words))
    tops = [len(set(found) & set(words[:top])) / top for top in _TOPS]
    return [exist, len(found) - exist, *tops]


def _shown(told: "np.typing.NDArray[np.float64]") -> tuple[str, str, str]:
    mean = told / _RUNS
    return f"{mean[0]:.1f}", f"{mean[1]:.1f}", " ".join(f"{top:.2f}" for top in mean[2:])
