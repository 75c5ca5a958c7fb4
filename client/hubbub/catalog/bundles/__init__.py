"""Bundles: what an app ships of a catalog, its signature, and what it may no longer take back."""
