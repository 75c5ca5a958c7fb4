"""Series of the services for Prometheus: each says what it means."""

import ast
from pathlib import Path

from hubbub.runtime.monitoring.metrics import HELP

ROOT = Path(__file__).parents[2]


def _series(path: str) -> set[str]:
    """The names of a service's counters and gauges, as its process gives them to Metrics."""
    [call] = [
        node
        for node in ast.walk(ast.parse((ROOT / path).read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Metrics"
    ]
    given = {one.arg: one.value for one in call.keywords}
    return {
        key.value
        for kind in ("counters", "gauges")
        for key in getattr(given[kind], "keys", [])
        if isinstance(key, ast.Constant) and isinstance(key.value, str)
    }


def test_every_series_of_a_service_says_what_it_means_and_no_other_is_told() -> None:
    shuffler = _series("shuffler/hubbub/shuffler/__main__.py")
    aggregator = _series("aggregator/hubbub/aggregator/__main__.py")
    assert shuffler | aggregator == HELP.keys()
    for name, said in HELP.items():
        assert said.lower() != name.replace("_", " "), name
        assert len(said.split()) > 3, name
