"""Numbers for outside: noise of their own, a yearly budget, a record that only grows."""
