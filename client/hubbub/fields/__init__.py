"""Fields of tables: what one is, and how it is read. Where each is declared: docs/contribute."""
