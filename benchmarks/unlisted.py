"""Strings that nobody listed: the prefix tree beside PEM, on English words of six letters.

The words are those of Python's own documentation, by how often each is there. PEM (Wang, Li, Jha,
TDSC 2019) is simulated by its own exact law: users split over prefixes of 2, 4 and 6 letters,
optimal local hashing with all of epsilon, whose supports of a candidate are two binomials, and the
best `NAMED` prefixes of a length extended by every two letters. It names so many strings whatever
was reported; the tree names those that it proves, then the likeliest, at most as many in all. Both
are told the words' length: PEM in letters, the tree in bits.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from itertools import product
from math import exp
from pathlib import Path
from pydoc_data.topics import topics
from string import ascii_lowercase
from typing import Final

import numpy as np

from hubbub.analysis.answering import answer, likely
from hubbub.analysis.families import draw
from hubbub.mechanisms.tree import PrefixTree

HEADER: Final = (
    "epsilon",
    "reports",
    "PEM: exist",
    "do not",
    "top 10, 20, 50",
    "tree, proven: exist",
    "do not",
    "tree, as many as PEM: exist",
    "do not",
    "top 10, 20, 50",
)
NAMED: Final = 60
_RUNS: Final = 3
_ENDS: Final = (2, 4, 6)
_BITS: Final = 41  # of such words in the tree's spelling, at most
_TOPS: Final = (10, 20, 50)
_STEP: Final = tuple(map("".join, product(ascii_lowercase, repeat=2)))
_NEARLY_ALL: Final = 0.999
_OF_OTHERS: Final = frozenset({"site-packages", "test", "tests", "idlelib"})


def unlisted() -> Iterator[tuple[str, ...]]:
    """A row for each epsilon and number of reports: means over some drawings."""
    word_counts = _words()
    words, numbers = [*word_counts], np.array([*word_counts.values()])
    for epsilon in (1.0, 2.0, 4.0):
        for reports in (100_000, 1_000_000):
            tallies = np.zeros((3, 2 + len(_TOPS)))
            for run in range(_RUNS):
                chance = np.random.default_rng(run)
                counts = chance.multinomial(reports, numbers / numbers.sum())
                fields = dict(zip(words, counts.tolist(), strict=True))
                tallies[0] += _scores(_pem(fields, epsilon, chance), words)
                proven, further = _tree(fields, epsilon, chance)
                tallies[1] += _scores(proven, words)
                tallies[2] += _scores([*proven, *further][:NAMED], words)
            pem, sure, named = map(_score_texts, tallies)
            yield (f"{epsilon:g}", f"{reports:,}", *pem, *sure[:2], *named)


def _words() -> Counter[str]:
    """Words of six letters, the most frequent first, and how often each is there."""
    counts = Counter(_six(" ".join(topics.values())))
    for file in sorted(Path(ast.__file__).parent.glob("**/*.py")):
        if not _OF_OTHERS & {*file.parts}:
            for node in ast.walk(ast.parse(file.read_bytes())):
                if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                    counts.update(_six(ast.get_docstring(node) or ""))
    return Counter(dict(counts.most_common()))


def _six(text: str) -> list[str]:
    return re.findall(r"\b[a-z]{6}\b", text.lower())


def _pem(true_counts: dict[str, int], epsilon: float, chance: np.random.Generator) -> list[str]:
    p, q = 0.5, 1 / (exp(epsilon) + 1)
    groups = chance.multinomial([*true_counts.values()], [1 / len(_ENDS)] * len(_ENDS)).T
    best = [""]
    for end, group in zip(_ENDS, groups, strict=True):
        prefix_counts = Counter[str]()
        for word, number in zip(true_counts, group.tolist(), strict=True):
            prefix_counts[word[:end]] += number
        candidates = [before + step for before in best for step in _STEP]
        true = np.array([prefix_counts[candidate] for candidate in candidates])
        counts = chance.binomial(true, p) + chance.binomial(int(group.sum()) - true, q)
        best = [candidates[place] for place in np.argsort(-counts, kind="stable")[:NAMED]]
    return best


def _tree(
    true_counts: dict[str, int], epsilon: float, chance: np.random.Generator
) -> tuple[list[str], list[str]]:
    """What is proven, and what is likely, the surest first."""
    tree = PrefixTree(epsilon=epsilon, bits=_BITS)
    totals = draw(tree, [*true_counts], [*true_counts.values()], chance)
    answered = answer(tree, totals, None)
    further = likely([(tree, totals)], answered, _NEARLY_ALL)
    return [value.value for value in answered.values], [value.value for value in further]


def _scores(strings: list[str], words: list[str]) -> list[float]:
    exist = len(set(strings) & set(words))
    tops = [len(set(strings) & set(words[:top])) / top for top in _TOPS]
    return [exist, len(strings) - exist, *tops]


def _score_texts(sums: "np.typing.NDArray[np.float64]") -> tuple[str, str, str]:
    mean = sums / _RUNS
    return f"{mean[0]:.1f}", f"{mean[1]:.1f}", " ".join(f"{top:.2f}" for top in mean[2:])
