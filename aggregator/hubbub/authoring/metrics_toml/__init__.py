"""Reads metrics.toml, the catalog that people write, with all its problems."""
