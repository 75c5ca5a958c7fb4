"""Captures what an app reports, as raw values, which never leave a real device."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hubbub.client.client import Client
from hubbub.client.outcome import Outcome
from hubbub.client.server_persons import Person
from hubbub.client.settings import Settings
from hubbub.client.testing.clients import memory_client
from hubbub.fields.frozen import frozen


@frozen()
class Report:
    """One call of report(), with its outcome."""

    metric: str
    value: Any
    outcome: Outcome


@dataclass(slots=True)
class Captured:
    """All calls of report(), by all clients, in order."""

    reports: list[Report] = field(default_factory=list)

    def values(self, metric: str) -> list[Any]:
        """Returns the values of one metric that were queued, or noted for a later report."""
        return [
            report.value
            for report in self.reports
            if report.metric == metric and report.outcome in {Outcome.QUEUED, Outcome.NOTED}
        ]


@contextlib.contextmanager
def capture() -> Iterator[Captured]:
    """Within this context clients use only memory and send nothing; all reports are captured.

    `Client.from_bundle()` and `hubbub.client.init()` return strict clients in memory; they read and
    check the bundle as usual, so that an unknown metric or value fails the test.
    """
    captured = Captured()

    def recording(kind: type[Client] | type[Person]) -> Any:
        report: Any = kind.report

        def record(self: Any, metric: str, value: Any = None) -> Outcome:
            outcome: Outcome = report(self, metric, value)
            captured.reports.append(Report(metric, value, outcome))
            return outcome

        return patch.object(kind, "report", record)

    def in_memory(path: str | os.PathLike[str] | None = None, **_settings: Any) -> Client:
        return memory_client(Path(Settings.read(bundle=path).bundle))

    in_memory_only = patch.object(Client, "from_bundle", in_memory)
    with recording(Client), recording(Person), in_memory_only:
        yield captured
