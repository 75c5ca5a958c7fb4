"""Learning: takes one step per finished round of each model."""
