"""Mechanisms that a crowd accounts for as `grr`: every report is a mixture of its reports."""

from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import combinations, combinations_with_replacement, permutations, product
from math import exp, inf, lcm, nextafter
from typing import Any

import pytest

from hubbub.mechanisms import REGISTRY, AnyMechanism, OneHot, build
from hubbub.mechanisms.even_lies import even_lies, lies_evenly
from hubbub.mechanisms.pairs_of_parts import PairedParts
from hubbub.mechanisms.tree import PrefixTree
from hubbub.mechanisms.vector_codes import VectorCodes
from hubbub.privacy.proofs.enumeration import distribution
from hubbub.privacy.shuffled_histogram import profile
from tests.support.crowds import crowd_of

FINE: tuple[tuple[str, dict[str, Any]], ...] = (
    ("wave", {"epsilon": 4.0, "low": 0, "high": 1, "buckets": 6}),
    ("mean.piecewise", {"epsilon": 4.0, "low": -2.5, "high": 7, "steps": 5}),
    ("mean.one_bit", {"epsilon": 2.0, "low": 0, "high": 1}),
)
EVERY = [build(name, **parameters) for name, parameters in FINE] + [
    build(name, **parameters)
    for name, mechanism in REGISTRY.items()
    for parameters in mechanism.SMALL
]


GEOMETRIES = [mechanism for mechanism in EVERY if isinstance(mechanism, PrefixTree | PairedParts)]
# Codes of directions have their own proof, below.
OWN = (PrefixTree, PairedParts, VectorCodes)
MIXTURES = [
    mechanism for mechanism in EVERY if lies_evenly(mechanism) and not isinstance(mechanism, OWN)
]


@pytest.mark.parametrize("mechanism", MIXTURES, ids=repr)
def test_dummies_of_a_value_name_every_cell_as_often_as_grr(mechanism: AnyMechanism) -> None:
    """With q at least, of d cells: the rest, whatever it is, mixes truths of `grr`.

    Of groups of d cells: within each, and each is as likely whatever the value.
    """
    layout = mechanism.layout
    assert isinstance(layout, OneHot)
    lies = even_lies(mechanism, mechanism.privacy_loss())
    cells, groups = int(lies.categories), lies.groups
    assert lies.epsilon == mechanism.privacy_loss()
    assert cells * groups == layout.size
    lie = 1 / (exp(mechanism.privacy_loss()) + cells - 1)
    for value in mechanism.probes():
        chances = distribution(partial(mechanism.randomize, value))
        assert len(chances) == layout.size
        assert min(chances.values()) >= lie / groups * (1 - 1e-12)
        named = {
            next(iter(layout.cells(payload))): probability
            for payload, probability in chances.items()
        }
        for first in range(0, layout.size, cells):
            assert sum(named[first + cell] for cell in range(cells)) == Fraction(1, groups)


@pytest.mark.parametrize("mechanism", GEOMETRIES, ids=repr)
def test_noise_of_a_geometry_hits_at_least_as_often_as_the_account_assumes(
    mechanism: PrefixTree | PairedParts,
) -> None:
    """In each group, of every two places that it tells apart: noise in all, and on one alone."""
    lies = even_lies(mechanism, mechanism.privacy_loss())
    loss, points = mechanism.privacy_loss(), mechanism.points
    assert (lies.groups, lies.epsilon >= loss) == (mechanism.groups, True)
    noise = lies.categories / (exp(lies.epsilon) + lies.categories - 1)
    likelihoods = [
        [mechanism.response.likelihood(place, {point: 1}) for point in range(points)]
        for place in range(mechanism.response.categories)
    ]
    off = min(min(chances) for chances in likelihoods)
    assert all(len(set(chances)) == 2 for chances in likelihoods), (
        "a point is on the hyperplane or off"
    )
    assert noise <= points * off * (1 + Fraction(1, 10**12))
    for first, other in product(likelihoods, likelihoods):
        alone = sum(a > off and b == off for a, b in zip(first, other, strict=True))
        assert first is other or Fraction(alone, points) >= Fraction(1, int(lies.categories))


def _tree(local: float, others: int) -> tuple[PrefixTree, list[str]]:
    tree = PrefixTree(epsilon=local, bits=2, cells=4, hashes=1)
    strings: dict[tuple[int, ...], str] = {}
    for text in ("", "a", "b", "e", "t", "x", "o", "n", "i", "zz"):
        strings.setdefault(tuple(tree.place(tree.spelled(text), g) for g in range(2)), text)
    return tree, list(strings.values())[: 4 if others < 2 else 3]


def _parts(local: float, others: int, ways: int) -> tuple[PairedParts, list[int]]:
    """Values that are apart in some tables, or in all."""
    pairs = PairedParts(local, (2, 2, 2), ways)
    return pairs, [0, 1, 7, 6][: 4 if others < 2 else 2]


