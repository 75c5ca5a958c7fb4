"""Floor 1. What is accounted: windows, their dates, and the conservation law of reports."""

from hubbub.conservation.dates import epoch_date, epoch_dates, minute
from hubbub.conservation.terms import TERMS, balances, sum_terms
from hubbub.conservation.window import Window

__all__ = ["TERMS", "Window", "balances", "epoch_date", "epoch_dates", "minute", "sum_terms"]
