"""Strings from Bloom filters, sketches and trees: their hashes, decoding, and discovery."""
