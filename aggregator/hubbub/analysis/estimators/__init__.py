"""Estimators on numpy arrays: unbiased ones, and ones in the shape of a histogram."""
