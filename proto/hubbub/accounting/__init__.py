"""Floor 1. What is accounted: windows, and the conservation law of the reports in them."""

from hubbub.accounting.conservation import LAW, balances, whole
from hubbub.accounting.window import Window

__all__ = ["LAW", "Window", "balances", "whole"]
