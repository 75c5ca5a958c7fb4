"""The query core: what analysts ask, answered in one place for every face.

span says which epochs are meant; collected and shelf read their totals; working, trends and law say
what follows; answers has the shape of it all; query puts it together.
"""

from hubbub.aggregator.query.engine import WHOLE, Page, QueryEngine
from hubbub.aggregator.query.estimating import EstimateQuery
from hubbub.aggregator.query.totals import NEWEST, EpochRange, TotalsByEpoch

__all__ = ["NEWEST", "WHOLE", "EpochRange", "EstimateQuery", "Page", "QueryEngine", "TotalsByEpoch"]
