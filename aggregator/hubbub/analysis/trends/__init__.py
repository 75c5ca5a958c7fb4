"""Trends: a smoothed line through a value's days, and the steps it took."""
