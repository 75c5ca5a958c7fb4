"""The query core: answers analysts' queries in one place, for every interface.

epoch_range parses the requested epochs; totals and cache read them; estimating, trends and
report_counts compute results; answers defines their shape; engine combines all of it.
"""

from hubbub.aggregator.query.engine import QueryEngine
from hubbub.aggregator.query.epoch_range import EpochRange
from hubbub.aggregator.query.estimating import EstimateQuery, Page

__all__ = [
    "EpochRange",
    "EstimateQuery",
    "Page",
    "QueryEngine",
]
