"""`make bench`: every stage beside its limit, measured in the same run."""
