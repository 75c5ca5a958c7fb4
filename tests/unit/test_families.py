"""A mechanism of a family is answered, planned, checked, attacked and released as the family is."""

import numpy as np
import pytest

from hubbub.analysis import answer, maximal_gain, plausibility, shares
from hubbub.analysis.families import family_for
from hubbub.catalog import Release
from hubbub.mechanisms import KeyedBits, tally
from hubbub.privacy.draws import draw
from hubbub.privacy.releases import release
from tests.support.recipe import example


def test_the_recipe_s_mechanism_is_answered_as_its_family_is() -> None:
    """Nothing but its own file knows of it: 5,000 people, each figure within 6 standard errors."""
    mechanism = example()(epsilon=2.0, categories=4)  # type: ignore[call-arg]
    held, names = [3000, 1500, 500, 0], ["a", "b", "c", "d"]
    coins, chance = KeyedBits(b"recipe".ljust(32)), np.random.default_rng(1)
    payloads = [mechanism.randomize(value, coins) for value in np.repeat(range(4), held).tolist()]
    totals = tally(mechanism.layout, payloads)
    found = answer(mechanism, totals, names)
    for one, true in zip(found.values, held, strict=True):
        assert abs(one.estimate - true) <= 6 * one.stderr
    [point] = shares([(mechanism, totals)], [0])
    assert point.low < 0.6 < point.high
    assert plausibility(mechanism, totals).findings == ()
    assert maximal_gain(mechanism, [3]).gain(0.01) > 0.01
    errors = family_for(mechanism).expected(mechanism, range(4), np.array(held) / 5000, 5000)
    said = [one.stderr / 5000 for one in found.values]
    assert errors.stderrs == pytest.approx(said, rel=0.1)
    drawn = draw(mechanism, range(4), held, chance)
    assert drawn.reports == 5000
    policy = Release("laplace", 1.0)
    released = release([(mechanism, totals)], names, "histogram", "", policy=policy, reports_each=1)
    assert [one.value for one in released] == names
