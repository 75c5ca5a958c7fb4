"""The reference of metrics for Prometheus, from where they are declared."""

from collections.abc import Iterable

from docs.reference.tables import prose
from hubbub.aggregator.metrics import DECLARED as OF_AGGREGATOR
from hubbub.aggregator.metrics import ESTIMATES
from hubbub.issuer.metrics import DECLARED as OF_ISSUER
from hubbub.relay.metrics import DECLARED as OF_RELAY
from hubbub.runtime import EVERYWHERE, MetricDeclaration
from hubbub.shuffler.metrics import DECLARED as OF_SHUFFLER

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
                _list(EVERYWHERE),
                "## The shuffler\n\n",
                _list(OF_SHUFFLER),
                "## The aggregator\n\n",
                _list(OF_AGGREGATOR),
                "## The relay\n\n",
                _list(OF_RELAY),
                "## The issuer\n\n",
                _list(OF_ISSUER),
                _ESTIMATES,
                _list(ESTIMATES),
            ]
        ).rstrip()
        + "\n"
    )


def _list(declared: Iterable[MetricDeclaration]) -> str:
    """One line for each metric: its name, type, labels and meaning."""
    lines = []
    for metric in declared:
        labels = "".join(f", `{label}`" for label in metric.labels)
        lines.append(f"- `{metric.name}` ({metric.kind}{labels}): {prose(metric.meaning)}\n")
    return "".join(lines) + "\n"
