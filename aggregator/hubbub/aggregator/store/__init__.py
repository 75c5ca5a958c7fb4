"""Where totals live: a contract with its fake in memory, and Redis."""
