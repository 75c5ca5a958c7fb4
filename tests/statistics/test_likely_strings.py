"""Strings that are likely: how many of them nobody holds, against known truths.

Seeds are fixed, so that what has passed once passes for ever; bounds leave a chance below 1e-6.
"""

from math import inf, nan
from string import ascii_lowercase

import numpy as np
import pytest
from scipy.stats import binom, gamma, poisson

from hubbub.analysis.answering import answer, likely
from hubbub.analysis.families import draw
from hubbub.analysis.strings.likely_strings import LikelyString, likely_strings
from hubbub.analysis.strings.tree_search import Found, Places, discover
from hubbub.errors import BadParameter
from hubbub.mechanisms import Totals
from hubbub.mechanisms.projective import ProjectiveResponse
from hubbub.mechanisms.tree import PrefixTree

pytestmark = pytest.mark.thorough

FAR = 1e-6
TREE = PrefixTree(epsilon=4.0, bits=34)
REPORTS = 200_000
SHARES = (0.5, 0.2)


def _words() -> list[str]:
    """Words that have bits as English ones do."""
    begins = ("th", "st", "pre", "con", "in", "re", "de", "s", "m", "p", "w", "c", "an", "fo")
    middles = ("er", "in", "ou", "at", "on", "e", "a", "o", "ing", "est", "il", "ar")
    ends = ("s", "e", "ed", "er", "y", "n", "t", "ly", "d", "")
    words = [begin + two + three for three in ends for two in middles for begin in begins]
    words = [*dict.fromkeys(words)]
    return [words[place] for place in np.random.default_rng(1).permutation(len(words))[:800]]


def _counts() -> list[list[int]]:
    """Zipf's law, but for the first ten."""
    shares = 1 / np.arange(10.0, len(WORDS) + 10)
    drawn = np.random.default_rng(1).multinomial(REPORTS, shares / shares.sum(), 2)
    return [[int(number) for number in row] for row in drawn]


WORDS = _words()
COUNTS = _counts()


def _places(counts: dict[str, int], seed: int) -> Places:
    totals = draw(TREE, [*counts], [*counts.values()], np.random.default_rng(seed))
    return Places([(TREE, totals)])


def test_likely_strings_are_false_as_often_as_stated() -> None:
    """Where there is no string but one that is found, each of the others is false."""
    surest, doubt_sum = 200, 0.0
    for seed in range(2):
        places = _places({"the": REPORTS}, seed)
        discoveries = discover(places)
        assert [discovery.text for discovery in discoveries] == ["the"]
        all_likely = likely_strings(places, discoveries, false_share=inf)
        doubt_sum += all_likely[surest - 1].doubt * surest
    few, most = gamma.ppf([FAR, 1 - FAR], 2 * surest)
    assert few <= doubt_sum <= 1.3 * most  # no fewer: how many strings there are is rounded up


Collection = tuple[list[Found], list[LikelyString]]


@pytest.fixture(scope="module")
def collections() -> list[Collection]:
    """What is found in totals of strings, and likely in them at the largest accepted share."""
    drawn = (
        _places(dict(zip(WORDS, count, strict=True)), seed) for seed, count in enumerate(COUNTS)
    )
    return [
        (discoveries := discover(places), likely_strings(places, discoveries, max(SHARES), 0.9))
        for places in drawn
    ]


@pytest.mark.parametrize("share", SHARES)
def test_the_share_of_false_strings_is_within_the_accepted_one(
    collections: list[Collection], share: float
) -> None:
    more = false = proven = 0
    for discoveries, rows in collections:
        names = [row.value for row in rows if row.doubt <= share]
        assert not {discovery.text for discovery in discoveries} & {*names}
        proven += len(discoveries)
        more += len(names)
        false += len({*names} - {*WORDS})
    assert false <= poisson.ppf(1 - FAR, share * more)
    assert more - false > proven / 4, "hardly a string was added to those that are proven"


def test_a_string_that_shares_a_cell_with_a_frequent_string_is_not_called_likely() -> None:
    """With one hash function, and frequent strings that are not proven: most places are shared."""
    chance = np.random.default_rng(3)
    words = ["".join(chance.choice([*ascii_lowercase], 5)) for _ in range(300)]
    shares = 1 / np.arange(10.0, len(words) + 10)
    tree = PrefixTree(epsilon=4.0, bits=34, hashes=1)
    more = false = 0
    for seed in range(2):
        counts = chance.multinomial(1_000_000, shares / shares.sum())
        totals = draw(tree, words, counts.tolist(), np.random.default_rng(seed))
        names = [row.value for row in likely([(tree, totals)], answer(tree, totals, None), 0.5)]
        more += len(names)
        false += len({*names} - {*words})
    assert more > 5
    assert false <= poisson.ppf(1 - FAR, 0.5 * more)


def test_likely_strings_begin_with_the_surest_and_no_high_is_too_low(
    collections: list[Collection],
) -> None:
    """Those that pass were seen too high rather than too low: fewer than 1 in 20 are more."""
    total = more = 0
    for (_, rows), counts in zip(collections, COUNTS, strict=True):
        doubts = [row.doubt for row in rows]
        assert doubts == sorted(doubts)
        assert 0 < doubts[-1] <= 0.5
        fields = dict(zip(WORDS, counts, strict=True))
        total += len(rows)
        more += sum(fields.get(row.value, 0) > row.high for row in rows)
    assert total > 10
    assert more <= binom.ppf(1 - FAR, total, 0.05)


def test_no_string_is_likely_if_hardly_any_cell_has_reports() -> None:
    """Nearly all are as sure as each other, and less sure than what a place has on average."""
    tree = PrefixTree(epsilon=12.0, bits=72, cells=4096)
    totals = draw(tree, ["often.example", "rare.example"], [600, 200], np.random.default_rng(3))
    places = Places([(tree, totals)])
    assert likely_strings(places, discover(places), 0.5) == []


def test_no_string_is_likely_among_uninformative_reports() -> None:
    places = _places({"the": 50}, 1)
    assert not likely_strings(places, discover(places), 0.2)


def test_the_caller_chooses_the_accepted_share_of_false_strings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And likely strings reuse the search of the answer."""
    searched: list[Places] = []

    def counted(places: Places) -> list[Found]:
        searched.append(places)
        return discover(places)

    monkeypatch.setattr("hubbub.analysis.families.prefix_tree.discover", counted)
    totals = draw(TREE, ["the"], [2000], np.random.default_rng(1))
    answered = answer(TREE, totals, None)
    assert likely([(TREE, totals)], answered, 0.1) == ()
    assert len(searched) == 1
    for share in (0.0, 1.0, -1.0, nan):
        with pytest.raises(BadParameter, match=r"outside \(0, 1\)"):
            likely([(TREE, totals)], answered, share)
    other = ProjectiveResponse(4.0, 2)
    other_totals = Totals(cells=(1,) * other.layout.size, reports=other.layout.size)
    with pytest.raises(BadParameter, match='projective finds no strings: leave "likely" out'):
        likely([(other, other_totals)], answer(other, other_totals, ["a", "b"]), 0.5)
