"""Floor 1. What is accounted: windows and the conservation law of reports."""

from hubbub.conservation.window import TERMS, Window, balances, sum_terms

__all__ = ["TERMS", "Window", "balances", "sum_terms"]
