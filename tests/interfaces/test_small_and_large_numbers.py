"""Numbers so small or so large that rounding could hide them."""

import re
from pathlib import Path

import pytest

from hubbub.cli.main import main
from tests.support.catalogs import catalog_toml, metric_toml
from tests.support.commands import Capture, document_of, output_of
from tests.support.pages import page_of


def test_a_cell_of_many_reports_has_an_interval_and_none_is_minus_nothing(
    tmp_path: Path, capsys: Capture
) -> None:
    parts = '{ theme = ["light", "dark"], country = ["de", "fr"] }'
    metrics = [
        metric_toml(name, f"parts = {parts}", mechanism="pairs", epsilon=8.0)
        for name in ("many", "few")
    ]
    counts = {"many": {0: 400_000, 3: 400_000}, "few": {0: 300, 3: 300}}
    with page_of(tmp_path, catalog_toml(*metrics), counts) as address:
        for metric in counts:
            assert main(["cross", metric, "--url", address]) == 0
            shares = re.findall(r"(-?[\d.]+)% ([\d.]+)-([\d.]+)", capsys.readouterr().out)
            assert len(shares) == 4
            for share, low, high in shares:
                assert float(low) < float(high)
                assert not re.fullmatch(r"-0(\.0+)?", share)


def test_a_planned_error_below_a_thousandth_of_a_percent_is_shown(capsys: Capture) -> None:
    words = ["plan", "--values", "5", "--epsilon", "1", "--error", "1e-7"]
    [row, *_] = document_of(capsys, *words, "--format", "json")["rows"]
    assert row["population"] == pytest.approx(1e-7, rel=0.01)
    output = output_of(capsys, *words)
    assert "0.000%" not in output
    assert "0.0000100%" in output
