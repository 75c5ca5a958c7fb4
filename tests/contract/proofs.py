"""The proofs: each takes any mechanism and asserts one promise by enumerating every outcome.

They raise AssertionError, so the suite can also be tried on mechanisms broken on purpose.
"""

import math
from fractions import Fraction
from functools import cache

from hubbub.mechanisms import REGISTRY, AnyMechanism, build, tally
from hubbub.mechanisms.probability import log_at_least
from tests.replay import distribution

# Estimates are floats of magnitude ~1; sums of ~2**13 of them keep 10 digits.
CLOSE = 1e-9

SMALL = [build(name, **small) for name in REGISTRY for small in REGISTRY[name].SMALL]


@cache
def rows(mechanism: AnyMechanism) -> list[dict[bytes, Fraction]]:
    """Per probed value, the exact distribution of its payloads."""
    return [
        distribution(lambda coins, v=value: mechanism.randomize(v, coins))  # type: ignore[misc]
        for value in mechanism.probes()
    ]


def chances_sum_to_one(mechanism: AnyMechanism) -> None:
    assert all(sum(row.values()) == 1 for row in rows(mechanism))


def payloads_have_one_length_and_fit_the_layout(mechanism: AnyMechanism) -> None:
    layout = mechanism.layout
    for row in rows(mechanism):
        for payload in row:
            assert len(payload) == layout.payload_bytes
            assert all(0 <= cell < layout.size for cell in layout.cells(payload))


def worst_ratio_is_within_the_claim(mechanism: AnyMechanism) -> None:
    worst = Fraction(1)
    for one in rows(mechanism):
        for other in rows(mechanism):
            assert one.keys() == other.keys(), (
                "a payload only some values can send tells them apart"
            )
            worst = max(worst, *(one[payload] / other[payload] for payload in one))
    assert log_at_least(worst) <= mechanism.privacy_loss() * (1 + 2**-49)
    if hasattr(mechanism, "epsilon"):
        assert mechanism.privacy_loss() <= mechanism.epsilon


def claim_is_not_looser_than_a_thousandth(mechanism: AnyMechanism) -> None:
    """A claim far above the truth wastes accuracy: the peers' mistakes 4 and 5."""
    worst = max(
        one[payload] / other[payload]
        for one in rows(mechanism)
        for other in rows(mechanism)
        for payload in one.keys() & other.keys()
    )
    assert math.log(worst) >= mechanism.privacy_loss() * 0.999
    if hasattr(mechanism, "epsilon"):
        assert mechanism.privacy_loss() >= mechanism.epsilon * 0.999


def estimate_is_unbiased(mechanism: AnyMechanism) -> None:
    for value, moments in zip(mechanism.probes(), _moments(mechanism), strict=True):
        for truth, (mean, _) in zip(mechanism.row(value), moments, strict=True):
            assert math.isclose(mean, truth / mechanism.groups, abs_tol=CLOSE)


def variance_is_the_variance(mechanism: AnyMechanism) -> None:
    """One report, put into one of `groups` groups by a fair coin; the law of total variance."""
    groups = mechanism.groups
    for value, moments in zip(mechanism.probes(), _moments(mechanism), strict=True):
        for true, (mean, square) in zip(mechanism.row(value), moments, strict=True):
            truth = float(true)
            claimed = (mechanism.variance(truth, 1) + truth**2) / groups - (truth / groups) ** 2
            assert math.isclose(square - mean * mean, claimed, rel_tol=CLOSE, abs_tol=CLOSE)


def likelihood_is_the_chance_up_to_a_factor(mechanism: AnyMechanism) -> None:
    """What `hubbub ledger` tells a person about a payload is Bayes' rule on the true chances."""
    values = list(mechanism.probes())
    first = rows(mechanism)[0]
    for value, row in zip(values, rows(mechanism), strict=True):
        for payload, chance in row.items():
            cells = mechanism.layout.cells(payload)
            told = mechanism.likelihood(value, cells) / mechanism.likelihood(values[0], cells)
            assert chance / first[payload] == told


PROOFS = (
    chances_sum_to_one,
    payloads_have_one_length_and_fit_the_layout,
    worst_ratio_is_within_the_claim,
    claim_is_not_looser_than_a_thousandth,
    estimate_is_unbiased,
    variance_is_the_variance,
    likelihood_is_the_chance_up_to_a_factor,
)


def _moments(mechanism: AnyMechanism) -> list[list[tuple[float, float]]]:
    """Per probed value and estimate: mean and mean square over one report's payloads."""
    every_payload = {payload for row in rows(mechanism) for payload in row}
    estimates = {
        payload: mechanism.estimate(tally(mechanism.layout, [payload])).values
        for payload in every_payload
    }
    moments = []
    for row in rows(mechanism):
        columns = zip(*(estimates[payload] for payload in row), strict=True)
        weights = [float(chance) for chance in row.values()]
        moments.append(
            [
                (
                    math.fsum(w * x for w, x in zip(weights, column, strict=True)),
                    math.fsum(w * x * x for w, x in zip(weights, column, strict=True)),
                )
                for column in columns
            ]
        )
    return moments
