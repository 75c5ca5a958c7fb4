"""Floor 1. The messages and services between the roles, generated from proto/."""
