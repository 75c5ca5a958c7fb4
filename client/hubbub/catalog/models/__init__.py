"""Models in a catalog: what is learned, what a device reports for it, and from which state."""
