"""For the tests of apps: clients in memory, their reports captured, and a server that is not there.

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
