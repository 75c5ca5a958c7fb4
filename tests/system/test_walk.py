"""An editor's new menu over weeks, through running services, with every figure beside the truth.

"Does the new menu shorten the median time to save, and do people come back?" As a program it prints
all figures, of which docs/research/statistics.md has some: python -m tests.system.test_walk 5000
"""

import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import NormalDist
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import numpy as np
import pytest

from hubbub.catalog import EPOCH_SECONDS, epoch_at, epoch_start
from hubbub.cli.commands.demo import close_epochs
from hubbub.cli.terminal.output import say
from hubbub.client import Client, MemoryState, transport_to
from hubbub.client.testing import FakeClock, coins
from hubbub.conservation import balances
from hubbub.epochs import epoch_date
from hubbub.errors import ServiceUnavailable
from hubbub.installation.local_run import LocalRun, Ports
from hubbub.notebook.connection import Connection
from tests.support.catalogs import catalog_of, catalog_toml, metric_toml
from tests.support.law_terms import total_counts
from tests.support.other_time import OtherTime, needs_compiler
from tests.support.waiting import HANG_SECONDS, eventually

pytestmark = [pytest.mark.thorough, needs_compiler]

DAY, WEEK = EPOCH_SECONDS["day"], EPOCH_SECONDS["week"]
COHORTS: Final = 3
"""First weeks; a device begins in one of them."""
BACK = {"control": (1.0, 0.6, 0.45, 0.3, 0.25, 0.2), "new": (1.0, 0.75, 0.6, 0.45, 0.35, 0.3)}
"""Chance of use in each week from the first on."""
COUNTED_WEEKS: Final = 3
MEDIANS = {"control": 7.0, "new": 4.0}
SPREAD: Final = 0.5
"""Of the logarithm of the time."""
STEPS = ("open", "edit", "save")
FURTHEST = (0.3, 0.3, 0.4)
CRASHED: Final = 0.2
FIXED: dict[str, Any] = {"epsilon": 4.0, "min_batch": 20, "lifetime_epsilon": 500.0}
WEEKLY: dict[str, Any] = {**FIXED, "epoch": "week", "mechanism": "grr", "experiment": "new_menu"}
RATE = 'rate = { of = "crashed", per = "started", most = 5 }'
EDGES = [0, 1, 2, 3, 4, 5, 6, 8, 12, 20, 60]
CATALOG = catalog_toml(
    "[experiments.new_menu]\narms = { control = 1, new = 1 }\n",
    metric_toml("time_to_save", kind="duration", unit="s", edges=EDGES, **WEEKLY),
    metric_toml("comeback", f"weeks = {COUNTED_WEEKS}", kind="retention", **WEEKLY),
    metric_toml("saving", f"steps = {list(STEPS)}", kind="funnel", **WEEKLY),
    metric_toml("actives", kind="activity", mechanism="grr", **FIXED),
    metric_toml("crashes", RATE, **{**FIXED, "epoch": "week", "mechanism": "auto"}),
)


class Row(NamedTuple):
    """A figure beside the truth."""

    figure: str
    truth: float
    estimate: float
    low: float
    high: float


