"""Crowds through the services: sealed, submitted, mixed as whole epochs, counted, estimated.

Of a thousand people each has a device of its own; of more, reports are sealed by a few processes
and submitted many at a time, and all else is the same.
"""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np
import numpy.typing as npt

from benchmarks.stock import sealed_reports
from hubbub.authoring import read_with_promises
from hubbub.bundles import read_bundle
from hubbub.cli.commands.demo import close_epochs
from hubbub.client import SealedReport, TryAgain, transport_to
from hubbub.conservation import balances
from hubbub.installation.local_run import LocalRun, Ports
from hubbub.simulation.devices import send_everyone
from tests.support.law_terms import report_counts, total_counts

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

CENTRAL: Final = 1.0
DELTA: Final = 1e-8
_OWN_DEVICES: Final = 1_000  # people; of more, a device each takes too long
_SUBMISSION: Final = 500
_AT_ONCE: Final = 4
_SECONDS: Final = 60.0
_CATALOG: Final = """
[metrics.question_{number}]
description = "The same question, one of {of}"
owner = "benchmarks"
expires = 2099-12-31
epoch = "day"
mechanism = "auto"
values = {values}
central_epsilon = {central}
delta = {delta}
crowd = {people}
honest = 1.0
max_local_epsilon = 16.0
limits = {{ reports_per_epoch = 1, lifetime_epsilon = 500.0 }}
{more}
"""


def served(
    people: int, values: int, true_counts: Counts, epochs: int, more: str = ""
) -> Iterator[Floats]:
    """Estimates of as many metrics, each one epoch of these people, as the query service says.

    more: a line of each metric's table. With noise dummies the shuffler tells nobody how many
        reports there are.
    """
    names = [f"value {number}" for number in range(values)]
    metrics = [f"question_{number}" for number in range(epochs)]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "metrics.toml"
        tables = [
            _CATALOG.format(
                number=n,
                of=epochs,
                values=names,
                central=CENTRAL,
                delta=DELTA,
                people=9 * people // 10 if more else people,  # of which noise hides some
                more=more,
            )
            for n in range(epochs)
        ]
        path.write_text('shuffler = "127.0.0.1:1"\n' + "".join(tables))
        with LocalRun(Path(folder) / "home", read_with_promises(path), Ports.free()) as run:
            choices: list[int] = np.repeat(np.arange(values), true_counts).tolist()
            if people <= _OWN_DEVICES:
                everyone = [dict.fromkeys(metrics, names[choice]) for choice in choices]
                send_everyone(everyone, run.bundle_path, lambda _: None)
            else:
                _submit(run.bundle_path, metrics, choices)
            close_epochs(run.shuffler_redis)
            while True:
                counts, terms = report_counts(run.endpoints), total_counts(run.endpoints)
                # Of a number that is hidden nothing is shown before it has left.
                if len(counts) == epochs and terms["pooled"] + terms["in_flight"] == 0:
                    break
                time.sleep(0.2)
            lost = not more and terms["counted"] != epochs * people
            if lost or not all(map(balances, counts.values())):
                raise AssertionError("a report was lost or counted twice")
            for metric in metrics:
                estimates = run.endpoints.connection.estimates(metric)
                rows = {row["value"]: row["estimate"] for row in estimates}
                yield np.array([rows[name] for name in names])


def _submit(bundle_path: Path, metrics: Sequence[str], choices: Sequence[int]) -> None:
    """Everybody's report to every metric, sealed by processes, some hundred a call."""
    bundle = read_bundle(bundle_path)
    transport = transport_to(bundle.shuffler, roots=bundle.roots)

    def send(reports: list[SealedReport]) -> None:
        while True:
            try:
                transport.submit(reports, _SECONDS)
            except TryAgain as error:
                time.sleep(error.after_seconds or 1.0)
            else:
                return

    parts = [choices[first : first + _SUBMISSION] for first in range(0, len(choices), _SUBMISSION)]
    work = [(str(bundle_path), metric, part) for metric in metrics for part in parts]
    with ProcessPoolExecutor() as sealing, ThreadPoolExecutor(_AT_ONCE) as sending:
        for _ in sending.map(send, sealing.map(sealed_reports, *zip(*work, strict=True))):
            pass
    transport.close()
