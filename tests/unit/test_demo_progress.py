"""What the commands that run everything show: progress, and that Ctrl-C ends them."""

from types import SimpleNamespace
from typing import cast

import pytest

from hubbub.cli.commands import demo
from hubbub.cli.commands.up import until_interrupted
from hubbub.conservation import TERMS
from hubbub.installation.local_run import LocalRun


def test_the_bar_counts_reports_without_dummies_and_never_more_than_were_sent() -> None:
    """The law estimates how many arrived, where the number of dummies is secret."""
    looks = [
        {"acknowledged": 100, "dummies": 30, "pooled": 60, "counted": 70},
        {"acknowledged": 103, "dummies": 30, "counted": 133},
    ]
    totals = iter([{**dict.fromkeys(TERMS, 0), **look} for look in looks])
    service = SimpleNamespace(ask=lambda _path: {"complete": True, "total": next(totals)})
    endpoints = SimpleNamespace(service=service)
    run = cast(LocalRun, SimpleNamespace(check=lambda: None, endpoints=endpoints))
    shown: list[int] = []
    demo._drain(run, 100, 3.0, shown.append)
    assert shown == [40, 100]


def test_ctrl_c_ends_a_run_as_soon_as_it_is_announced(capsys: pytest.CaptureFixture[str]) -> None:
    def announce() -> None:
        raise KeyboardInterrupt

    until_interrupted(cast(LocalRun, SimpleNamespace()), announce)
    assert capsys.readouterr().out == "Ending.\n"
