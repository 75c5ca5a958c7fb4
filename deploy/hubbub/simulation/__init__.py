"""Simulates people with known values, and compares answers with the truth."""
