"""Fields of tables: declaration and reading. docs/contribute says where each is declared."""
