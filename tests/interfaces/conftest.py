"""One house for all tests of the faces: what they ask changes nothing in it."""

from collections.abc import Iterator

import pytest

from tests.interfaces.running_aggregator import House, house


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder = tmp_path_factory.mktemp("house")
    files = ("--totals", str(folder / "files"), "--estimates", str(folder / "files"))
    with house(folder, "--http-rate", "0", *files) as running:
        yield running
