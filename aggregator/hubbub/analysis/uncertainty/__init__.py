"""How far an estimate may be off: intervals, discoveries, tails, and the choice of who reported."""
