"""Quality of a model, on people with known labels or from randomized bins: AUC and calibration.

A randomized report is one of 2 bins categories, 2 bin + label. With its unit vector e_x, v = (e_x -
q) / (p - q) has the categories' shares t as its mean. The AUC is A(t) / D(t): D counts pairs of a
person with the label and one without, A those in the model's order, with half for pairs in the same
bin. Both are functions of two reports, so their means over all pairs of reports, V' M V, are
unbiased, with the exact variance 4 (n-2) / (n (n-1)) times that of one report's part plus 2 / (n
(n-1)) times that of a pair's (Hoeffding 1948). The interval contains all shares s for which A - s D
is within its standard errors of 0 (Fieller 1954): it is also valid, and wide, where D is small.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from statistics import NormalDist
from typing import Final

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.analysis.models.definition import normal_points, root, settled
from hubbub.analysis.uncertainty.intervals import reach_of
from hubbub.mechanisms.gradient import ModelKind
from hubbub.mechanisms.pure_protocols import Pure

_FEWEST: Final = 3
# Count added to each category when the error of the counts is estimated.
_UNSEEN: Final = 1.0
# Columns that predict a label are correlated, which spreads scores by this factor: 1.5 for the
# census people, 1 for others.
_TOGETHER: Final = 1.3
# Digits of a sent edge, so that all machines compute the same one.
_DIGITS: Final = 6


@dataclass(frozen=True, slots=True)
class Share:
    """A share in [0, 1] with its interval."""

    estimate: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Bin:
    """People with similar predictions; the first and last bin include everything beyond.

    `true` is the share of them with the label, or, for softmax, of the likeliest class; or the mean
    label in [0, 1].
    """

    lowest: float
    highest: float
    people: float
    true: Share


@dataclass(frozen=True, slots=True)
class Judgement:
    """The evaluation by people who did not train: `auc` for logistic, `accuracy` for softmax."""

    reports: int
    auc: Share | None
    accuracy: Share | None
    calibration: tuple[Bin, ...]


def edges_of(centre: Floats, weights: Floats, bins: int) -> list[float]:
    """Scores that divide people into bins of about the same size.

    Scores are assumed normal, and columns nearly independent; `weights` are of centred columns. For
    softmax the edges are probabilities of the likeliest class.
    """
    rows = weights.reshape(-1, len(centre) + 1)
    loose = _TOGETHER * rows[:, :-1] * np.sqrt(centre * (1 - centre))
    places = [share / bins for share in range(1, bins)]
    if len(rows) > 1:
        score = rows[:, -1] + normal_points(len(rows)) @ root(loose @ loose.T)
        edges = np.quantile(settled("softmax", score).max(axis=1), places).tolist()
    else:
        spread = float(np.linalg.norm(loose))
        edges = [float(weights[-1]) + spread * NormalDist().inv_cdf(share) for share in places]
    return [float(f"{edge:.{_DIGITS}g}") for edge in edges]


def judge(
    kind: ModelKind, channel: Pure, counts: Floats, edges: Sequence[float], confidence: float
) -> Judgement | None:
    """The evaluation from reports; None for fewer than three.

    `channel` has p and q of the reports, `counts` each category's number, `edges` as `edges_of`.
    """
    reports, size = int(counts.sum()), len(counts)
    if reports < _FEWEST:
        return None
    p, q = float(channel.p), float(channel.q)
    matrix = (np.eye(size) - q) / (p - q)  # a row a category that was sent
    # No category is sent more seldom than q, and of few reports none may have been.
    likely = np.maximum(counts, reports * q) + _UNSEEN
    sent = _Sent(counts / reports, likely / likely.sum(), reports, reach_of(confidence))
    cuts = edges if kind == "softmax" else settled(kind, np.array(edges)).tolist()
    bins = []
    for bin_number, (low, high) in enumerate(pairwise([0.0, *cuts, 1.0])):
        bin_weights = matrix[:, 2 * bin_number : 2 * bin_number + 2].sum(axis=1)
        with_it = matrix[:, 2 * bin_number + 1]
        people = float(sent.shares @ bin_weights)
        bins.append(Bin(low, high, people, sent.ratio(with_it, bin_weights)))
    auc = sent.ratio_of_pairs(*_forms(matrix)) if kind == "logistic" else None
    right, ones = matrix[:, 1::2].sum(axis=1), np.ones(size)
    accuracy = sent.ratio(right, ones) if kind == "softmax" else None
    return Judgement(reports, auc, accuracy, tuple(bins))


def _forms(matrix: Floats) -> tuple[Floats, Floats]:
    """Quadratic forms of two reports, for pairs in order and for all pairs; shape (size, size)."""
    places = np.arange(len(matrix)) // 2
    pairs = np.zeros(matrix.shape)
    pairs[1::2, ::2] = 1.0  # a person with the label, and one without
    order = (np.sign(places[:, None] - places[None, :]) + 1) / 2 * pairs
    numerator, denominator = (matrix @ (form + form.T) @ matrix.T / 2 for form in (order, pairs))
    return numerator, denominator


@dataclass(frozen=True, slots=True)
class _Sent:
    """The observed share of each category, and its estimated probability."""

    shares: Floats
    chances: Floats
    reports: int
    reach: float

    def ratio(self, numerator: Floats, denominator: Floats) -> Share:
        """Mean of `numerator` divided by mean of `denominator`; both have a number per category."""
        means = float(self.shares @ numerator), float(self.shares @ denominator)
        return self._share(
            *means, _difference_variance(numerator, denominator, self.chances) / (self.reports - 1)
        )

    def ratio_of_pairs(self, numerator: Floats, denominator: Floats) -> Share:
        """As `ratio`, for symmetric functions of two different reports."""
        n, chances = self.reports, self.chances
        above_mean, below_mean = (
            (n * float(self.shares @ form @ self.shares) - float(self.shares @ form.diagonal()))
            / (n - 1)
            for form in (numerator, denominator)
        )
        of_one = _difference_variance(numerator @ chances, denominator @ chances, chances)
        of_pair = _difference_variance(
            numerator.ravel(), denominator.ravel(), np.outer(chances, chances).ravel()
        )
        variance = (4 * (n - 2) * of_one + 2 * of_pair) / (n * (n - 1))
        return self._share(above_mean, below_mean, variance)

    def _share(self, numerator: float, denominator: float, variance: Floats) -> Share:
        """The ratio above/below in [0, 1] with its interval; `variance` by powers of the ratio."""
        if denominator <= 0:  # an estimate below 0 people is unusable
            return Share(0.5, 0.0, 1.0)
        # An estimate outside [0, 1] becomes the nearest end, with the width there.
        numerator = min(max(numerator, 0.0), denominator)
        ratio = numerator / denominator
        bounds = [*_ratio_ends(numerator, denominator, self.reach**2 * variance), ratio]
        return Share(ratio, min(bounds), max(bounds))


def _ratio_ends(numerator: float, denominator: float, max_ratio: Floats) -> list[float]:
    """Ends of the s in [0, 1] with (above - s below)^2 at most `max_ratio`, by powers of s."""
    constant, linear, square = (float(number) for number in max_ratio)
    bounds = [
        s
        for s in (0.0, 1.0)
        if (numerator - s * denominator) ** 2 <= constant + s * linear + s**2 * square
    ]
    # Equality of both sides, with large common terms cancelled.
    root = 4 * (
        numerator * (denominator * linear + numerator * square)
        + constant * (denominator**2 - square)
    )
    twice = 2 * (denominator**2 - square)
    if twice and (discriminant := linear**2 + root) >= 0:
        middle = 2 * numerator * denominator + linear
        edges = ((middle + sign * sqrt(discriminant)) / twice for sign in (-1, 1))
        bounds += [s for s in edges if 0 <= s <= 1]
    return bounds


def _difference_variance(numerator: Floats, denominator: Floats, chances: Floats) -> Floats:
    """Variance of above - s below, by powers of s; shape (3,)."""
    a, b = numerator - float(chances @ numerator), denominator - float(chances @ denominator)
    return np.array([chances @ (a * a), -2 * (chances @ (a * b)), chances @ (b * b)])


_GROUPS: Final = 10


@dataclass(frozen=True, slots=True)
class Group:
    """People with similar predictions: their number, mean prediction, and mean label."""

    people: int
    foretold: float
    true: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """The quality of a model on known people.

    Args:
        auc: None for a numeric label, or if only one label occurs.
        accuracy: None for a numeric label.
        rms_error: root mean squared error of the prediction, with labels in [0, 1]; for
            probabilities its square is Brier's score (1950), for classes summed over them.
        calibration: ten groups by prediction, for classes by the probability of the likeliest and
            how often it is right.
        miscalibration: mean difference in these groups, weighted by people.
    """

    people: int
    auc: float | None
    accuracy: float | None
    rms_error: float
    r_squared: float | None
    miscalibration: float
    calibration: tuple[Group, ...]


def evaluate(kind: ModelKind, foretold: Floats, labels: Floats) -> Evaluation:
    """Compares predictions with labels, which are in [0, 1], or places of classes."""
    auc, accuracy, r_squared = None, None, None
    if kind == "softmax":
        right = (foretold.argmax(axis=1) == labels).astype(float)
        groups, calibration = _groups(foretold.max(axis=1), right)
        one_hot_labels = np.eye(foretold.shape[1])[labels.astype(int)]
        square = float(((foretold - one_hot_labels) ** 2).sum(axis=1).mean())
        accuracy = float(right.mean())
    else:
        groups, calibration = _groups(foretold, labels)
        square = float(((foretold - labels) ** 2).mean())
        if kind == "logistic":
            auc = _auc(foretold, labels)
            accuracy = float(((foretold > 0.5) == (labels > 0.5)).mean())  # noqa: PLR2004 the likelier one
        elif spread := float(labels.var()):
            r_squared = 1 - square / spread
    return Evaluation(
        people=len(labels),
        auc=auc,
        accuracy=accuracy,
        rms_error=square**0.5,
        r_squared=r_squared,
        miscalibration=calibration,
        calibration=groups,
    )


def _groups(foretold: Floats, labels: Floats) -> tuple[tuple[Group, ...], float]:
    """Groups of people by prediction, and the mean difference of prediction and label in them."""
    order = np.argsort(foretold, kind="stable")
    groups = tuple(
        Group(len(part), float(foretold[part].mean()), float(labels[part].mean()))
        for part in np.array_split(order, _GROUPS)
        if len(part)
    )
    calibration = sum(group.people * abs(group.foretold - group.true) for group in groups) / len(
        labels
    )
    return groups, calibration


def _auc(foretold: Floats, labels: Floats) -> float | None:
    """Chance that a person with the label has the higher prediction: Mann, Whitney (1947)."""
    positive = labels > 0.5  # noqa: PLR2004 0 or 1
    with_label, without_label = int(positive.sum()), int((~positive).sum())
    if not with_label or not without_label:
        return None
    _, place, counts = np.unique(foretold, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[place]
    return float(
        (ranks[positive].sum() - with_label * (with_label + 1) / 2) / (with_label * without_label)
    )
