"""What people are told of a value that is hashed for life."""

from pathlib import Path

import pytest

from hubbub.authoring import read_catalog
from hubbub.mechanisms.longitudinal_hash import LongitudinalHash
from hubbub.privacy.card import metric_card
from tests.support.catalogs import catalog_toml, metric_toml


@pytest.mark.parametrize(
    ("mechanism", "expected"), [("long.hash", True), ("long.grr", False), ("long.unary", False)]
)
def test_a_card_counts_all_answers_for_any_number_of_values(
    tmp_path: Path, mechanism: str, expected: bool
) -> None:
    path = tmp_path / "metrics.toml"
    values = ["light", "dark", "system", "sepia", "none"]
    fields = {"epsilon": 1.0, "permanent_epsilon": 3.0, "values": values, "min_batch": 1000}
    path.write_text(catalog_toml(metric_toml("theme", mechanism=mechanism, **fields)))
    metric = read_catalog(path).metrics["theme"]
    sentence = metric_card(metric).sentence
    assert ("however many values" in sentence) is expected
    if expected:
        assert isinstance(metric.randomizer, LongitudinalHash)
        buckets = metric.randomizer.layout.size // metric.randomizer.transform.functions
        assert f"one of {buckets} buckets of values" in sentence
        assert f"all answers together reveal {3 * buckets} nats at most about which" in sentence
        assert "may also show when these changed." in sentence
