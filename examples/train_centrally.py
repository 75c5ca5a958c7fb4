"""Central training on data that you may hold: DP-SGD and output perturbation, with numpy alone.

python examples/train_centrally.py --epsilon 1 --delta 1e-6

learns from the census people of the demo whether an income is above 50K, and says how good it is
on people held out. The noise of DP-SGD (Abadi et al., CCS 2016) is the least whose steps compose to
the epsilon asked for, by `hubbub.privacy.composition`. Output perturbation (Chaudhuri, Monteleoni,
Sarwate, JMLR 2011, algorithm 1) adds noise once, to the solution of a strongly convex problem.

To learn from: it draws by numpy's generator and works in floats, so that what it prints is a
rehearsal. Opacus and diffprivlib draw their noise safely.
"""

import argparse
import csv
import gzip
from collections.abc import Sequence
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from hubbub.analysis.models.model_quality import evaluate
from hubbub.catalog.models.model_features import features_of
from hubbub.privacy.composition import Event, compose
from hubbub.simulation.model_rehearsal import without_privacy

Floats = NDArray[np.float64]

TEST = 6_162
FEATURES = {
    "age": [17, 25, 30, 35, 40, 50, 60, 90],
    "hours_per_week": [0, 35, 40, 41, 50, 99],
}
LISTED = ("workclass", "education", "marital_status", "occupation")
BATCH = 1_024  # on average: each person is in a batch by a coin of their own
STEPS = 240
CLOSE = 1.01  # to the least noise that there could be
RATE = 8.0
# Of output perturbation: what a squared coefficient costs. More needs less noise, and learns less.
PENALTY = 0.01


def people() -> tuple[Floats, Floats]:
    """Columns at length 1, shape (people, columns), a last one for the intercept; and labels."""
    people_file = files("hubbub.cli") / "demo_data" / "census_people.csv.gz"
    rows = list(csv.DictReader(gzip.decompress(people_file.read_bytes()).decode().splitlines()))
    features = {**FEATURES, **{name: sorted({row[name] for row in rows}) for name in LISTED}}
    coded = [
        [
            x
            for feature in features_of(features)
            for x in feature.coded(_value(row, feature.name))[0]
        ]
        for row in rows
    ]
    columns = np.column_stack([np.array(coded), np.ones(len(rows))])
    labels = np.array([float(row["income"] == ">50K") for row in rows])
    return columns / np.linalg.norm(columns, axis=1)[:, None], labels


def _value(row: dict[str, str], name: str) -> float | str:
    return row[name] if name in LISTED else float(row[name])


def noise_for(epsilon: float, delta: float, sampling: float, steps: int) -> float:
    """The least sigma, in clips, to 1%, with which the steps compose to epsilon at delta."""
    low, high = 0.3, 64.0
    while high / low > CLOSE:
        middle = (low * high) ** 0.5
        composition = compose([Event(sigma=middle, sampling=sampling, times=steps)], delta)
        low, high = (low, middle) if composition.pld <= epsilon else (middle, high)
    return high


def dp_sgd(columns: Floats, labels: Floats, sigma: float, rng: np.random.Generator) -> Floats:
    """Weights of the mean of the later half of the steps. Gradients are clipped to length 1."""
    weights, later = np.zeros(columns.shape[1]), np.zeros(columns.shape[1])
    for step in range(STEPS):
        batch = rng.random(len(labels)) < BATCH / len(labels)
        x, y = columns[batch], labels[batch]
        # Columns have length 1, and so no gradient is longer: nothing is left to clip.
        whole = (1 / (1 + np.exp(-x @ weights)) - y) @ x
        noisy = (whole + sigma * rng.standard_normal(len(weights))) / BATCH
        weights = weights - RATE * noisy
        later += weights * (step >= STEPS // 2)
    return later / (STEPS - STEPS // 2)


def output_perturbation(
    columns: Floats, labels: Floats, epsilon: float, rng: np.random.Generator
) -> Floats:
    """The regularised solution, and a vector of length Gamma(d, 2/(n penalty epsilon)) added."""
    n, d = columns.shape
    solved = np.zeros(d)
    for _ in range(30):
        probabilities = 1 / (1 + np.exp(-columns @ solved))
        slope = columns.T @ (probabilities - labels) / n + PENALTY * solved
        curved = (
            columns * (probabilities * (1 - probabilities))[:, None]
        ).T @ columns / n + PENALTY * np.eye(d)
        solved = solved - np.linalg.solve(curved, slope)
    direction = rng.standard_normal(d)
    length = rng.gamma(d, 2 / (n * PENALTY * epsilon))
    weights: Floats = solved + length * direction / np.linalg.norm(direction)
    return weights


def main(arguments: Sequence[str] | None = None) -> None:
    """Train both ways, and say how good each is beside a model without privacy."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-6)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(arguments)
    rng = np.random.default_rng(args.seed)
    columns, labels = people()
    order = rng.permutation(len(labels))
    train, test = order[TEST:], order[:TEST]
    sampling = BATCH / len(train)
    sigma = noise_for(args.epsilon, args.delta, sampling, STEPS)
    spent = compose([Event(sigma=sigma, sampling=sampling, times=STEPS)], args.delta).pld
    plain = without_privacy("logistic", columns[train][:, :-1], labels[train], 0.0)
    learned = {
        f"DP-SGD, sigma {sigma:.3f}, {STEPS} steps, epsilon {spent:.4f} at {args.delta:g}": dp_sgd(
            columns[train], labels[train], sigma, rng
        ),
        f"output perturbation, epsilon {args.epsilon:g}": output_perturbation(
            columns[train], labels[train], args.epsilon, rng
        ),
        "without privacy": plain,
    }
    for name, weights in learned.items():
        last = 1.0 if name == "without privacy" else columns[test][:, -1]
        score = columns[test][:, :-1] @ weights[:-1] + weights[-1] * last
        evaluation = evaluate("logistic", 1 / (1 + np.exp(-score)), labels[test])
        print(f"{name}: AUC {evaluation.auc:.3f}, accuracy {evaluation.accuracy:.3f}")


if __name__ == "__main__":
    main()
