"""The kinds of values that apps report, ranges of numbers, and answers of several parts."""
