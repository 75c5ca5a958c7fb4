"""`hubbub load` against everything on this machine, and what it refuses."""

import json
import ssl
import time
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest

from hubbub.authoring import Catalog
from hubbub.cli.main import main
from hubbub.installation.local_run import LocalRun, Ports
from tests.conftest import CATALOG, CatalogFiles
from tests.support.bundles import DAY, make_signed
from tests.support.catalogs import metric_toml
from tests.support.commands import Capture, output_of, refusal_of
from tests.support.law_terms import total_counts
from tests.support.waiting import eventually

pytestmark = pytest.mark.thorough


def test_devices_and_the_conservation_law_agree_on_acknowledged_reports(
    catalog_files: CatalogFiles, tmp_path: Path, capsys: Capture
) -> None:
    metrics = dict(catalog_files.bundle.metrics)
    metrics["theme"] = replace(metrics["theme"], breakdown={"os": {"linux": ("linux",)}})
    catalog = Catalog(shuffler="127.0.0.1:1", metrics=metrics)
    with LocalRun(tmp_path / "home", catalog, Ports.free()) as run:
        arguments = ["load", "--home", str(run.home), "--devices", "300", "--rate", "200"]
        assert main([*arguments, "--seconds", "3", "--processes", "2", "--format", "json"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert document["asked"] == document["acknowledged"] == 600
        assert document["not_sent"] == {}
        assert (
            0
            < document["until_acknowledged_ms"]["p50"]
            <= document["until_acknowledged_ms"]["longest"]
        )
        assert (
            0 < document["report_call_us"]["p50"] < document["until_acknowledged_ms"]["p50"] * 1000
        )
        eventually(lambda: total_counts(run.endpoints)["acknowledged"] == 600)
        # Each with a connection of its own, and one metric alone.
        arguments += ["--metric", "theme", "--seconds", "1", "--processes", "1", "--dial"]
        output = output_of(capsys, *arguments)
        assert "200 of 200 reports acknowledged" in output
        assert "200 times a device reported every metric" in output
        assert "100 of 300 devices sent nothing" in output
        # And over HTTP, where the bundle is too: on the event loop and with the doors of a service.
        assert main([*arguments, "--http", run.http_door]) == 0
        assert "200 of 200 reports acknowledged" in capsys.readouterr().out
        eventually(lambda: total_counts(run.endpoints)["acknowledged"] == 1000)
        trust = ssl.create_default_context(cadata=run.bundle.roots)
        with urllib.request.urlopen(f"https://{run.http_door}/v1/bundle", context=trust) as served:
            assert served.read() == run.bundle_path.read_bytes()
        run.stop()
        for address in ((), ("--http", run.http_door)):
            refusal = refusal_of(capsys, *arguments, *address)
            assert "does not answer" in refusal
            assert "start it with hubbub up" in refusal


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--devices 0", "--devices 0 is outside (0, 200000]"),
        ("--rate 1e9", "--rate 1,000,000,000 is outside (0, 100000]"),
        ("--seconds nan", "--seconds nan is outside (0, 3600]"),
        ("--devices 2 --rate 100 --seconds 60", "give --devices 1,500"),
        ("--metric nope", "nope"),
    ],
)
def test_load_refuses_wrong_arguments(
    catalog_files: CatalogFiles,
    arguments: str,
    message: str,
    capsys: Capture,
) -> None:
    assert message in refusal_of(
        capsys, "load", "--bundle", str(catalog_files.path), *arguments.split()
    )


def test_load_needs_an_option_for_another_machine(tmp_path: Path, capsys: Capture) -> None:
    text = CATALOG.replace("127.0.0.1:1", "reports.example.org:443")
    signed = make_signed(tmp_path, text, start=int(time.time()) // DAY * DAY)
    assert main(["load", "--bundle", str(signed.path)]) == 2
    assert "reports.example.org:443, is not on this machine" in capsys.readouterr().err


def test_metrics_that_are_not_reported_at_each_call_are_left_out(
    tmp_path: Path, capsys: Capture
) -> None:
    use = CATALOG.partition("[metrics.theme]")[0] + metric_toml(
        "use", kind="activity", mechanism="grr", epsilon=1.0, min_batch=20
    )
    load = ["load", "--bundle", str(make_signed(tmp_path, use, start=20_000 * DAY).path)]
    assert main([*load, "--metric", "use"]) == 2
    assert 'a device reports kind = "activity" once an epoch' in capsys.readouterr().err
    assert "has no metric that a device reports at each call" in refusal_of(capsys, *load)
