"""Mechanisms that a crowd accounts for as `grr`: every report is a mixture of its reports."""

from fractions import Fraction
from functools import partial
from math import exp
from typing import Any

import pytest

from hubbub.mechanisms import (
    REGISTRY,
    AnyMechanism,
    OneHot,
    build,
    cells_and_groups,
    lies_evenly,
)
from hubbub.privacy.proofs.replay import distribution

FINE: tuple[tuple[str, dict[str, Any]], ...] = (
    ("wave", {"epsilon": 4.0, "low": 0, "high": 1, "buckets": 6}),
    ("mean.piecewise", {"epsilon": 4.0, "low": -2.5, "high": 7, "steps": 5}),
    ("mean.one_bit", {"epsilon": 2.0, "low": 0, "high": 1}),
)
EVERY = [build(name, **given) for name, given in FINE] + [
    build(name, **given) for name, mechanism in REGISTRY.items() for given in mechanism.SMALL
]


@pytest.mark.parametrize("mechanism", [one for one in EVERY if lies_evenly(one)], ids=repr)
def test_every_value_names_every_cell_as_often_as_a_lie_of_grr(mechanism: AnyMechanism) -> None:
    """With q at least, of d cells: the rest, whatever it is, mixes truths of `grr`.

    Of groups of d cells: within each, and each is as likely whatever the value.
    """
    layout = mechanism.layout
    assert isinstance(layout, OneHot)
    cells, groups = cells_and_groups(mechanism)
    assert cells * groups == layout.size
    lie = 1 / (exp(mechanism.privacy_loss()) + cells - 1)
    for value in mechanism.probes():
        chances = distribution(partial(mechanism.randomize, value))
        assert len(chances) == layout.size
        assert min(chances.values()) >= lie / groups * (1 - 1e-12)
        named = {next(iter(layout.cells(payload))): own for payload, own in chances.items()}
        for first in range(0, layout.size, cells):
            assert sum(named[first + cell] for cell in range(cells)) == Fraction(1, groups)


def test_windows_of_several_cells_and_sets_of_bits_are_not_even() -> None:
    for name, given in (
        ("wave", {"epsilon": 1.0, "low": 0, "high": 1, "buckets": 8}),
        ("mean.piecewise", {"epsilon": 4.0, "low": 0, "high": 1, "steps": 256}),
        ("unary.oue", {"epsilon": 1.0, "categories": 4}),
        ("buckets", {"epsilon": 1.0, "low": 0, "high": 1, "buckets": 4, "sampled": 2}),
    ):
        assert not lies_evenly(build(name, **given))
    assert sum(map(lies_evenly, EVERY[:3])) == 3
