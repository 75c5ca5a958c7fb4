"""Capturing what an app reports, by raw value: the one thing that never leaves a real device."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hubbub.client.client import Client
from hubbub.client.outcome import Outcome
from hubbub.client.settings import Settings
from hubbub.client.testing.clients import memory_client


@dataclass(frozen=True, slots=True)
class Report:
    """One call of report(), and what came of it."""

    metric: str
    value: Any
    outcome: Outcome


@dataclass(slots=True)
class Captured:
    """Every call of report(), by every client, in order."""

    reports: list[Report] = field(default_factory=list)

    def values(self, metric: str) -> list[Any]:
        """What was queued, or noted for a later report, for one metric."""
        return [
            report.value
            for report in self.reports
            if report.metric == metric and report.outcome in {Outcome.QUEUED, Outcome.NOTED}
        ]


@contextlib.contextmanager
def capture() -> Iterator[Captured]:
    """While this lasts clients keep to memory and send nothing, and all they report is captured.

    `Client.from_bundle()` and `hubbub.client.init()` give strict clients in memory; the bundle is
    read and checked as ever, so that a metric or a value that is not there fails the test.
    """
    captured = Captured()
    report = Client.report

    def recording(self: Client, metric: str, value: Any = None) -> Outcome:
        outcome = report(self, metric, value)
        captured.reports.append(Report(metric, value, outcome))
        return outcome

    def in_memory(path: str | os.PathLike[str] | None = None, **_settings: Any) -> Client:
        return memory_client(Path(Settings.read(bundle=path).bundle))

    with patch.object(Client, "report", recording), patch.object(Client, "from_bundle", in_memory):
        yield captured
