"""A model of the census people from as many SDK devices, through the services, to its last round.

`hubbub up --dev` has rounds of a minute; every device has a client of its own, which randomizes,
seals and sends over gRPC, and the shuffler's and the aggregator's processes do the rest. It says
what the model is worth on people held out, in the file and as devices tell it that taught nothing,
and whether the law balances.

By hand, as long as there are rounds: python -m benchmarks.learning --devices 24000 --epsilon 4
"""

import argparse
import csv
import gzip
import json
import multiprocessing
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import numpy as np

from hubbub.analysis.models.model_quality import evaluate
from hubbub.authoring import Catalog, read_catalog
from hubbub.bundles import read_bundle
from hubbub.catalog.models.model_features import features_of
from hubbub.catalog.models.model_metric import with_minute_rounds
from hubbub.client import Client, MemoryState, Outcome, transport_to
from hubbub.conservation import balances
from hubbub.errors import HubbubError
from hubbub.installation.local_run import LocalRun, Ports
from hubbub.simulation.model_rehearsal import without_privacy
from tests.support.law_terms import total_counts

_LISTED: Final = ("workclass", "education", "marital_status", "occupation")
_RANGES: Final = {
    "age": [17, 25, 30, 35, 40, 50, 60, 90],
    "hours_per_week": [0, 35, 40, 41, 50, 99],
}
_PROCESSES: Final = 3
_LEAD_SECONDS: Final = 120  # until the first round: clients are made meanwhile
_DRAIN_SECONDS: Final = 90.0
_REFUSALS: Final = {Outcome.ALREADY_REPORTED, Outcome.OVER_BUDGET}
Person = dict[str, Any]


def main() -> int:
    """Learn it and say how it went: 1 if the law does not balance."""
    parser = argparse.ArgumentParser(description="A model from devices, through the services.")
    parser.add_argument("--devices", type=int, default=24_000)
    parser.add_argument("--epsilon", type=float, default=4.0)
    parser.add_argument("--rounds", type=int, default=14)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rows = _people(args.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "metrics.toml").write_text(_catalog(rows, args.epsilon, args.rounds))
        catalog = read_catalog(folder / "metrics.toml")
        with _Learning(folder / "home", catalog, Ports.free(), development=True) as run:
            threading.Thread(target=_publishing, args=(run,), daemon=True).start()
            outcomes = _devices(run, rows[: args.devices], args.rounds)
            model = run.endpoints.connection.model("income").document
            terms = total_counts(run.endpoints)
    result = _figures(model, rows, args.devices) | {"outcomes": outcomes, "terms": terms}
    result["balances"] = balances(terms)
    print(json.dumps(result, indent=1))
    return 0 if result["balances"] else 1


class _Learning(LocalRun):
    """Whose first round is later: 24,000 clients take a while to make."""

    def _with_short_rounds(self) -> Catalog:
        soon = (time.time() + _LEAD_SECONDS) // 60 * 60
        begins = datetime.fromtimestamp(soon, UTC)
        metrics = self._catalog.metrics.items()
        return replace(
            self._catalog,
            metrics={name: with_minute_rounds(metric, begins) for name, metric in metrics},
        )


def _people(seed: int) -> list[Person]:
    """All census people, in an order by the seed."""
    people_file = files("hubbub.cli") / "demo_data" / "census_people.csv.gz"
    rows: list[Person] = list(
        csv.DictReader(gzip.decompress(people_file.read_bytes()).decode().splitlines())
    )
    for row in rows:
        row.update({name: float(row[name]) for name in _RANGES})
    return [rows[at] for at in np.random.default_rng(seed).permutation(len(rows))]


def _catalog(rows: list[Person], epsilon: float, rounds: int) -> str:
    features: dict[str, Any] = dict(_RANGES)
    features |= {name: sorted({row[name] for row in rows}) for name in _LISTED}
    feature_lines = "\n".join(f"{name} = {json.dumps(says)}" for name, says in features.items())
    return f"""
shuffler = "127.0.0.1:1"

[models.income]
description = "Income above 50K"
owner = "bench@example.org"
expires = 2099-12-31
epoch = "day"
min_batch = 100
epsilon = {epsilon}
kind = "logistic"
label = "income"
positive = ">50K"
negative = "<=50K"
begins = 2026-01-01
rounds = {rounds}
held_out = 0.1

[models.income.features]
{feature_lines}
"""


def _publishing(run: LocalRun) -> None:
    """Sign each new state, as `hubbub up` does."""
    while True:
        with suppress(HubbubError):
            run.publish_models()
        time.sleep(1)


def _devices(run: LocalRun, rows: list[Person], rounds: int) -> dict[str, int]:
    """All devices say what their apps know until the last round is over: what was said to them."""
    until = time.time() + _LEAD_SECONDS + 60 * (rounds + 2)
    parts = [(str(run.bundle_path), rows[at::_PROCESSES], until) for at in range(_PROCESSES)]
    counts: Counter[str] = Counter()
    with multiprocessing.get_context("spawn").Pool(_PROCESSES) as pool:
        for part_outcomes in pool.starmap(_report_examples, parts):
            counts.update(part_outcomes)
    time.sleep(_DRAIN_SECONDS)
    return dict(counts)


def _report_examples(path: str, rows: list[Person], until: float) -> Counter[str]:
    bundle = read_bundle(Path(path))
    shuffler = transport_to(bundle.shuffler, roots=bundle.roots)
    waiting = [(Client(bundle, MemoryState(), shuffler, hold_seconds=None), row) for row in rows]
    names = [feature.name for feature in bundle.model("income").features]
    counts: Counter[str] = Counter()
    while waiting and time.time() < until:
        remaining = []
        for device, row in waiting:
            outcome = device.learn("income", [row[name] for name in names], row["income"])
            if outcome is not Outcome.NOT_ITS_ROUND:
                device.flush()
            if outcome is Outcome.QUEUED or outcome in _REFUSALS:
                counts[outcome.name] += 1
            else:
                remaining.append((device, row))
        waiting = remaining
        print(f"{len(waiting)} of {len(rows)} have yet to tell", file=sys.stderr, flush=True)
        time.sleep(1)
    counts["LEFT"] += len(waiting)
    return counts


def _figures(model: Mapping[str, Any], rows: list[Person], devices: int) -> dict[str, Any]:
    """What the model is worth on people who are no devices here."""
    *slopes, intercept = (coefficient["coefficient"] for coefficient in model["coefficients"])
    columns, labels = _coded_rows(rows)
    test = slice(devices, None)
    score = columns[test] @ np.array(slopes) + intercept
    plain = without_privacy("logistic", columns[:devices], labels[:devices], 0.0)
    beside = columns[test] @ plain[:-1] + plain[-1]
    return {
        "tested": len(rows) - devices,
        "auc": evaluate("logistic", score, labels[test]).auc,
        "without_privacy": evaluate("logistic", beside, labels[test]).auc,
        "held_out": model["held_out"],
        "reports": [step["reports"] for step in model["steps"]],
        "noise": [round(step["noise"], 3) for step in model["steps"]],
    }


def _coded_rows(rows: list[Person]) -> tuple[Any, Any]:
    features = dict(_RANGES) | {name: sorted({row[name] for row in rows}) for name in _LISTED}
    every = features_of(features)
    coded = [[x for feature in every for x in feature.coded(row[feature.name])[0]] for row in rows]
    return np.array(coded), np.array([float(row["income"] == ">50K") for row in rows])


if __name__ == "__main__":
    sys.exit(main())
