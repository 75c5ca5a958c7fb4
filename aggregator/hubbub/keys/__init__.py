"""Floor 2. Key files: the operator's for signing, the aggregator's for opening; rotation."""
