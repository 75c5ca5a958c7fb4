"""Tools for tests of apps: clients in memory, captured reports, and a fake shuffler.

captured = hubbub.client.testing.capture()    as a context manager; or the fixture hubbub_reports
"""

from hubbub.client.testing.fakes import FakeClock, FakeServer, FakeShuffler
from hubbub.client.testing.memory_clients import Captured, Report, capture, coins, memory_client

__all__ = [
    "Captured",
    "FakeClock",
    "FakeServer",
    "FakeShuffler",
    "Report",
    "capture",
    "coins",
    "memory_client",
]
