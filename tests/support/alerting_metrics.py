"""Epochs drawn from their law, of metrics that have alerts: an engine over totals in memory."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from hubbub.aggregator.query import QueryEngine
from hubbub.analysis.families import draw
from hubbub.conservation import Window
from tests.support.bundles import DAY, Signed, make_signed
from tests.support.catalogs import metric_toml
from tests.support.fakes import MemoryStore

FIRST = 20_000
PEOPLE = 200
BELOW = 'alert = { when = "mean below 5", confidence = 0.9 }'
CATALOG = 'shuffler = "127.0.0.1:1"\n' + "".join(
    metric_toml(name, more, mechanism=mechanism, epsilon=2.0, lifetime_epsilon=500.0)
    for name, mechanism, more in (
        ("colour", "grr", 'values = ["a", "b", "c", "d"]\nalert = { when = "change" }'),
        ("shape", "unary.oue", 'values = ["o", "x"]\nalert = { when = "share of x above .3" }'),
        ("size", "mean.piecewise", f'domain = "number"\nlow = 0\nhigh = 10\n{BELOW}'),
    )
)
# As large as the rule allows: of a share and a mean, at their limits.
SHARES = {"colour": [0.5, 0.3, 0.19, 0.01], "shape": [0.7, 0.3], "size": [0.5, 0.5]}
VALUES: dict[str, list[float]] = {"colour": [0, 1, 2, 3], "shape": [0, 1], "size": [2.0, 8.0]}


async def engine_of(
    signed: Signed, epochs: int, chance: np.random.Generator, moved: Mapping[str, list[float]]
) -> QueryEngine:
    """One over these epochs; in the last of them people hold what they moved to."""
    store = MemoryStore()
    for name, shares in SHARES.items():
        mechanism = signed.bundle.metric(name).randomizer
        for place in range(epochs):
            of_all = moved.get(name, shares) if place == epochs - 1 else shares
            people = chance.multinomial(PEOPLE, of_all).tolist()
            drawn = draw(mechanism, VALUES[name], people, chance)
            await store.count(Window(name, FIRST + place), drawn)
    return QueryEngine(signed.bundle, store, clock=lambda: (FIRST + epochs + 9) * DAY)


def signed_in(folder: Path) -> Signed:
    """The bundle of their catalog."""
    return make_signed(folder, CATALOG, start=(FIRST - 14) * DAY)
