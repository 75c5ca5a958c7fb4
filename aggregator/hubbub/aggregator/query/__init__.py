"""The query core: answers analysts' queries in one place, for every interface.

epoch_range parses the requested epochs; totals and cache read them; estimating plans once what
applies to a metric, and engine answers by it with estimates; questions, trends, breakdowns,
experiments and models answer with what rests on them; answer_types has the shapes of answers.
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
