"""Whose bundles an app takes, and what was promised under their names."""
