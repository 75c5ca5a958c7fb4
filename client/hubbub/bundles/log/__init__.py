"""The transparency log: an append-only tree of everything signed for devices."""
