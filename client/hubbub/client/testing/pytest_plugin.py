"""The fixture `hubbub_reports`.

In a conftest.py: pytest_plugins = ["hubbub.client.testing.pytest_plugin"]
"""

from collections.abc import Iterator

import pytest

from hubbub.client import default_client
from hubbub.client.testing.capture import Captured, capture


@pytest.fixture
def hubbub_reports() -> Iterator[Captured]:
    """What the test's code reports, by raw value; nothing is kept, nothing is sent."""
    with capture() as captured:
        yield captured
        default_client.end()
