"""Floor 1. Answers as rows and columns, in one form for files, notebooks and tables."""
