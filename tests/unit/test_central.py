"""Central promises in the catalog: worked out, checked, dumped, loaded, told to the shuffler."""

import json
import re
import tomllib
from dataclasses import replace
from math import sqrt
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from hubbub.catalog import (
    Metric,
    read_bundle,
    read_catalog,
    read_operator_key,
    refuse_changes,
    sign_bundle,
    stream_table,
)
from hubbub.catalog.schema import catalog_schema
from hubbub.cli.main import main
from hubbub.errors import BadParameter, BundleRefused, CatalogInvalid
from hubbub.mechanisms import build
from hubbub.privacy.crowd import central_of, read_planned
from tests.support.bundles import DAY, make_signed

HEAD = 'shuffler = "127.0.0.1:1"\n'
THEME = """
[metrics.theme]
description = "What theme"
owner = "owner@example.org"
expires = 2099-01-01
epoch = "day"
mechanism = "auto"
values = ["light", "dark", "system", "contrast"]
central_epsilon = 1.0
crowd = 30000
limits = { reports_per_epoch = 1, lifetime_epsilon = 500 }
"""


def _read(folder: Path, text: str) -> Metric:
    path = folder / "metrics.toml"
    path.write_text(HEAD * ("shuffler =" not in text) + text)
    return read_planned(path).metrics["theme"]


