"""The transparency log: what was ever signed for devices, in a tree that only grows."""
