"""The operators whose bundles an app accepts, and the promises made under their names."""
