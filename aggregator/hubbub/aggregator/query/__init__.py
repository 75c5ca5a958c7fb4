"""The query core: what analysts ask, answered in one place for every face.

epoch_range says which epochs are meant; totals and cache read them; estimating, trends and
report_counts say what follows; answers has the shape of it all; engine puts it together.
"""

from hubbub.aggregator.query.engine import QueryEngine
from hubbub.aggregator.query.estimating import EstimateQuery, Page
from hubbub.aggregator.query.totals import EpochRange

__all__ = [
    "EpochRange",
    "EstimateQuery",
    "Page",
    "QueryEngine",
]
