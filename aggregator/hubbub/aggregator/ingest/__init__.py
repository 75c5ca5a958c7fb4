"""Ingest: opens a shuffled batch, checks it, folds it and counts it exactly once."""
