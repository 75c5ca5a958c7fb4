"""Version 1 of the wire. Names and field numbers are never reused or given a new meaning."""
