"""Candidate strings from Bloom filters and sketches: where they hash, what fits the totals."""
