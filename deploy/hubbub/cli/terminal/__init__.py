"""Output for people at a terminal, and their input."""
