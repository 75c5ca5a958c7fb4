"""AUC and calibration by randomized reports: without bias, in intervals that hold."""

import numpy as np
import pytest

from hubbub.analysis.arrays import Floats
from hubbub.analysis.models import edges_of, evaluate, judge
from hubbub.mechanisms.grr import GeneralizedRandomizedResponse

pytestmark = pytest.mark.thorough

BINS = 6
EDGES = [-2.0, -1.0, 0.0, 1.0, 2.0]
# Of people by bin: who has not the label, and who has.
SHARES = np.array([[20, 1], [18, 3], [14, 6], [9, 8], [4, 8], [2, 7]]) / 100.0


def _auc(shares: Floats) -> float:
    labels = np.repeat(np.tile([0.0, 1.0], BINS), np.rint(shares.ravel() * 100).astype(int))
    bins = np.repeat(np.repeat(np.arange(BINS), 2), np.rint(shares.ravel() * 100).astype(int))
    found = evaluate("logistic", bins.astype(float), labels).auc
    assert found is not None
    return found


def _sent(told: GeneralizedRandomizedResponse) -> Floats:
    p, q = float(told.channel.p), float(told.channel.q)
    return q + (p - q) * SHARES.ravel()


def test_of_many_reports_it_is_the_auc_of_bins_and_what_is_true_of_them() -> None:
    told = GeneralizedRandomizedResponse(1.0, 2 * BINS)
    counts = _sent(told) * 1e12
    found = judge("logistic", told.channel, counts, EDGES, 0.95)
    assert found is not None
    assert found.auc is not None
    assert found.auc.estimate == pytest.approx(_auc(SHARES), abs=1e-4)
    truth = SHARES[:, 1] / SHARES.sum(axis=1)
    assert [one.true.estimate for one in found.calibration] == pytest.approx(truth, abs=1e-4)
    people = [one.people for one in found.calibration]
    assert people == pytest.approx(SHARES.sum(axis=1), abs=1e-4)
    ends = [one.lowest for one in found.calibration]
    assert ends == sorted(ends)
    assert (ends[0], found.calibration[-1].highest) == (0.0, 1.0)
    # Residuals clipped at 1/2 leave chances of 1/2 where they are.
    assert ends[3] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("epsilon", "reports"),
    [(0.7, 300), (0.7, 2_000), (2.0, 400), (4.0, 2_000), (8.0, 200), (8.0, 500_000_000)],
)
def test_95_percent_intervals_hold(epsilon: float, reports: int) -> None:
    """1,000 collections: a share below .91 has a false-alarm rate of 1e-7 if 95% hold."""
    told = GeneralizedRandomizedResponse(epsilon, 2 * BINS)
    auc, truth = _auc(SHARES), SHARES[:, 1] / SHARES.sum(axis=1)
    held, of_bins = 0, np.zeros(BINS)
    for counts in np.random.default_rng(1).multinomial(reports, _sent(told), 1000):
        found = judge("logistic", told.channel, counts.astype(float), EDGES, 0.95)
        assert found is not None
        assert found.auc is not None
        held += found.auc.low <= auc <= found.auc.high
        of_bins += [
            one.true.low <= share <= one.true.high
            for one, share in zip(found.calibration, truth, strict=True)
        ]
    assert held > 910
    assert (of_bins > 910).all()


def test_of_nobody_nothing_is_said_and_where_nobody_has_the_label_all_is_possible() -> None:
    told = GeneralizedRandomizedResponse(4.0, 2 * BINS)
    nobody = np.zeros(2 * BINS)
    assert judge("logistic", told.channel, nobody, EDGES, 0.95) is None
    none = nobody.copy()
    none[::2] = 5
    found = judge("logistic", told.channel, none, EDGES, 0.95)
    assert found is not None
    assert found.auc is not None
    assert found.auc.high - found.auc.low > 0.5
    assert all(one.true.low == 0 and one.true.high > 0.1 for one in found.calibration)
    numbers = judge("linear", told.channel, none, EDGES, 0.95)
    assert numbers is not None
    assert numbers.auc is None


def test_where_no_share_is_likely_an_interval_is_as_wide_as_chance_is_there() -> None:
    told = GeneralizedRandomizedResponse(1.0, 2 * BINS)
    unlikely = 0
    for counts in np.random.default_rng(2).multinomial(1_000, _sent(told), 300):
        found = judge("logistic", told.channel, counts.astype(float), EDGES, 0.95)
        assert found is not None
        assert found.auc is not None
        shares = [found.auc, *(one.true for one in found.calibration)]
        assert all(one.low <= one.estimate <= one.high for one in shares)
        assert all(one.high - one.low > 0.01 for one in shares)
        unlikely += sum(one.estimate in {0.0, 1.0} for one in shares)
    assert unlikely > 100


def test_edges_have_about_as_many_people_between_them() -> None:
    chance = np.random.default_rng(1)
    centre = np.linspace(0.2, 0.8, 12)
    weights = np.append(chance.normal(0, 1, 12), 0.3)
    people = chance.random((20_000, 12)) < centre
    scores = (people - centre) @ weights[:-1] + weights[-1]
    edges = edges_of(centre, weights, 8)
    shares = np.bincount(np.searchsorted(edges, scores), minlength=8) / len(scores)
    assert shares.min() > 0.05
    assert shares.max() < 0.2
    assert edges == [float(f"{one:.6g}") for one in edges]