class Fleet:
    """Devices of an app, with what they really did; each keeps its state through all weeks."""

    def __init__(self, size: int, weeks: int, run: LocalRun, begin: int) -> None:
        self._chance = np.random.default_rng(45)
        self._clock = FakeClock(float(begin))
        self._begin, self._weeks = begin, weeks
        transport = transport_to(run.bundle.shuffler, roots=run.bundle.roots)
        states = [MemoryState(self._chance.bytes(32)) for _ in range(size)]
        fixed: dict[str, Any] = {"hold_seconds": None, "clock": self._clock}
        self.clients = [
            Client(run.bundle, state, transport, coins=coins(str(number)), **fixed)
            for number, state in enumerate(states)
        ]
        self.arms = [client.arm("new_menu") for client in self.clients]
        self.came: Counter[tuple[str, int, int]] = Counter()
        """Devices that came, by arm, first week and week after it."""
        self.seconds: dict[int, list[float]] = {}
        """Times to save, by week."""
        self.reached: Counter[str] = Counter()
        self.events: Counter[str] = Counter()
        self.active: dict[int, set[int]] = {}
        """Numbers of the devices that were used, by day."""
        self.weeks_of: Counter[int] = Counter()
        """Number of weeks of use, by device."""

    def live(self, week: int, until: int) -> None:
        """Lets devices live through the first days of a week, one or two."""
        days = [self._days(number, week) for number in range(len(self.clients))]
        self.seconds[week] = []
        for day in range(until):
            moment = self._begin + week * WEEK + day * DAY
            self._clock.set(float(moment))
            self.active[epoch_at(moment, "day")] = {
                number for number, used in enumerate(days) if day in used
            }
            for number, client in enumerate(self.clients):
                if day in days[number]:
                    client.report("actives")
                    client.report("comeback")
                    if day == days[number][0]:
                        self._save(client, self.arms[number], week)
                assert client.flush(HANG_SECONDS)

    def _days(self, number: int, week: int) -> tuple[int, ...]:
        """The days of this week on which a device is used; none after the last week."""
        first, arm = number % COHORTS, self.arms[number]
        chance = BACK[arm][week - first] if first <= week < self._weeks else 0.0
        if self._chance.random() >= chance:
            return ()
        self.came[arm, first, week - first] += 1
        self.weeks_of[number] += 1
        return ((0,), (1,), (0, 1))[self._chance.integers(3)]

    def _save(self, client: Client, arm: str, week: int) -> None:
        self.seconds[week].append(MEDIANS[arm] * float(np.exp(self._chance.normal(0, SPREAD))))
        client.report("time_to_save", self.seconds[week][-1])
        for step in STEPS[: int(self._chance.choice(len(STEPS), p=FURTHEST)) + 1]:
            client.report("saving", step)
            self.reached[step] += 1
        for crashed in self._chance.random(int(self._chance.integers(1, 6))) < CRASHED:
            for event in ("started", "crashed")[: 1 + crashed]:
                client.report("crashes", event)
                self.events[event] += 1

    def share_back(self, week: int, weeks: int, **of: Any) -> float:
        """Share that came back in a week after the first, of an `arm` or a `cohort` or of all."""
        arms, cohorts = of.get("arms", BACK), of.get("cohorts", range(min(COHORTS, weeks - week)))
        back, first = (sum(self.came[a, c, w] for a in arms for c in cohorts) for w in (week, 0))
        return back / first


def looked_at(experiment: Mapping[str, Any], fleet: Fleet, weeks: int) -> Iterator[Row]:
    """The effects of an experiment after so many weeks."""
    came = {
        arm: Counter({w: sum(fleet.came[arm, c, w] for c in range(COHORTS)) for w in range(weeks)})
        for arm in BACK
    }
    truths = {f"share from {a} to {b}": 0.0 for a in STEPS for b in STEPS}
    for week in range(COUNTED_WEEKS + 1):
        new, control = (came[arm][week] / came[arm].total() for arm in ("new", "control"))
        truths[f"share of week {week}"] = new - control
    for measure, share in (("p50", 0.5), ("p95", 0.95)):
        longer = float(np.exp(SPREAD * NormalDist().inv_cdf(share)))
        truths[measure] = (MEDIANS["new"] - MEDIANS["control"]) * longer
    for row in experiment["arms"]:
        if row["metric"] == "time_to_save":
            figure, reports = f"week {weeks}: reports of {row['arm']}", row["reports"]
            yield Row(figure, came[row["arm"]].total(), reports, reports, reports)
    for row in experiment["values"]:
        if row["measure"] in truths and row["difference"] is not None:
            figure = f"week {weeks}: effect on {row['metric']}, {row['measure']}"
            truth = truths[row["measure"]]
            yield Row(figure, truth, row["difference"], row["low"], row["high"])


def figured(connection: Connection, fleet: Fleet, weeks: int, begin: int) -> Iterator[Row]:
    """The figures of all weeks."""
    for by in ("", "new_menu"):
        for row in connection.figures("comeback", by).document["values"]:
            of = {"arms": [row["part"]]} if by else {}
            truth = fleet.share_back(int(row["figure"].split()[-1]), weeks, **of)
            yield _row(f"{row['figure']} {row['part']}", truth, row)
    first = epoch_at(begin, "week")
    dates = {epoch_date(first + cohort, WEEK): cohort for cohort in range(COHORTS)}
    for row in connection.figures("comeback", cohorts=True).document["values"]:
        if (cohort := dates.get(row["dates"])) is None:
            continue  # a week in which nobody began
        truth = fleet.share_back(int(row["figure"].split()[-1]), weeks, cohorts=[cohort])
        yield _row(f"{row['figure']}, cohort {cohort + 1}", truth, row)
    for row in connection.figures("saving", epochs="all").document["values"]:
        start, end = row["figure"].split(" to ")
        yield _row(row["figure"], fleet.reached[end] / fleet.reached[start], row)
    for row in connection.figures("crashes", epochs="all").document["values"]:
        yield _row(row["figure"], fleet.events["crashed"] / fleet.events["started"], row)
    for row in connection.figures("actives").document["values"]:
        since, _, until = row["dates"].replace(", ", "..").partition("..")
        until = until.rpartition("..")[2] or since
        devices = [
            used for day, used in fleet.active.items() if since <= epoch_date(day, DAY) <= until
        ]
        yield _row(f"{row['figure']}, {since}", len(set().union(*devices)), row)


