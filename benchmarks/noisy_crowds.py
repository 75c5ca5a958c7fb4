"""Crowds with noise dummies: how large errors are beside what is claimed, and beside a curator's.

Devices lie as little as a catalog lets them; numbers are drawn by the weights that are shipped.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from benchmarks.served_crowds import CENTRAL, DELTA, Counts, Floats
from hubbub.aggregator.query.cache import epochs_law
from hubbub.analysis.families import draw
from hubbub.analysis.families.listed_values import estimates_of
from hubbub.catalog.crowds.crowd import noise_of
from hubbub.catalog.crowds.noise_dummies import MAX_SEALED
from hubbub.mechanisms import Totals, build
from hubbub.mechanisms.probability import MAX_EPSILON
from hubbub.privacy.fewest_dummies import best_noise
from hubbub.privacy.shuffled_epoch import ShuffledEpoch
from hubbub.sealing.dummy_laws import ValueNoise


def noisy_crowd(people: int, values: int) -> ShuffledEpoch | None:
    """The crowd that keeps the promise by noise dummies; None of too many values."""
    crowd = ShuffledEpoch(reports=people, categories=values, epsilon_local=MAX_EPSILON)
    noise = noise_of(*best_noise(crowd, CENTRAL, DELTA))
    if noise is None or ValueNoise(noise, values).sealed > MAX_SEALED:
        return None
    return replace(crowd, noise_dummies=noise)


def noisy_epochs(
    crowd: ShuffledEpoch, true_counts: Counts, epochs: int, chance: np.random.Generator
) -> Iterator[Floats]:
    """Estimates of epochs, whose lies are drawn from the exact law and dummies as they are."""
    noise, values = crowd.noise_dummies, len(true_counts)
    assert noise is not None  # noqa: S101 they have some
    mechanism = build("grr", epsilon=crowd.epsilon_local, categories=values)
    some = np.flatnonzero(true_counts)
    law, expected = epochs_law(noise, (1.0,)), noise.reach * values
    for _ in range(epochs):
        cells = np.array(draw(mechanism, some.tolist(), true_counts[some].tolist(), chance).cells)
        dummies = chance.choice(len(law), values, p=law / law.sum())
        totals = Totals(
            cells=(cells + dummies).tolist(),
            reports=crowd.reports + int(dummies.sum()) - expected,
            dummies=expected,
            beside_variance=values * noise.variance,
            value_law=law.tolist(),
        )
        yield estimates_of(mechanism, totals)[0]
