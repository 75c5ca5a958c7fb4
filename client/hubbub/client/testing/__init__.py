"""For the tests of apps: clients that keep everything in memory, and servers that are not there."""

from hubbub.client.testing.fake_shuffler import FakeShuffler

__all__ = ["FakeShuffler"]
