"""The reference of metrics for Prometheus, from where they are declared."""

from collections.abc import Iterable

from docs.reference.tables import cell, table
from hubbub.aggregator.metrics import DECLARED as OF_AGGREGATOR
from hubbub.aggregator.metrics import ESTIMATES
from hubbub.issuer.metrics import DECLARED as OF_ISSUER
from hubbub.relay.metrics import DECLARED as OF_RELAY
from hubbub.runtime import EVERYWHERE, MetricDeclaration
from hubbub.shuffler.metrics import DECLARED as OF_SHUFFLER

_HEAD = """# Metrics for Prometheus

Made by `make reference` from where they are declared; change it there.

Who may read them, and what to watch: [services](../operate/services.md#watching).
Beside these both services tell of their process what Prometheus' client library tells everywhere (`process_*`).

"""

_ESTIMATES = """## Estimates

At `/metrics` of the aggregator's `--http-listen`.
Of every metric the newest epoch that holds a minimum batch, and of its values the most frequent; metrics over strings have none.

"""


def page() -> str:
    """The whole page, as Markdown."""
    return (
        "".join(
            [
                _HEAD,
                "## Both services\n\nAt `--metrics-listen`.\n\n",
                _table(EVERYWHERE),
                "## The shuffler\n\nAt `--metrics-listen`.\n\n",
                _table(OF_SHUFFLER),
                "## The aggregator\n\nAt `--metrics-listen`.\n\n",
                _table(OF_AGGREGATOR),
                "## The relay\n\nAt `--metrics-listen`.\n\n",
                _table(OF_RELAY),
                "## The issuer\n\nAt `--metrics-listen`.\n\n",
                _table(OF_ISSUER),
                _ESTIMATES,
                _table(ESTIMATES),
            ]
        ).rstrip()
        + "\n"
    )


def _table(declared: Iterable[MetricDeclaration]) -> str:
    rows = [
        (
            f"`{one.name}`",
            one.kind,
            ", ".join(f"`{label}`" for label in one.labels),
            cell(one.meaning),
        )
        for one in declared
    ]
    return table(("metric", "type", "labels", "meaning"), rows)
