"""Comparisons of estimates: over time, between epochs, arms, parts and values."""