def quantiles(connection: Connection, fleet: Fleet, begin: int) -> Iterator[Row]:
    """Percentiles of all times to save, and how far the median moved."""
    times = np.concatenate(list(fleet.seconds.values()))
    for row in connection.percentiles("time_to_save", epochs="all").document["percentiles"]:
        truth = float(np.percentile(times, row["percentile"]))
        yield _row(f"p{row['percentile']:g} of time_to_save", truth, row)
    weeks = [epoch_date(epoch_at(begin, "week") + week, WEEK) for week in (0, 1)]
    shift = connection.compare("time_to_save", *weeks, percentiles=(50,)).document["percentiles"][0]
    truth = float(np.median(fleet.seconds[1]) - np.median(fleet.seconds[0]))
    yield Row("median shift, week 1 to 2", truth, shift["difference"], shift["low"], shift["high"])


def _row(figure: str, truth: float, row: dict[str, Any]) -> Row:
    return Row(figure.strip(), truth, row["estimate"], row["low"], row["high"])


def _counted(run: LocalRun) -> None:
    """Waits until every report is counted, or withheld with a batch that was too small."""
    if not run.bundle.development:
        close_epochs(run.shuffler_redis)

    def all_counted() -> bool:
        terms = total_counts(run.endpoints)
        arrived = terms["counted"] + terms["withheld"]
        return terms["acknowledged"] == arrived and balances(terms)

    eventually(all_counted, although=(ServiceUnavailable,))


def walk(
    home: Path, patch: pytest.MonkeyPatch, devices: int, weeks: int, *, development: bool
) -> list[Row]:
    """What a running hubbub answers of a fleet in the coming weeks.

    It starts anew every week, on the second day, when the reports of the first come late.
    """
    times, ports = OtherTime(home, patch), Ports.free()
    begin = epoch_start(epoch_at(time.time(), "week") + 1, "week") + DAY + DAY // 2
    catalog, rows, fleet = catalog_of(CATALOG), list[Row](), None
    for week in range(weeks + 1):
        # In the last week, devices send on its first day what they counted before.
        days = 2 if week < weeks else 1
        times.set(int(begin + week * WEEK + (days - 1) * DAY - time.time()))
        with LocalRun(home / "run", catalog, ports, development=development) as run:
            fleet = fleet or Fleet(devices, weeks, run, begin)
            fleet.live(week, days)
            _counted(run)
            connection = run.endpoints.connection
            experiment = connection.experiment("new_menu").document
            if week < weeks:
                rows += looked_at(experiment, fleet, week + 1)
            else:
                rows += figured(connection, fleet, weeks, begin)
                rows += quantiles(connection, fleet, begin)
    assert fleet is not None
    for number, client in enumerate(fleet.clients):
        spent = {metric.name: metric.spent for metric in client.ledger().metrics}
        assert spent["comeback"] == pytest.approx(4.0 * fleet.weeks_of[number]), "once a week"
    return rows


def test_every_figure_is_near_the_truth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = walk(tmp_path, monkeypatch, 300, 3, development=False)
    for row in rows:
        # Three times as far as 95%: one of all is outside with a chance below 1e-6. Some are exact.
        assert abs(row.estimate - row.truth) <= 3 * (row.high - row.low) / 2 + 1e-6, row
    assert len(rows) > 50


if __name__ == "__main__":
    tables = []
    for development in (True, False):
        with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
            tables.append(walk(Path(folder), patch, int(sys.argv[1]), 6, development=development))
    for dev, services in zip(*tables, strict=True):
        cells = [f"{row.estimate:.3g} ({row.low:.3g} to {row.high:.3g})" for row in (dev, services)]
        say(f"| {dev.figure} | {dev.truth:.3g} | {' | '.join(cells)} |")
