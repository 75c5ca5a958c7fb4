"""People with known values, their reports drawn or sent, and the answers beside the truth."""
