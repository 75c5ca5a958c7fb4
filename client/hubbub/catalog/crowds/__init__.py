"""Crowds: central promises, and what keeps one for values, numbers and strings."""
