"""Floor 1. The accounting unit Window, and the conservation law that its reports obey."""

from hubbub.conservation.window import TERMS, Window, balances, sum_terms

__all__ = ["TERMS", "Window", "balances", "sum_terms"]
