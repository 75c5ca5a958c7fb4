"""Floor 2. Signs bundles, notices and models for an operator, and keeps the log of them."""
