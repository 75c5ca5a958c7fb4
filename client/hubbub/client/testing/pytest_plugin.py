"""The fixture `hubbub_reports`.

In a conftest.py: pytest_plugins = ["hubbub.client.testing.pytest_plugin"]
"""

from collections.abc import Iterator

import pytest

from hubbub.client import default_client
from hubbub.client.testing.memory_clients import Captured, capture


@pytest.fixture
def hubbub_reports() -> Iterator[Captured]:
    """Returns what the tested code reports, as raw values; nothing is stored or sent."""
    with capture() as captured:
        yield captured
        default_client.end()
