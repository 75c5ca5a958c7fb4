"""The transparency log, as operators keep it and witnesses and reviewers read it."""
