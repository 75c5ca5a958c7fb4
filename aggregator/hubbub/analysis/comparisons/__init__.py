"""Estimates side by side: over time, before and after, one value and another."""
