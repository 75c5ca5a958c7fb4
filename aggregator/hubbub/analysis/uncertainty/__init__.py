"""How far an estimate may be off: intervals, discoveries, tails, and who happened to report."""
