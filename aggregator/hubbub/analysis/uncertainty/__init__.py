"""Uncertainty of estimates: intervals, discoveries, tails, and sampling of the population."""
