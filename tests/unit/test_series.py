"""Series of the services for Prometheus: each says what it means."""

import ast
from pathlib import Path
from types import ModuleType

import hubbub.aggregator.prometheus_metrics
import hubbub.shuffler.prometheus_metrics
from docs.reference.prometheus import declared
from hubbub.aggregator.web import prometheus_estimates
from hubbub.runtime.monitoring import metric_declaration as declaration
from hubbub.runtime.monitoring.metric_declaration import (
    BATCH_REPORTS,
    BUILD_INFO,
    CERTIFICATE_DAYS_LEFT,
    REPORTS,
    STAGE_SECONDS,
    STORE_UP,
    MetricDeclaration,
)

ROOT = Path(__file__).parents[2]


def _series(path: str, module: ModuleType) -> set[MetricDeclaration]:
    """A service's counters and gauges, as its process gives them to Metrics."""
    names = {
        ast.unparse(key).rpartition(".")[2]
        for node in ast.walk(ast.parse((ROOT / path).read_text()))
        if isinstance(node, ast.Dict)
        for key in node.keys
        if isinstance(key, ast.Name | ast.Attribute)
    }
    return {getattr(module, name, None) or getattr(declaration, name) for name in names}


def test_the_reference_describes_exactly_the_prometheus_series() -> None:
    by_itself = {REPORTS, STORE_UP, STAGE_SECONDS, BATCH_REPORTS}
    by_itself |= {BUILD_INFO, CERTIFICATE_DAYS_LEFT}
    for path, module in (
        ("shuffler/hubbub/shuffler/__main__.py", hubbub.shuffler.prometheus_metrics),
        ("aggregator/hubbub/aggregator/__main__.py", hubbub.aggregator.prometheus_metrics),
    ):
        assert _series(path, module) | by_itself == {*declared(declaration), *declared(module)}
        for series in (*declared(declaration), *declared(module), *declared(prometheus_estimates)):
            words = series.name.removeprefix("hubbub_").removesuffix("_total").replace("_", " ")
            assert series.meaning.lower() != words, series.name
            assert len(series.meaning.split()) > 3, series.name
