"""Reference pages that are made from what the code says of itself."""
