"""Floor 1. What the roles say to each other: the messages and services of proto/, generated."""
