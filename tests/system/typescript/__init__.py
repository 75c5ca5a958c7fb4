"""Pages and Node: a package, so that its browser and services end with its last test."""
