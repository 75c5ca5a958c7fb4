"""Storage of totals: a contract, with Redis and files as implementations."""
