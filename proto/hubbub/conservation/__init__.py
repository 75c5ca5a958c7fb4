"""Floor 1. What is accounted: windows and the conservation law of reports."""

from hubbub.conservation.terms import TERMS, balances, sum_terms
from hubbub.conservation.window import Window

__all__ = ["TERMS", "Window", "balances", "sum_terms"]
