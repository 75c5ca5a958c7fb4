"""Published numbers: with additional noise, a yearly budget, and an append-only record."""