@pytest.mark.parametrize("others", [0, 1, 2])
@pytest.mark.parametrize("local", [0.5, 1.5, 3.0])
@pytest.mark.parametrize(
    "catalog_files",
    [_tree, partial(_parts, ways=2), partial(_parts, ways=3)],
    ids=["tree", "two", "three"],
)
def test_epsilon_of_a_crowd_of_a_geometry_is_never_below_all_outcomes(
    catalog_files: Callable[[float, int], tuple[Any, list[Any]]], others: int, local: float
) -> None:
    """Enumerated with fractions: whatever values the others hold, and every pair of them."""
    mechanism, values = catalog_files(local, others)
    lies = even_lies(mechanism, mechanism.privacy_loss())
    crowd = crowd_of(others + 1, lies.categories, lies.epsilon, groups=lies.groups)
    deltas = {share * local: profile(crowd, 1e-15)(share * local) for share in (0.1, 0.4, 0.8)}
    cells = range(mechanism.layout.size)
    rows = _integers(
        [
            [mechanism.likelihood(value, {cell: 1}) / mechanism.groups for cell in cells]
            for value in values
        ]
    )
    for rest in combinations_with_replacement(rows, others):
        laws = [_histograms([report_law, *rest]) for report_law in rows]
        for first, other in permutations(laws, 2):
            for epsilon, most in deltas.items():
                assert _delta(first, other, epsilon) <= most


def test_windows_of_several_cells_and_sets_of_bits_are_not_even() -> None:
    for name, parameters in (
        ("wave", {"epsilon": 1.0, "low": 0, "high": 1, "buckets": 8}),
        ("mean.piecewise", {"epsilon": 4.0, "low": 0, "high": 1, "steps": 256}),
        ("unary.oue", {"epsilon": 1.0, "categories": 4}),
        ("buckets", {"epsilon": 1.0, "low": 0, "high": 1, "buckets": 4, "sampled": 2}),
    ):
        assert not lies_evenly(build(name, **parameters))
    assert sum(map(lies_evenly, EVERY[:3])) == 3


CODES = [
    VectorCodes(epsilon=1.0, dimensions=3, words=5, books=1),
    VectorCodes(epsilon=2.5, dimensions=2, words=3, books=2),
]


@pytest.mark.parametrize(
    ("codes", "others"),
    [
        *product(CODES, (0, 1, 2)),
        # Three are near, of which one or two may be common.
        (VectorCodes(epsilon=0.4, dimensions=2, words=7, books=1), 1),
    ],
    ids=repr,
)
def test_epsilon_of_a_crowd_of_codes_is_never_below_all_outcomes(
    codes: VectorCodes, others: int
) -> None:
    """Enumerated with fractions, whichever words are near to the others and to each of a pair.

    Also such as no vector is near to: the account is of any so many words of each book.
    """
    lies = even_lies(codes, codes.privacy_loss())
    assert lies_evenly(codes)
    assert lies.groups == 1
    assert 0 < lies.categories - codes.words / codes.near < 1e-14 * codes.words
    near, far = codes.channel.p / codes.books, codes.channel.q / codes.books
    one_book = [set(words) for words in combinations(range(codes.words), codes.near)]
    cells = range(codes.words * codes.books)
    rows = _integers(
        [
            [
                near if cell % codes.words in report_law[cell // codes.words] else far
                for cell in cells
            ]
            for report_law in product(one_book, repeat=codes.books)
        ]
    )
    crowd = crowd_of(others + 1, lies.categories, lies.epsilon)
    largest = {share * codes.epsilon: Fraction(0) for share in (0.1, 0.4, 0.8)}
    # Which word is which is a name: one of the pair may be the first row.
    for rest in combinations_with_replacement(rows, others):
        histograms = [_histograms([report_law, *rest]) for report_law in rows]
        for other in histograms[1:]:
            for epsilon, exact in largest.items():
                largest[epsilon] = max(exact, _delta(histograms[0], other, epsilon))
    for epsilon, exact in largest.items():
        most = profile(crowd, 1e-15)(epsilon)
        assert most >= exact
        assert most <= 1.35 * float(exact) + 1e-3, "a small crowd shows how many lied"


def _integers(rows: list[list[Fraction]]) -> list[list[int]]:
    """Chances over one denominator, which are added and multiplied without being reduced."""
    whole = lcm(*(chance.denominator for row in rows for chance in row))
    return [[int(chance * whole) for chance in row] for row in rows]


def _histograms(rows: list[list[int]]) -> dict[tuple[int, ...], int]:
    """How many reports may be of each cell, of people with these chances of each."""
    chances = {(0,) * len(rows[0]): 1}
    for row in rows:
        grown: defaultdict[tuple[int, ...], int] = defaultdict(int)
        for counts, chance in chances.items():
            for cell, probability in enumerate(row):
                grown[(*counts[:cell], counts[cell] + 1, *counts[cell + 1 :])] += (
                    chance * probability
                )
        chances = grown
    return chances


def _delta(
    first: dict[tuple[int, ...], int], other: dict[tuple[int, ...], int], epsilon: float
) -> Fraction:
    """How much likelier the first is than e^epsilon times the other, over all outcomes."""
    ratio, whole = nextafter(exp(epsilon), inf).as_integer_ratio()
    over = (whole * chance - ratio * other[counts] for counts, chance in first.items())
    return Fraction(sum(more for more in over if more > 0), whole * sum(first.values()))


def test_codes_that_use_half_of_the_words_have_no_even_noise() -> None:
    assert not lies_evenly(VectorCodes(epsilon=0.05, dimensions=16, words=32, books=4))
    assert lies_evenly(VectorCodes(epsilon=0.2, dimensions=16, words=32, books=4))
