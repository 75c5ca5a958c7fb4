"""Tools for tests of apps: clients in memory, captured reports, and a fake shuffler.

captured = hubbub.client.testing.capture()    as a context manager; or the fixture hubbub_reports
"""

from hubbub.client.testing.capture import Captured, Report, capture
from hubbub.client.testing.clients import coins, memory_client
from hubbub.client.testing.fake_clock import FakeClock
from hubbub.client.testing.fake_server import FakeServer
from hubbub.client.testing.fake_shuffler import FakeShuffler

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