def test_the_largest_local_epsilon_that_keeps_the_promise_is_found(tmp_path: Path) -> None:
    metric = _read(tmp_path, THEME)
    assert (metric.mechanism, metric.min_batch, metric.mix) == ("grr", 30_000, "epoch")
    told = central_of(metric, metric.min_batch)
    assert told is not None
    assert 0.99 <= told.epsilon <= 1.0
    rolling = _read(tmp_path, THEME + "rolling = true\n")
    assert (rolling.mix, rolling.epsilon) == ("rolling", metric.epsilon)
    assert _read(tmp_path, THEME + "honest = 1.0\n").epsilon > metric.epsilon
    assert _read(tmp_path, THEME + "max_local_epsilon = 2\n").epsilon == 2
    lower = _read(tmp_path, THEME + "epsilon = 3.0\n")
    assert lower.epsilon == 3.0
    found = central_of(lower, 30_000)
    assert found is not None
    assert found.epsilon < 0.5


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "limits",
            "epsilon = 7.5\nlimits",
            r"says more than central_epsilon 1 in a crowd of 30,000",
        ),
        (
            "limits",
            "epsilon = 7.5\nlimits",
            r"write 6\.\d+ at most, .* gather a crowd of 1\d\d,\d{3}",
        ),
        ("crowd = 30000\n", "", r'field "crowd": must be a whole number .* beside central_epsilon'),
        ("central_epsilon = 1.0\n", "", r'field "central_epsilon": must be a number of nats'),
        ('"auto"', '"unary.oue"', r'with mechanism "grr" or "auto"'),
        ("crowd = 30000", "crowd = 9", r'field "crowd": must be a whole number'),
        ("limits", "honest = 0.0\nlimits", r'field "honest": must be a share in \(0, 1\]'),
        ("limits", "rolling = 1\nlimits", r'field "rolling": must be true or false'),
        ("limits", "min_batch = 100\nlimits", r"is the crowd, 30,000, or nothing"),
        ("limits", "tiers = [0.5]\nlimits", r"each would need a crowd of its own"),
        ("reports_per_epoch = 1", "reports_per_epoch = 2", r"reports_per_epoch must be 1"),
        ("limits", "max_local_epsilon = 40\nlimits", r"max_local_epsilon"),
    ],
)
def test_what_cannot_be_kept_is_refused_with_its_remedy(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    with pytest.raises(CatalogInvalid, match=said):
        _read(tmp_path, THEME.replace(old, new))


def test_parts_of_a_promise_alone_are_none(tmp_path: Path) -> None:
    text = THEME.replace(
        "central_epsilon = 1.0\ncrowd = 30000\n", "epsilon = 1.0\nmin_batch = 100\n"
    )
    text = text.replace('"auto"', '"grr"')
    assert _read(tmp_path, text).central is None
    with pytest.raises(CatalogInvalid, match="is of a central promise; write central_epsilon"):
        _read(tmp_path, text + "rolling = true\n")


def test_without_the_accountant_a_promise_is_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "metrics.toml"
    path.write_text(HEAD + THEME)
    with pytest.raises(
        CatalogInvalid, match=r"build the bundle with hubbub\[aggregator\] installed"
    ):
        read_catalog(path)


def test_a_bundle_holds_the_promise_and_never_less_of_it(tmp_path: Path) -> None:
    metric = _read(tmp_path, THEME)
    plain = THEME.replace("central_epsilon = 1.0\ncrowd = 30000", "epsilon = 1.0\nmin_batch = 100")
    text = HEAD + plain.replace("[metrics.theme]", "[metrics.other]").replace('"auto"', '"grr"')
    signed = make_signed(tmp_path, text, start=20_000 * DAY)
    bundle = replace(signed.bundle, metrics={"theme": metric}, history={"theme": metric.digest()})
    path = tmp_path / "crowd.hubbub"
    path.write_bytes(sign_bundle(bundle, read_operator_key(signed.keys)))
    assert read_bundle(path).metrics == {"theme": metric}
    streams = json.loads(stream_table(bundle))["streams"]
    assert (streams["theme"]["mix"], streams["theme"]["min_batch"]) == ("epoch", 30_000)
    assert "mix" not in json.loads(stream_table(signed.bundle))["streams"]["other"]
    smaller = replace(metric, crowd=20_000, min_batch=20_000)
    with pytest.raises(BundleRefused, match="crowd changed under an old name"):
        refuse_changes({"theme": smaller}, bundle)
    with pytest.raises(BadParameter, match="min_batch: is the crowd"):
        replace(metric, crowd=20_000)


def test_the_schema_takes_what_the_reader_takes() -> None:
    schema = Draft202012Validator(catalog_schema())
    whole = tomllib.loads(HEAD + THEME.replace("2099-01-01", '"2099-01-01"'))
    assert not list(schema.iter_errors(whole))
    del whole["metrics"]["theme"]["central_epsilon"]
    assert list(schema.iter_errors(whole))


def test_the_page_on_crowds_says_what_its_catalog_and_its_command_say(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "crowd.md").read_text("utf-8")
    [text] = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    metric = _read(tmp_path, text)
    assert f"here {metric.epsilon:g}, and says so" in page
    assert main(["catalog", "check", str(tmp_path / "metrics.toml")]) == 0
    assert "lets the crowd leave whole" in capsys.readouterr().out
    rows = re.findall(
        r"^\| ([\d,]+) \| ([\d,]+) \| ([\d.]+) \| ([\d.]+) \| ([\d,]+) \|$", page, re.MULTILINE
    )
    assert len(rows) == 4
    for row in rows:
        reports, values, local, error, alone = (float(cell.replace(",", "")) for cell in row)
        asked = ["--reports", f"{reports:.0f}", "--values", f"{values:.0f}", "--central", "1"]
        assert main(["privacy", "crowd", *asked, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["epsilon_central"] <= 1
        assert round(found["epsilon_local"], 2) == pytest.approx(local, abs=0.011)
        assert round(found["stderr_rare"], 1) == pytest.approx(error, abs=0.051)
        today = build("unary.oue", epsilon=1.0, categories=2)
        assert sqrt(today.variance(0, int(reports))) == pytest.approx(alone, rel=0.005)


def test_a_plan_shows_floors_beside_what_reports_alone_and_a_curator_would_do(
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = ["plan", "--values", "16", "--reports", "30000", "--central", "1"]
    assert main([*asked, "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    crowds = [row for row in rows if row["way"] == "crowd"]
    errors = [row["stderr_rare"] for row in crowds]
    assert errors == sorted(errors, reverse=True)
    assert 0.999 <= crowds[-1]["epsilon_central"] <= 1
    [alone] = [row for row in rows if row["way"].startswith("alone")]
    [curator] = [row for row in rows if row["way"].startswith("trusted")]
    assert alone["stderr_rare"] > 30 * errors[-1]
    assert curator["stderr_rare"] == pytest.approx(2 * 2**0.5)
    assert main(asked) == 0
    assert "crowd = 30000" in capsys.readouterr().out
    assert main(["plan", "--mean", "0", "1", "--reports", "30000", "--central", "1"]) == 2
    assert "--central is of listed values" in capsys.readouterr().err


def test_the_card_says_what_all_crowds_say_in_a_day_a_month_and_a_year(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _read(tmp_path, THEME.replace("30000", "300").replace('"day"', '"week"'))
    assert main(["privacy", str(tmp_path / "metrics.toml"), "--format", "json"]) == 0
    card = json.loads(capsys.readouterr().out)
    central, together = card["central"], card["together"]
    assert 0.9 < central["day"] <= 1 < central["month"] < central["year"] < together["year"]
    [metric] = card["metrics"]
    assert "if it does collude, a report says epsilon" in metric["shuffled"]["assumption"]
    said = " ".join(card["sentences"])
    assert "To who sees whole epochs shuffled, all answers of one person in a month" in said
