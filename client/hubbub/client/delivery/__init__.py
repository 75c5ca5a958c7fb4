"""From the outbox to the shuffler, beside the app: seals, submits, and never once as two."""
