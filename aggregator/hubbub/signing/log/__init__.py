"""The transparency log: written by operators, read by witnesses and reviewers."""
