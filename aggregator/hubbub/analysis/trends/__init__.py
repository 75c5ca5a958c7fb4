"""Trends: a value's days drawn through by a model of how it moves, and the steps that it took."""
