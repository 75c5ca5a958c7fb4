"""metrics.toml: the catalog that people write, read with all its problems, and its schema."""
