"""A metric told apart by what is public: its streams, what a device says, what may change."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hubbub.bundles import Bundle
from hubbub.client import Outcome
from hubbub.client.testing import FakeShuffler, memory_client
from hubbub.errors import BadParameter, BundleRefused, CatalogInvalid, UnknownMetric
from hubbub.privacy.card import metric_card
from hubbub.signing.metric_changes import refuse_changes
from hubbub.signing.testing import make_bundle
from tests.support.catalogs import catalog_of, catalog_toml, metric_toml

GRR = 'mechanism = "grr"\nvalues = ["light", "dark", "system"]\n'
LONG = 'mechanism = "long.grr"\nvalues = ["light", "dark"]\npermanent_epsilon = 3.0\n'
BY = 'breakdown = {{ os = {os}, version = {{ "2" = ["2.*"], old = "*" }} }}\n'


def _text(rest: str, os: str, reports: int = 1) -> str:
    metric = metric_toml("theme", rest + BY.format(os=os), epsilon=2.0, reports_per_epoch=reports)
    return catalog_toml(metric, shuffler="shuffler.example.org:443")


def _bundle(folder: Path, os: str = '["linux", "macos"]', rest: str = GRR) -> Bundle:
    path = folder / "metrics.toml"
    path.write_text(_text(rest, os))
    return make_bundle(path).bundle


def test_every_cell_is_a_stream_at_every_tier(tmp_path: Path) -> None:
    bundle = _bundle(tmp_path, rest=GRR + "tiers = [1.0]\n")
    cells = ["", *(f"@os={o},version={v}" for o in ("linux", "macos") for v in ("2", "old"))]
    assert list(bundle.streams) == [f"theme{cell}{tier}" for tier in ("", "/1") for cell in cells]
    assert bundle.metric("theme").streams == tuple(bundle.streams)
    assert bundle.metric("theme@version=2/1").streams == (
        "theme@os=linux,version=2/1",
        "theme@os=macos,version=2/1",
    )
    assert bundle.metric("theme@unlisted").streams == ("theme", "theme/1")
    assert bundle.metric("theme@os=linux").base_name == "theme"
    for wrong in ("theme@os=bsd", "theme@colour=red", "theme@os=linux+linux", "theme@os=linux/3"):
        with pytest.raises(UnknownMetric):
            bundle.metric(wrong)


def test_a_device_reports_its_public_values_or_only_the_metric(tmp_path: Path) -> None:
    bundle = _bundle(tmp_path)
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"os": "linux", "version": "2.3"}, "theme@os=linux,version=2"),
        ({"os": "macos", "version": lambda: "1.9"}, "theme@os=macos,version=old"),
        ({"os": "beos", "version": "2.3"}, "theme"),
    )
    for public_values, stream in cases:
        shuffler = FakeShuffler()
        client = memory_client(bundle, transport=shuffler, public=public_values)
        assert client.report("theme", "dark") is Outcome.QUEUED
        assert client.ledger().payloads[0].public == (
            {}
            if stream == "theme"
            else {"os": public_values["os"], "version": stream.rpartition("=")[2]}
        )
        assert client.flush()
        assert [report.stream for report in shuffler.reports()] == [stream]


def test_a_device_with_a_longer_list_reports_once_per_epoch_with_the_same_answer(
    tmp_path: Path,
) -> None:
    version = ["1.9"]
    public_values: dict[str, Any] = {"os": "linux", "version": lambda: version[0]}
    client = memory_client(_bundle(tmp_path, rest=GRR), public=public_values)
    assert client.report("theme", "dark") is Outcome.QUEUED
    version[0] = "2.0"
    assert client.report("theme", "dark") is Outcome.ALREADY_REPORTED
    path = tmp_path / "long.toml"
    path.write_text(_text(LONG, '["linux"]', reports=50))
    client = memory_client(make_bundle(path).bundle, public=public_values)
    for version[0] in ("1.9", "2.0") * 10:
        assert client.report("theme", "dark") is Outcome.QUEUED
    [metric] = client.ledger().metrics
    assert metric.spent <= 3.0, "one permanent response, whichever version asks for it"


def test_an_app_without_its_public_values_is_refused(tmp_path: Path) -> None:
    bundle = _bundle(tmp_path)
    with pytest.raises(BadParameter, match="metrics are split by os, version"):
        memory_client(bundle)
    with pytest.raises(BadParameter, match='"public" must be a mapping of texts'):
        memory_client(bundle, public={"os": 1})  # type: ignore[dict-item]
    client = memory_client(bundle, public={"os": "linux", "version": "2.0"})
    with pytest.raises(UnknownMetric, match="has no metric of this name; it has theme"):
        client.report("theme@os=linux,version=2", "dark")


def test_an_error_in_the_apps_public_function_is_the_apps_mistake(tmp_path: Path) -> None:
    def secret() -> str:
        raise RuntimeError("secret")

    client = memory_client(_bundle(tmp_path), public={"os": secret, "version": "2.0"})
    with pytest.raises(BadParameter, match="public: os raises RuntimeError; pass a text") as error:
        client.report("theme", "dark")
    assert "secret" not in str(error.value)


def test_values_may_be_added_but_not_removed(tmp_path: Path) -> None:
    before = _bundle(tmp_path)
    more = _bundle(tmp_path, os='["linux", "macos", "beos"]')
    assert refuse_changes(more.metrics, before) == before.history
    with pytest.raises(BundleRefused, match='breakdown has lost "macos" of os'):
        refuse_changes(_bundle(tmp_path, os='["linux"]').metrics, before)
    theme = before.metrics["theme"]
    for others in ({}, {**theme.breakdown, "channel": {"beta": ("beta",)}}):
        with pytest.raises(BundleRefused, match="breakdown changed under an old name"):
            refuse_changes({"theme": replace(theme, breakdown=others)}, before)


def test_a_card_says_who_sees_it(tmp_path: Path) -> None:
    card = metric_card(_bundle(tmp_path).metrics["theme"])
    assert "The shuffler and the aggregator see the os, version of each" in card.sentence
    facts = {fact.label: fact.text for fact in card.facts}
    assert facts["divided openly by"] == "os (linux, macos), version (2, old)"


@pytest.mark.parametrize(
    ("os", "message"),
    [
        ('["linux", "linux"]', "lists a value twice"),
        ('["a b"]', "write a short name"),
        ("[]", "must be a list of values"),
        ("{ linux = [] }", "give it one"),
        ('{ linux = [""] }', "a pattern must be a text"),
        (str([f"v{n}" for n in range(51)]), "makes 102 cells, above 100"),
    ],
)
def test_an_invalid_breakdown_is_refused(os: str, message: str) -> None:
    with pytest.raises(CatalogInvalid) as error:
        catalog_of(_text(GRR, os))
    assert 'field "breakdown"' in str(error.value)
    assert message in str(error.value)
