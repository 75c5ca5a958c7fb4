"""The query core: answers analysts' queries in one place, for every interface.

epoch_range parses the requested epochs; totals and cache read them; engine answers with estimates,
and questions, trends, breakdowns, experiments and models with what rests on them; answer_types has
the shapes of answers.
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
