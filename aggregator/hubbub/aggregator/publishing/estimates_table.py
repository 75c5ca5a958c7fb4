"""One table of the estimates of all metrics, for DuckDB, Polars, pandas and warehouses.

    estimates/METRIC/DATE.parquet     a file per metric and closed epoch, a row per value

All files have the same columns, so `read_parquet('PLACE/estimates/*/*.parquet')` is the table.
A file without rows means an epoch without estimates: too few reports, strings without a list, or a
model. Discovered beginnings have none, since they count the reports of longer strings.
"""

import asyncio
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from hubbub.aggregator.exported_files import Place, arrow, to_parquet
from hubbub.aggregator.publishing.publisher import Closed, file_name
from hubbub.aggregator.query.totals import TotalsByEpoch
from hubbub.aggregator.store.window_file import definition_of
from hubbub.errors import StoreUnavailable

COLUMNS: Final = {
    "metric": "string",
    "value": "string",
    "epoch": "int64",
    "epoch_start": "timestamp",
    "epoch_end": "timestamp",
    "estimate": "double",
    "low": "double",
    "high": "double",
    "stderr": "double",
    "share": "double",
    "detected": "bool",
    "reports": "int64",
    "confidence": "double",
    "local_epsilon": "double",
    "central_epsilon": "double",
    "central_delta": "double",
    "kind": "string",
    "unit": "string",
    "mechanism": "string",
    "definition": "string",
    "notice": "string",
}
"""Of the table, each with its type; docs/warehouse.md explains them."""
_OF_VALUES: Final = ("value", "estimate", "low", "high", "stderr", "share", "detected")
_OF_EPOCHS: Final = ("metric", "epoch", "reports", "confidence", "kind", "unit", "mechanism")
_DIGITS: Final = 16


class EstimatesTable:
    """A Sink that appends a file per metric and epoch to the table.

    Args:
        collected: contains the bundle in use.
    """

    def __init__(self, place: Place, collected: TotalsByEpoch) -> None:
        self._place = place
        self._collected = collected
        self._files_by_metric: dict[str, set[str]] = {}

    async def wants(self, metric: str, epoch: int, date: str) -> bool:
        """Whether the epoch has no file yet."""
        del epoch
        if metric not in self._files_by_metric:
            try:
                entries = await asyncio.to_thread(self._place.entries, f"estimates/{metric}")
            except StoreUnavailable:
                return True  # take() raises the reason
            self._files_by_metric[metric] = {entry.name for entry in entries}
        return f"{file_name(date)}.parquet" not in self._files_by_metric[metric]

    async def take(self, closed: Closed) -> None:
        """Writes the epoch's file. Raises ConnectionError if it cannot be written."""
        name = f"{file_name(closed.date)}.parquet"
        metric = self._collected.bundle.metric(closed.metric)
        content = table_of(closed.document, definition_of(metric)[:_DIGITS])
        try:
            await asyncio.to_thread(self._place.write, f"estimates/{closed.metric}/{name}", content)
        except StoreUnavailable as error:
            raise ConnectionError(str(error)) from error
        self._files_by_metric.setdefault(closed.metric, set()).add(name)


def table_of(document: Mapping[str, Any], definition: str) -> bytes:
    """A closed epoch's rows as Parquet; `definition` is a digest of the metric's definition."""
    pa, _ = arrow("the table of estimates")
    types = {
        "string": pa.string(),
        "int64": pa.int64(),
        "double": pa.float64(),
        "bool": pa.bool_(),
        "timestamp": pa.timestamp("us", "UTC"),
    }
    schema = pa.schema([(name, types[kind]) for name, kind in COLUMNS.items()])
    return to_parquet(list(_rows(document, definition)), schema)


def _rows(document: Mapping[str, Any], definition: str) -> Iterator[dict[str, Any]]:
    if "values" not in document:
        return
    promised = document["promised"]
    head = {
        **{name: document[name] for name in _OF_EPOCHS},
        "epoch_start": datetime.fromisoformat(document["since"]),
        "epoch_end": datetime.fromisoformat(document["until"]),
        "local_epsilon": document["epsilon"],
        "central_epsilon": promised["epsilon"],
        "central_delta": promised["delta"],
        "definition": definition,
        "notice": document["notice"],
    }
    for value in document["values"]:
        if value["value"] in document["beginnings"]:
            continue
        yield {**head, **{name: value[name] for name in _OF_VALUES}}
