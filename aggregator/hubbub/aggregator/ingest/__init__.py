"""From a shuffled batch to totals: opened, checked, folded, counted exactly once."""
