"""Whether honest reports alone made these totals, and what fake ones can do at most."""
