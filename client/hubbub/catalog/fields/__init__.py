"""Fields of tables: what each may hold and what is said of it, once, where it is declared."""
