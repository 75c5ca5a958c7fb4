"""Floor 1. What is accounted: windows, and the conservation law of the reports in them."""

from hubbub.accounting.conservation import TERMS, balances, sum_terms
from hubbub.accounting.window import Window

__all__ = ["TERMS", "Window", "balances", "sum_terms"]
