"""Models of a catalog: what is learned, what a device tells of itself, and by which state."""
