"""Who runs what: signed into the bundle, shown to people, and compared between bundles."""

import json
from pathlib import Path

import pytest

from hubbub.bundles import read_bundle
from hubbub.cli.main import main
from hubbub.client import Client, FolderState
from hubbub.client.testing import FakeShuffler
from hubbub.errors import BundleRefused
from hubbub.signing.metric_changes import NEITHER, differences
from tests.support.catalogs import catalog_toml, metric_toml
from tests.support.commands import output_of

METRIC = metric_toml("theme", mechanism="rr", epsilon=1.0, values=["light", "dark"])
TWO = 'runs = { shuffler = "Example Foundation", aggregator = "Example Ltd" }'
ONE_PARTY = 'runs = { shuffler = "Example Ltd", aggregator = "example ltd" }'


def build(folder: Path, runs: str) -> Path:
    source, out = folder / "metrics.toml", folder / "app.hubbub"
    source.write_text(runs + "\n" + catalog_toml(METRIC, shuffler="shuffler.example.org:443"))
    if not (folder / "keys").exists():
        assert main(["keys", "new", str(folder / "keys")]) == 0
    command = ["catalog", "build", str(source), "--keys", str(folder / "keys"), "--out", str(out)]
    code = main([*command, "--streams", str(folder / "streams.json")])
    assert code in {0, 2}
    return out if code == 0 else source


@pytest.mark.parametrize(
    ("runs", "message"), [(TWO, "Only both together"), (ONE_PARTY, "One party runs both"), ("", "")]
)
def test_the_ledger_shows_the_signed_operators_of_services(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], runs: str, message: str
) -> None:
    bundle = read_bundle(build(tmp_path, runs))
    state = FolderState(tmp_path / "state")
    state.remember(bundle.operator, bundle.signed)
    Client(bundle, state, FakeShuffler(), hold_seconds=None).close(0)
    capsys.readouterr()
    output = output_of(capsys, "ledger", "--state-dir", str(tmp_path / "state"))
    assert message in output
    assert ("runs the shuffler" in output) is bool(runs)
    assert main(["ledger", "--state-dir", str(tmp_path / "state"), "--format", "json"]) == 0
    [document] = json.loads(capsys.readouterr().out).values()
    assert (document["runs"] or {}).get("shuffler") == (
        bundle.runs.shuffler if bundle.runs else None
    )


def test_the_operators_of_services_are_signed_and_a_change_is_shown(tmp_path: Path) -> None:
    out = build(tmp_path, TWO)
    old = read_bundle(out)
    altered = tmp_path / "altered.hubbub"
    altered.write_bytes(out.read_bytes().replace(b"Example Foundation", b"Another Foundation"))
    with pytest.raises(BundleRefused, match="altered"):
        read_bundle(altered)
    changes = differences(old, read_bundle(build(tmp_path, ONE_PARTY)))
    assert [(change.field, change.before, change.gives) for change in changes] == [
        ("who runs the shuffler", "Example Foundation", NEITHER),
        ("who runs the aggregator", "Example Ltd", NEITHER),
    ]


@pytest.mark.parametrize(
    "runs", ['runs = "us"', 'runs = { shuffler = "" }', 'runs = { shuffler = "A" }']
)
def test_an_incomplete_runs_field_is_refused_with_file_and_field(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], runs: str
) -> None:
    assert build(tmp_path, runs).name == "metrics.toml"
    assert 'field "runs' in capsys.readouterr().err
