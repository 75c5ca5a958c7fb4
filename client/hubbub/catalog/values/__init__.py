"""Values: the kinds that apps have, ranges of numbers, and answers of several parts."""
