"""AUC and calibration by randomized reports: without bias, in intervals that hold."""

import numpy as np
import pytest

from hubbub.analysis.arrays import Floats
from hubbub.analysis.models.model_quality import Bin, Share, edges_of, evaluate, judge
from hubbub.mechanisms.grr import GeneralizedRandomizedResponse

pytestmark = pytest.mark.thorough

BINS = 6
EDGES = [-2.0, -1.0, 0.0, 1.0, 2.0]
# Of people by bin: who has not the label, and who has.
SHARES = np.array([[20, 1], [18, 3], [14, 6], [9, 8], [4, 8], [2, 7]]) / 100.0


def _auc(shares: Floats) -> float:
    labels = np.repeat(np.tile([0.0, 1.0], BINS), np.rint(shares.ravel() * 100).astype(int))
    bins = np.repeat(np.repeat(np.arange(BINS), 2), np.rint(shares.ravel() * 100).astype(int))
    evaluation = evaluate("logistic", bins.astype(float), labels).auc
    assert evaluation is not None
    return evaluation


def _sent_shares(mechanism: GeneralizedRandomizedResponse) -> Floats:
    p, q = float(mechanism.channel.p), float(mechanism.channel.q)
    return q + (p - q) * SHARES.ravel()


def _auc_and_bins(
    mechanism: GeneralizedRandomizedResponse, counts: Floats
) -> tuple[Share, tuple[Bin, ...]]:
    """The AUC, and the bins."""
    judgement = judge("logistic", mechanism.channel, counts, EDGES, 0.95)
    assert judgement is not None
    assert judgement.auc is not None
    return judgement.auc, judgement.calibration


def test_the_auc_of_many_reports_is_that_of_the_true_bins() -> None:
    mechanism = GeneralizedRandomizedResponse(1.0, 2 * BINS)
    auc, bins = _auc_and_bins(mechanism, _sent_shares(mechanism) * 1e12)
    assert auc.estimate == pytest.approx(_auc(SHARES), abs=1e-4)
    truth = SHARES[:, 1] / SHARES.sum(axis=1)
    assert [bucket.true.estimate for bucket in bins] == pytest.approx(truth, abs=1e-4)
    people = [bucket.people for bucket in bins]
    assert people == pytest.approx(SHARES.sum(axis=1), abs=1e-4)
    ends = [bucket.lowest for bucket in bins]
    assert ends == sorted(ends)
    assert (ends[0], bins[-1].highest) == (0.0, 1.0)
    # Residuals clipped at 1/2 leave chances of 1/2 where they are.
    assert ends[3] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("epsilon", "reports"),
    [(0.7, 300), (0.7, 2_000), (2.0, 400), (4.0, 2_000), (8.0, 200), (8.0, 500_000_000)],
)
def test_95_percent_intervals_hold(epsilon: float, reports: int) -> None:
    """1,000 collections: a share below .91 has a false-alarm rate of 1e-7 if 95% hold."""
    mechanism = GeneralizedRandomizedResponse(epsilon, 2 * BINS)
    auc, truth = _auc(SHARES), SHARES[:, 1] / SHARES.sum(axis=1)
    hits, of_bins = 0, np.zeros(BINS)
    for counts in np.random.default_rng(1).multinomial(reports, _sent_shares(mechanism), 1000):
        judged, bins = _auc_and_bins(mechanism, counts.astype(float))
        hits += judged.low <= auc <= judged.high
        of_bins += [
            bucket.true.low <= share <= bucket.true.high
            for bucket, share in zip(bins, truth, strict=True)
        ]
    assert hits > 910
    assert (of_bins > 910).all()


def test_without_reports_there_is_no_auc_and_without_labels_it_is_unknown() -> None:
    mechanism = GeneralizedRandomizedResponse(4.0, 2 * BINS)
    nobody = np.zeros(2 * BINS)
    assert judge("logistic", mechanism.channel, nobody, EDGES, 0.95) is None
    none = nobody.copy()
    none[::2] = 5
    auc, bins = _auc_and_bins(mechanism, none)
    assert auc.high - auc.low > 0.5
    assert all(bucket.true.low == 0 and bucket.true.high > 0.1 for bucket in bins)
    numbers = judge("linear", mechanism.channel, none, EDGES, 0.95)
    assert numbers is not None
    assert numbers.auc is None


def test_an_interval_without_a_likely_share_is_as_wide_as_its_noise() -> None:
    mechanism = GeneralizedRandomizedResponse(1.0, 2 * BINS)
    unlikely = 0
    for counts in np.random.default_rng(2).multinomial(1_000, _sent_shares(mechanism), 300):
        auc, bins = _auc_and_bins(mechanism, counts.astype(float))
        shares = [auc, *(bucket.true for bucket in bins)]
        assert all(share.low <= share.estimate <= share.high for share in shares)
        assert all(share.high - share.low > 0.01 for share in shares)
        unlikely += sum(share.estimate in {0.0, 1.0} for share in shares)
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
    assert edges == [float(f"{edge:.6g}") for edge in edges]
