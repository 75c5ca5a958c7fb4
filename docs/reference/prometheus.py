"""The reference of metrics for Prometheus, from where they are declared."""

from collections.abc import Iterable
from types import ModuleType

import hubbub.aggregator.prometheus_metrics
import hubbub.issuer.issuing
import hubbub.relay.forwarding
import hubbub.shuffler.prometheus_metrics
from docs.reference.tables import prose
from hubbub.aggregator.web import prometheus_estimates
from hubbub.runtime.monitoring import metric_declaration
from hubbub.runtime.monitoring.metric_declaration import MetricDeclaration

_HEAD = """# Metrics for Prometheus

Made by `make reference` from where they are declared; change it there.

[Services](../operate/services.md#watching) explains who may read them, and what to watch.
Services serve them at `--metrics-listen`, with the usual `process_*`.

"""

_ESTIMATES = """## Estimates

At `/metrics` of the aggregator's `--http-listen`.
They cover, for every metric but those over strings, the newest epoch with a minimum batch, and its most frequent values.

"""


def page() -> str:
    """The whole page, as Markdown."""
    return (
        "".join(
            [
                _HEAD,
                "## Both services\n\n",
                _list(declared(metric_declaration)),
                "## The shuffler\n\n",
                _list(declared(hubbub.shuffler.prometheus_metrics)),
                "## The aggregator\n\n",
                _list(declared(hubbub.aggregator.prometheus_metrics)),
                "## The relay\n\n",
                _list(declared(hubbub.relay.forwarding)),
                "## The issuer\n\n",
                _list(declared(hubbub.issuer.issuing)),
                _ESTIMATES,
                _list(
                    [
                        *declared(prometheus_estimates),
                        *prometheus_estimates.estimate_columns().values(),
                    ]
                ),
            ]
        ).rstrip()
        + "\n"
    )


def declared(module: ModuleType) -> list[MetricDeclaration]:
    """Those that a module declares, by themselves or in a table of several."""
    every = [
        item
        for entry in vars(module).values()
        for item in (entry.values() if isinstance(entry, dict) else [entry])
    ]
    return [item for item in every if isinstance(item, MetricDeclaration)]


def _list(metrics: Iterable[MetricDeclaration]) -> str:
    """One line for each metric: its name, type, labels and meaning."""
    lines = []
    for metric in metrics:
        labels = "".join(f", `{label}`" for label in metric.labels)
        lines.append(f"- `{metric.name}` ({metric.kind}{labels}): {prose(metric.meaning)}\n")
    return "".join(lines) + "\n"
