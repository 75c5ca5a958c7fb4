"""Learning: the rounds of models as they end, one step each."""
