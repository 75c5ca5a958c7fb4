"""An editor asks: does the new menu shorten the median time to save? Devices, services, answer."""

from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest

from hubbub.cli.commands.demo import close_epochs
from hubbub.client import Client, MemoryState, Outcome, transport_to
from hubbub.conservation import balances
from hubbub.installation.local_run import LocalRun, Ports
from tests.support.catalogs import catalog_of, catalog_toml, metric_toml
from tests.support.law_terms import total_counts
from tests.support.waiting import HANG_SECONDS, eventually

pytestmark = pytest.mark.thorough

CATALOG = catalog_toml(
    "[experiments.new_menu]\narms = { control = 1, new = 1 }\n",
    metric_toml(
        "time_to_save",
        kind="duration",
        unit="s",
        edges=[0, 1, 2, 3, 4, 5, 6, 8, 12, 20, 60],
        mechanism="grr",
        epsilon=6.0,
        min_batch=20,
        experiment="new_menu",
        lifetime_epsilon=60.0,
    ),
)
DEVICES = 300
MEDIANS = {"control": 7.0, "new": 2.5}
SPREAD = 0.5
"""Of the logarithm of the time."""


def test_the_effect_of_a_menu_is_found_beside_the_truth(tmp_path: Path) -> None:
    chance = np.random.default_rng(5)
    sizes = dict.fromkeys(MEDIANS, 0)
    with LocalRun(tmp_path / "home", catalog_of(CATALOG), Ports.free()) as run:
        transport = transport_to(run.bundle.shuffler, roots=run.bundle.roots)
        for _ in range(DEVICES):
            secret = MemoryState(chance.bytes(32))
            client = Client(run.bundle, secret, transport, hold_seconds=None)
            arm = client.arm("new_menu")
            sizes[arm] += 1
            seconds = MEDIANS[arm] * float(np.exp(chance.normal(0, SPREAD)))
            assert client.report("time_to_save", seconds) is Outcome.QUEUED
            assert client.flush(HANG_SECONDS)
        transport.close()
        close_epochs(run.shuffler_redis)

        def all_counted() -> bool:
            terms = total_counts(run.endpoints)
            return terms["counted"] == DEVICES and balances(terms)

        eventually(all_counted)
        document = run.endpoints.connection.experiment("new_menu").document
    reports = {row["arm"]: row["reports"] for row in document["arms"]}
    assert reports == sizes
    assert document["ratio_fits"]
    rows = {row["measure"]: row for row in document["values"]}
    for measure, share in (("p50", 0.5), ("p95", 0.95)):
        longer = float(np.exp(SPREAD * NormalDist().inv_cdf(share)))
        truth = (MEDIANS["new"] - MEDIANS["control"]) * longer
        assert rows[measure]["low"] <= truth <= rows[measure]["high"], rows[measure]
    assert rows["p50"]["shown"]
    assert "time_to_save, p50: new is lower by" in document["verdict"]
