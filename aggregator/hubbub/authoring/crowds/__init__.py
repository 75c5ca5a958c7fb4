"""Plans crowds: the mechanism, local epsilon and dummies that keep a central promise."""
