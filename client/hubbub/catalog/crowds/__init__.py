"""Crowds: central promises, and the mechanisms that keep them."""
